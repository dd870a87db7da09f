// Quantization as torchao's PT2E and NNCF write it into graphs: pairs of quantize and dequantize.
#include <string>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"

namespace fairlead::onnx {
namespace {

// The element type of the quantized side, refused where ONNX has no form for it.
Dtype stored(Lowering& b, Dtype dtype) {
  const bool wide = dtype == Dtype::kInt16 || dtype == Dtype::kUint16;
  if (dtype == Dtype::kInt8 || dtype == Dtype::kUint8 || (wide && b.opset() >= 21)) return dtype;
  b.unsupported("ONNX quantizes to 8 bits, and to 16 from opset 21, not to " +
                std::string(dtype_name(dtype)));
}

// Integers that use a part of their type's range (-127 to 127) are clipped after.
Val within(Lowering& b, Val v, Dtype dtype, double low, double high) {
  if (low <= Lowering::lowest(dtype) && high >= Lowering::highest(dtype)) return v;
  return b.op("Clip", {v, b.scalar(low, dtype), b.scalar(high, dtype)});
}

// quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point,
//     int quant_min, int quant_max, ScalarType dtype) -> Tensor
//
// PyTorch multiplies by 1 / scale, ONNX divides: a value within rounding of the middle of two steps
// may go the other way.
void lower_quantize_per_tensor(Lowering& b) {
  const Dtype dtype = stored(b, b.out_dtype());
  const Val v = b.op("QuantizeLinear",
                     {b.in(0, Dtype::kFloat32), b.scalar(b.number(1), Dtype::kFloat32),
                      b.scalar(b.number(2), dtype)},
                     {}, dtype);
  b.result(within(b, v, dtype, b.number(3), b.number(4)));
}

// quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points,
//     int axis, int quant_min, int quant_max, ScalarType dtype) -> Tensor
void lower_quantize_per_channel(Lowering& b) {
  const Dtype dtype = stored(b, b.out_dtype());
  const Val v =
      b.op("QuantizeLinear", {b.in(0, Dtype::kFloat32), b.in(1, Dtype::kFloat32), b.in(2, dtype)},
           {attr("axis", b.axis(3))}, dtype);
  b.result(within(b, v, dtype, b.number(4), b.number(5)));
}

// quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point,
//     int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor
void lower_dequantize_per_tensor(Lowering& b) {
  const Dtype dtype = stored(b, b.dtype(0));
  b.result(b.op("DequantizeLinear",
                {b.in(0), b.scalar(b.number(1), Dtype::kFloat32), b.scalar(b.number(2), dtype)}, {},
                Dtype::kFloat32));
}

// quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points,
//     int axis, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None)
//     -> Tensor
void lower_dequantize_per_channel(Lowering& b) {
  const Dtype dtype = stored(b, b.dtype(0));
  Inputs inputs = {b.in(0), b.in(1, Dtype::kFloat32)};
  if (b.has(2)) inputs.push_back(b.in(2, dtype));
  b.result(b.op("DequantizeLinear", inputs, {attr("axis", b.axis(3))}, Dtype::kFloat32));
}

constexpr std::string_view kLimits = "8 bits, 16 from opset 21";

// aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point,
//   int quant_min, int quant_max) -> (Tensor output, Tensor mask)
//
// Rounded to steps and back, in floats: PyTorch multiplies by the inverse of the scale, so that
// QuantizeLinear, which divides, would be a whole step away where that rounds otherwise.
void fake_quantize(Lowering& b, Num scale, Num zero, std::size_t low) {
  const Num x = arg(b);
  const Num place = node("Round", x * node("Reciprocal", scale)) + zero;
  const double least = b.number(low), most = b.number(low + 1);
  const Num kept = min(max(place, least), most);
  b.result(0, (kept - zero) * scale);
  if (b.result_count() > 1 && b.result_used(1)) {
    b.result(1, both(place >= least, place <= most));
  }
}

void lower_fake_quantize(Lowering& b) { fake_quantize(b, arg(b, 1), arg(b, 2), 3); }

// aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale,
//   Tensor zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max)
void lower_fake_quantize_switched(Lowering& b) {
  fake_quantize(b, arg(b, 1), arg(b, 2), 4);
  const Val on = b.op("Reshape", {b.in(3, Dtype::kBool), b.ints({})});
  b.result(0, b.op("Where", {on, b.value(b.node().outputs[0]), b.in(0, b.out_dtype())}));
}

// aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point,
//   int axis, int quant_min, int quant_max)
void lower_fake_quantize_channels(Lowering& b) {
  std::vector<std::int64_t> after;
  for (std::int64_t k = b.axis(3) + 1; k < b.rank(0); ++k) after.push_back(k - b.axis(3));
  const auto wide = [&](Num v) { return after.empty() ? v : Num{&b, b.unsqueeze(v, after)}; };
  fake_quantize(b, wide(arg(b, 1)), wide(arg(b, 2)), 4);
}

constexpr OpRow kRows[] = {
    {"aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
     lower_fake_quantize_switched, "Mul, Round, Max, Min", ""},
    {"aten.fake_quantize_per_channel_affine_cachemask.default", lower_fake_quantize_channels,
     "Mul, Round, Max, Min", ""},
    {"aten.fake_quantize_per_tensor_affine_cachemask.default", lower_fake_quantize,
     "Mul, Round, Max, Min", ""},
    {"quantized_decomposed.dequantize_per_channel.default", lower_dequantize_per_channel,
     "DequantizeLinear", kLimits},
    {"quantized_decomposed.dequantize_per_tensor.default", lower_dequantize_per_tensor,
     "DequantizeLinear", kLimits},
    {"quantized_decomposed.quantize_per_channel.default", lower_quantize_per_channel,
     "QuantizeLinear, Clip", kLimits},
    {"quantized_decomposed.quantize_per_tensor.default", lower_quantize_per_tensor,
     "QuantizeLinear, Clip", kLimits},
};

}  // namespace

std::span<const OpRow> quantize_ops() { return kRows; }

}  // namespace fairlead::onnx
