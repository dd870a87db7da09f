// The kernels of ONNX Runtime's CPU provider at opsets 18 to 20, by element type.
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
constexpr std::uint32_t kBool = bit(Dtype::kBool);
constexpr std::uint32_t kBrain = bit(Dtype::kBfloat16);
constexpr std::uint32_t kFirst = 1;
constexpr std::uint32_t kAll = ~0U;

struct Kernel {
  std::uint32_t dtypes;
  std::uint32_t inputs;
};

const std::unordered_map<std::string_view, Kernel>& kernels() {
  static const std::unordered_map<std::string_view, Kernel> table = {
      {"Abs", {kFloats | kInts, kFirst}},
      {"Acos", {kSingle, kFirst}},
      {"Acosh", {kSingle, kFirst}},
      {"Add", {kFloats | kInts, kAll}},
      {"ArgMax", {kFloats | kBytes | kWide, kFirst}},
      {"ArgMin", {kFloats | kBytes | kWide, kFirst}},
      {"Asin", {kSingle, kFirst}},
      {"Asinh", {kSingle, kFirst}},
      {"Atan", {kSingle, kFirst}},
      {"Atanh", {kSingle, kFirst}},
      {"AveragePool", {kSingle, kFirst}},
      {"BatchNormalization", {kFloats, kAll}},
      {"Ceil", {kFloats, kFirst}},
      {"Clip", {kFloats | kBytes | kWide | kUnsigned, kAll}},
      {"Col2Im", {kSingle, kFirst}},
      {"Conv", {kSingle, kAll}},
      {"ConvTranspose", {kSingle, kAll}},
      {"Cos", {kFloats, kFirst}},
      {"Cosh", {kSingle, kFirst}},
      {"CumSum", {kFloats | kWide, kFirst}},
      {"DFT", {kFloats, kFirst}},
      {"Div", {kFloats | kInts, kAll}},
      {"Einsum", {kFloats | kWide, kAll}},
      {"Elu", {kSingle, kFirst}},
      {"Equal", {kFloats | kInts | kBool, kAll}},
      {"Erf", {kSingle, kFirst}},
      {"Exp", {kFloats, kFirst}},
      {"Expand", {kFloats | kInts | kBool, kFirst}},
      {"Floor", {kFloats, kFirst}},
      {"GRU", {kSingle, kAll}},
      {"Gelu", {kSingle, kFirst}},
      {"Gemm", {kFloats, kAll}},
      {"Greater", {kFloats | kInts, kAll}},
      {"GreaterOrEqual", {kFloats | kInts, kAll}},
      {"GridSample", {kFloats, kAll}},
      {"HardSigmoid", {kSingle, kFirst}},
      {"HardSwish", {kSingle, kFirst}},
      {"InstanceNormalization", {kSingle, kAll}},
      {"IsInf", {bit(Dtype::kFloat32) | bit(Dtype::kFloat64), kFirst}},
      {"IsNaN", {kFloats, kFirst}},
      {"LSTM", {kSingle, kAll}},
      {"LayerNormalization", {kFloats, kAll}},
      {"LeakyRelu", {kSingle, kFirst}},
      {"Less", {kFloats | kInts, kAll}},
      {"LessOrEqual", {kFloats | kInts, kAll}},
      {"Log", {kFloats, kFirst}},
      {"LogSoftmax", {kFloats, kFirst}},
      {"MatMul", {kFloats | kWide | kUnsigned, kAll}},
      {"Max", {kFloats | kBytes | kWide | kUnsigned, kAll}},
      {"MaxPool", {kFloats | kBytes, kFirst}},
      {"Min", {kFloats | kBytes | kWide | kUnsigned, kAll}},
      {"Mish", {kSingle, kFirst}},
      {"Mod", {kFloats | kInts, kAll}},
      {"Mul", {kFloats | kInts, kAll}},
      {"Neg", {kFloats | kWide | bit(Dtype::kInt8) | bit(Dtype::kInt16), kFirst}},
      {"NonZero", {kSingle | kWide | kBool | bit(Dtype::kUint8), kFirst}},
      {"PRelu", {kSingle, kAll}},
      {"Pad", {kFloats | kBytes | kWide | kUnsigned | kBool, 0b101}},
      {"Pow", {kFloats | kWide, kAll}},
      {"RNN", {kSingle, kAll}},
      {"Reciprocal", {kFloats, kFirst}},
      {"ReduceL1", {kFloats | kWide, kFirst}},
      {"ReduceL2", {kFloats | kWide, kFirst}},
      {"ReduceLogSumExp", {kFloats, kFirst}},
      {"ReduceMax", {kFloats | kBytes | kWide, kFirst}},
      {"ReduceMean", {kFloats | kWide, kFirst}},
      {"ReduceMin", {kFloats | kBytes | kWide, kFirst}},
      {"ReduceProd", {kFloats | kWide, kFirst}},
      {"ReduceSum", {kFloats | kWide, kFirst}},
      {"ReduceSumSquare", {kFloats | kWide, kFirst}},
      {"Relu", {kFloats | bit(Dtype::kInt8) | bit(Dtype::kInt32), kFirst}},
      {"Resize", {kSingle | kBytes | bit(Dtype::kInt32), kFirst}},
      {"Round", {kFloats, kFirst}},
      {"Selu", {kSingle, kFirst}},
      {"Sigmoid", {kFloats, kFirst}},
      {"Sign", {kFloats | kInts | kBrain, kFirst}},
      {"Sin", {kFloats, kFirst}},
      {"Sinh", {kSingle, kFirst}},
      {"Softmax", {kFloats, kFirst}},
      {"Softplus", {kSingle, kFirst}},
      {"Sqrt", {kFloats, kFirst}},
      {"Sub", {kFloats | kInts, kAll}},
      {"Tan", {kSingle, kFirst}},
      {"Tanh", {kFloats, kFirst}},
      {"Tile", {kFloats | kInts | kBool, kFirst}},
      {"Trilu", {kFloats | kWide | kBool, kFirst}},
      {"Where", {kFloats | kBytes | kWide | bit(Dtype::kUint32), 0b110}},
  };
  return table;
}

}  // namespace

Dtype kernel_dtype(std::string_view op, Dtype dtype) {
  const auto it = kernels().find(op);
  if (it == kernels().end() || (it->second.dtypes & bit(dtype)) != 0 || is_complex(dtype))
    return dtype;
  const std::uint32_t has = it->second.dtypes;
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
