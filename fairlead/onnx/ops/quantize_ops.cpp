// Quantization as torchao's PT2E and NNCF write it into graphs: pairs of quantize and dequantize.
#include <string>

#include "fairlead/onnx/families.h"

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

constexpr OpRow kRows[] = {
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
