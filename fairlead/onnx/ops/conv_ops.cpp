// Convolutions.
#include <algorithm>

#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

// A list of one integer counts for every spatial dimension.
Shape spatial(Lowering& b, std::size_t i, std::size_t count) {
  Shape list = b.integers(i);
  if (list.size() == 1) list.resize(count, Expr{list[0]});
  if (list.size() != count) {
    b.unsupported("expected " + std::to_string(count) + " numbers as argument " +
                  std::to_string(i) + ", got " + std::to_string(list.size()));
  }
  return list;
}

Ints constants(Lowering& b, const Shape& list, std::string_view what) {
  Ints values;
  for (const Expr e : list) {
    if (!is_const(e)) b.must_be_constant("the " + std::string(what), e);
    values.push_back(e->value);
  }
  return values;
}

// Zeros on both sides of the spatial dimensions, where the padding follows a size.
Val padded(Lowering& b, Val x, const Shape& padding) {
  Shape pads(2 * (padding.size() + 2), b.expr(0));
  for (std::size_t k = 0; k < padding.size(); ++k) {
    pads[2 + k] = pads[padding.size() + 4 + k] = padding[k];
  }
  return b.op("Pad", {x, b.shape_tensor(pads), b.scalar(0, b.dtype_of(x))});
}

// aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding,
//   SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor
void lower_convolution(Lowering& b) {
  if (!is_float(b.out_dtype())) b.unsupported("expected floating-point numbers");
  if (b.rank(1) < 3 || b.rank(0) != b.rank(1)) b.unsupported("expected a batch of signals");
  const std::size_t count = static_cast<std::size_t>(b.rank(1)) - 2;
  const bool transposed = b.flag(6);
  Val x = b.in(0);
  Shape padding = spatial(b, 4, count);
  if (!transposed &&
      !std::all_of(padding.begin(), padding.end(), [](Expr e) { return is_const(e); })) {
    x = padded(b, x, padding);
    padding.assign(count, b.expr(0));
  }
  Ints pads = constants(b, padding, "padding");
  for (std::size_t k = 0; k < count; ++k) pads.push_back(std::int64_t{pads[k]});
  Attributes attributes = {
      attr("strides", constants(b, spatial(b, 3, count), "stride")),
      attr("pads", pads),
      attr("dilations", constants(b, spatial(b, 5, count), "dilation")),
      attr("group", b.constant_int(8, 1)),
  };
  const Shape& weight = b.shape(1);
  Ints kernel;
  for (std::size_t k = 2; k < weight.size() && is_const(weight[k]); ++k)
    kernel.push_back(weight[k]->value);
  if (kernel.size() == count) attributes.push_back(attr("kernel_shape", kernel));
  if (transposed) {
    attributes.push_back(
        attr("output_padding", constants(b, spatial(b, 7, count), "output padding")));
  }
  b.result(
      b.op(transposed ? "ConvTranspose" : "Conv", {x, b.in(1), b.in(2)}, std::move(attributes)));
}

constexpr OpRow kRows[] = {
    {"aten._convolution.default", lower_convolution, "Conv, ConvTranspose",
     "float64 computes in float32"},
    {"aten._convolution.deprecated", lower_convolution, "Conv, ConvTranspose",
     "float64 computes in float32"},
    {"aten.convolution.default", lower_convolution, "Conv, ConvTranspose",
     "float64 computes in float32"},
};

}  // namespace

std::span<const OpRow> conv_ops() { return kRows; }

}  // namespace fairlead::onnx
