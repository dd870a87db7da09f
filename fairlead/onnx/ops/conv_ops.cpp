// Convolutions.
#include <algorithm>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/kernels.h"

namespace fairlead::onnx {
namespace {

// A list of one integer counts for every spatial dimension.
// Times the taps of a filter it is a number of 64 bits.
constexpr std::int64_t kMostStep = (std::int64_t{1} << 31) - 1;

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
    if (e->value > kMostStep || e->value < -kMostStep) {
      b.unsupported("expected a " + std::string(what) + " of " + std::to_string(kMostStep) +
                    " at most, got " + std::to_string(e->value));
    }
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

constexpr std::int64_t kMostTaps = 64;

// One filter for each channel, and as many channels as an input has (groups=x.shape[1]): Conv has
// the number of groups as an attribute, so the taps of the filter are added up one by one.
bool by_taps(Lowering& b, std::size_t count) {
  const Shape &x = b.shape(0), &weight = b.shape(1);
  const Expr groups = b.integer(8, 1);
  if (is_const(groups) || b.flag(6) || groups != x[1] || groups != weight[0]) return false;
  std::int64_t taps = 1;
  for (std::size_t k = 2; k < weight.size(); ++k) {
    if (!is_const(weight[k]) || weight[k]->value > kMostTaps) return false;
    taps *= weight[k]->value;
  }
  if (!is_const(weight[1], 1) || taps > kMostTaps || taps < 1) return false;
  const Dtype d = work_dtype(b.out_dtype());
  const Ints strides = constants(b, spatial(b, 3, count), "stride");
  const Ints dilations = constants(b, spatial(b, 5, count), "dilation");
  const Val input = padded(b, b.in(0, d), spatial(b, 4, count));
  const Val filters = b.reshape(b.in(1, d), weight, {groups, b.expr(taps)});
  ExprPool& p = b.pool();
  Ints axes = {0};  // of what a filter lacks beside its channel
  for (std::size_t k = 0; k < count; ++k) axes.push_back(static_cast<std::int64_t>(k) + 2);
  Val sum;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    Val part = input;
    std::int64_t rest = tap;
    for (std::size_t k = count; k-- > 0;) {
      const std::int64_t start = rest % weight[k + 2]->value * dilations[k];
      rest /= weight[k + 2]->value;
      const Expr last = p.mul(p.sub(b.out_shape()[k + 2], b.expr(1)), b.expr(strides[k]));
      const Shape end = {p.add(last, b.expr(start + 1))};
      part = b.slice(part, static_cast<std::int64_t>(k) + 2, b.ints({start}), b.shape_tensor(end),
                     strides[k]);
    }
    const Val factor = b.op("Gather", {filters, b.size_scalar(b.expr(tap))}, {attr("axis", 1)});
    const Val product = b.op("Mul", {part, b.unsqueeze(factor, axes)});
    sum = sum.present() ? b.op("Add", {sum, product}) : product;
  }
  if (const Val bias = b.in(2, d); bias.present()) {
    sum = b.op("Add", {sum, b.unsqueeze(bias, axes)});
  }
  b.result(sum);
  return true;
}

// aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding,
//   SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor
void lower_convolution(Lowering& b) {
  if (!is_float(b.out_dtype())) b.unsupported("expected floating-point numbers");
  if (b.rank(1) < 3 || b.rank(0) != b.rank(1)) b.unsupported("expected a batch of signals");
  const std::size_t count = static_cast<std::size_t>(b.rank(1)) - 2;
  if (by_taps(b, count)) return;
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
     "float64 computes in float32; groups that vary: one filter of up to 64 taps for each channel"},
};

}  // namespace

std::span<const OpRow> conv_ops() { return kRows; }

}  // namespace fairlead::onnx
