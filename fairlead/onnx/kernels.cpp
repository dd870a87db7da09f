// The element types of ONNX operators from opset 18 on: those that ONNX Runtime's CPU provider has
// kernels for, and those of the standard.
#include "fairlead/onnx/kernels.h"

#include <unordered_map>

namespace fairlead::onnx {
namespace {

constexpr std::uint32_t bit(Dtype d) { return 1U << static_cast<unsigned>(d); }

constexpr std::uint32_t kSingle = bit(Dtype::kFloat32) | bit(Dtype::kFloat16);
constexpr std::uint32_t kFloats = kSingle | bit(Dtype::kFloat64);
constexpr std::uint32_t kWide = bit(Dtype::kInt32) | bit(Dtype::kInt64);
constexpr std::uint32_t kBytes = bit(Dtype::kInt8) | bit(Dtype::kUint8);
constexpr std::uint32_t kShorts = bit(Dtype::kInt16) | bit(Dtype::kUint16);
constexpr std::uint32_t kUnsigned = bit(Dtype::kUint32) | bit(Dtype::kUint64);
constexpr std::uint32_t kInts = kWide | kBytes | kShorts | kUnsigned;
constexpr std::uint32_t kSigned = kWide | bit(Dtype::kInt8) | bit(Dtype::kInt16);
constexpr std::uint32_t kBool = bit(Dtype::kBool);
constexpr std::uint32_t kBrain = bit(Dtype::kBfloat16);
constexpr std::uint32_t kFirst = 1;
constexpr std::uint32_t kAll = ~0U;

struct Kernel {
  std::uint32_t on_cpu;    // by ONNX Runtime
  std::uint32_t standard;  // by everybody
  std::uint32_t inputs;    // that are of that type
};

const std::unordered_map<std::string_view, Kernel>& kernels() {
  static const std::unordered_map<std::string_view, Kernel> table = {
      {"Abs", {kFloats | kInts, kFloats | kBrain | kInts, kFirst}},
      {"Acos", {kSingle, kFloats, kFirst}},
      {"Acosh", {kSingle, kFloats, kFirst}},
      {"Add", {kFloats | kInts, kFloats | kBrain | kInts, kAll}},
      {"ArgMax", {kFloats | kBytes | kWide, kFloats | kBrain | kInts, kFirst}},
      {"ArgMin", {kFloats | kBytes | kWide, kFloats | kBrain | kInts, kFirst}},
      {"Asin", {kSingle, kFloats, kFirst}},
      {"Asinh", {kSingle, kFloats, kFirst}},
      {"Atan", {kSingle, kFloats, kFirst}},
      {"Atanh", {kSingle, kFloats, kFirst}},
      {"AveragePool", {kSingle, kFloats, kFirst}},
      {"BatchNormalization", {kFloats, kFloats | kBrain, kAll}},
      {"Ceil", {kFloats, kFloats | kBrain, kFirst}},
      {"Clip", {kFloats | kBytes | kWide | kUnsigned, kFloats | kBrain | kInts, kAll}},
      {"Col2Im", {kSingle, kFloats | kBrain | kInts | kBool, kFirst}},
      {"Conv", {kSingle, kFloats, kAll}},
      {"ConvTranspose", {kSingle, kFloats, kAll}},
      {"Cos", {kFloats, kFloats, kFirst}},
      {"Cosh", {kSingle, kFloats, kFirst}},
      {"CumSum", {kFloats | kWide, kFloats | kBrain | kWide | kUnsigned, kFirst}},
      {"DFT", {kFloats, kFloats | kBrain, kFirst}},
      {"Div", {kFloats | kInts, kFloats | kBrain | kInts, kAll}},
      {"Einsum", {kFloats | kWide, kFloats | kInts, kAll}},
      {"Elu", {kSingle, kFloats, kFirst}},
      {"Equal", {kFloats | kInts | kBool, kFloats | kBrain | kInts | kBool, kAll}},
      {"Erf", {kSingle, kFloats | kBrain, kFirst}},
      {"Exp", {kFloats, kFloats | kBrain, kFirst}},
      {"Expand", {kFloats | kInts | kBool, kFloats | kBrain | kInts | kBool, kFirst}},
      {"Floor", {kFloats, kFloats | kBrain, kFirst}},
      {"GRU", {kSingle, kFloats, kAll}},
      {"Gelu", {kSingle, kFloats | kBrain, kFirst}},
      {"Gemm", {kFloats, kFloats | kBrain | kWide | kUnsigned, kAll}},
      {"Greater", {kFloats | kInts, kFloats | kBrain | kInts, kAll}},
      {"GreaterOrEqual", {kFloats | kInts, kFloats | kBrain | kInts, kAll}},
      {"GridSample", {kFloats, kFloats | kInts | kBool, kAll}},
      {"HardSigmoid", {kSingle, kFloats, kFirst}},
      {"HardSwish", {kSingle, kFloats, kFirst}},
      {"InstanceNormalization", {kSingle, kFloats, kAll}},
      {"IsInf",
       {bit(Dtype::kFloat32) | bit(Dtype::kFloat64), bit(Dtype::kFloat32) | bit(Dtype::kFloat64),
        kFirst}},
      {"IsNaN", {kFloats, kFloats | kBrain, kFirst}},
      {"LSTM", {kSingle, kFloats, kAll}},
      {"LayerNormalization", {kFloats, kFloats | kBrain, kAll}},
      {"LeakyRelu", {kSingle, kFloats | kBrain, kFirst}},
      {"Less", {kFloats | kInts, kFloats | kBrain | kInts, kAll}},
      {"LessOrEqual", {kFloats | kInts, kFloats | kBrain | kInts, kAll}},
      {"Log", {kFloats, kFloats | kBrain, kFirst}},
      {"LogSoftmax", {kFloats, kFloats | kBrain, kFirst}},
      {"MatMul", {kFloats | kWide | kUnsigned, kFloats | kBrain | kWide | kUnsigned, kAll}},
      {"Max", {kFloats | kBytes | kWide | kUnsigned, kFloats | kBrain | kInts, kAll}},
      {"MaxPool", {kFloats | kBytes, kFloats | kBytes, kFirst}},
      {"Min", {kFloats | kBytes | kWide | kUnsigned, kFloats | kBrain | kInts, kAll}},
      {"Mish", {kSingle, kFloats, kFirst}},
      {"Mod", {kFloats | kInts, kFloats | kBrain | kInts, kAll}},
      {"Mul", {kFloats | kInts, kFloats | kBrain | kInts, kAll}},
      {"Neg",
       {kFloats | kWide | bit(Dtype::kInt8) | bit(Dtype::kInt16), kFloats | kBrain | kSigned,
        kFirst}},
      {"NonZero",
       {kSingle | kWide | kBool | bit(Dtype::kUint8), kFloats | kBrain | kInts | kBool, kFirst}},
      {"PRelu", {kSingle, kFloats | kBrain | kWide | kUnsigned, kAll}},
      {"Pad",
       {kFloats | kBytes | kWide | kUnsigned | kBool, kFloats | kBrain | kInts | kBool, 0b101}},
      {"Pow", {kFloats | kWide, kFloats | kBrain | kWide, kAll}},
      {"RNN", {kSingle, kFloats, kAll}},
      {"Reciprocal", {kFloats, kFloats | kBrain, kFirst}},
      {"ReduceL1", {kFloats | kWide, kFloats | kBrain | kWide | kUnsigned, kFirst}},
      {"ReduceL2", {kFloats | kWide, kFloats | kBrain | kWide | kUnsigned, kFirst}},
      {"ReduceLogSumExp", {kFloats, kFloats | kBrain | kWide | kUnsigned, kFirst}},
      {"ReduceMax",
       {kFloats | kBytes | kWide, kFloats | kBrain | kBytes | kWide | kUnsigned, kFirst}},
      {"ReduceMean", {kFloats | kWide, kFloats | kBrain | kWide | kUnsigned, kFirst}},
      {"ReduceMin",
       {kFloats | kBytes | kWide, kFloats | kBrain | kBytes | kWide | kUnsigned, kFirst}},
      {"ReduceProd", {kFloats | kWide, kFloats | kBrain | kWide | kUnsigned, kFirst}},
      {"ReduceSum", {kFloats | kWide, kFloats | kBrain | kWide | kUnsigned, kFirst}},
      {"ReduceSumSquare", {kFloats | kWide, kFloats | kBrain | kWide | kUnsigned, kFirst}},
      {"Relu",
       {kFloats | bit(Dtype::kInt8) | bit(Dtype::kInt32), kFloats | kBrain | kSigned, kFirst}},
      {"Resize", {kSingle | kBytes | bit(Dtype::kInt32), kFloats | kBrain | kInts | kBool, kFirst}},
      {"Round", {kFloats, kFloats, kFirst}},
      {"Selu", {kSingle, kFloats, kFirst}},
      {"Sigmoid", {kFloats, kFloats | kBrain, kFirst}},
      {"Sign", {kFloats | kInts | kBrain, kFloats | kBrain | kInts, kFirst}},
      {"Sin", {kFloats, kFloats, kFirst}},
      {"Sinh", {kSingle, kFloats, kFirst}},
      {"Softmax", {kFloats, kFloats | kBrain, kFirst}},
      {"Softplus", {kSingle, kFloats, kFirst}},
      {"Sqrt", {kFloats, kFloats | kBrain, kFirst}},
      {"Sub", {kFloats | kInts, kFloats | kBrain | kInts, kAll}},
      {"Tan", {kSingle, kFloats, kFirst}},
      {"Tanh", {kFloats, kFloats | kBrain, kFirst}},
      {"Tile", {kFloats | kInts | kBool, kFloats | kBrain | kInts | kBool, kFirst}},
      {"Trilu", {kFloats | kWide | kBool, kFloats | kBrain | kInts | kBool, kFirst}},
      {"Where",
       {kFloats | kBytes | kWide | bit(Dtype::kUint32), kFloats | kBrain | kInts | kBool, 0b110}},
  };
  return table;
}

}  // namespace

Dtype kernel_dtype(const RuntimeProfile& runtime, std::string_view op, Dtype dtype) {
  const auto it = kernels().find(op);
  if (it == kernels().end() || is_complex(dtype)) return dtype;
  const Kernel& kernel = it->second;
  const std::uint32_t has =
      runtime.provider == Provider::kPortable ? kernel.standard : kernel.on_cpu;
  if ((has & bit(dtype)) != 0) return dtype;
  if (is_float(dtype)) return Dtype::kFloat32;
  if (dtype == Dtype::kBool && (has & bit(Dtype::kUint8)) != 0) return Dtype::kUint8;
  if (dtype_size(dtype) < 4 && (has & bit(Dtype::kInt32)) != 0) return Dtype::kInt32;
  return (has & bit(Dtype::kInt64)) != 0 ? Dtype::kInt64 : dtype;
}

std::uint32_t kernel_inputs(std::string_view op) {
  const auto it = kernels().find(op);
  return it == kernels().end() ? 0 : it->second.inputs;
}

}  // namespace fairlead::onnx
