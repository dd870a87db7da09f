// Fourier transforms: one DFT per dimension.
#include "fairlead/onnx/ops/fft_ops.h"

#include <cmath>

#include "fairlead/onnx/ops/formula.h"

namespace fairlead::onnx {
namespace {

enum class Way { kForward, kInverse, kOneSided };

// Along `axis` of pairs [..., 2] (or of real numbers [..., 1]). DFT wants a batch dimension in
// front.
Val dft(Lowering& b, Val x, int rank, std::int64_t axis, Way way) {
  const Dtype d = b.dtype_of(x);
  x = b.cast(x, b.avoids(Fault::kDftLosesDigits) ? Dtype::kFloat64 : b.kernel_dtype("DFT", d));
  const bool alone = rank == 1;
  if (alone) {
    x = b.unsqueeze(x, {0});
    ++axis;
  }
  Attributes attributes = {attr("inverse", way == Way::kInverse),
                           attr("onesided", way == Way::kOneSided)};
  Inputs inputs = {x};
  if (b.opset() >= 20) {
    inputs = {x, Val{}, b.size_scalar(b.expr(axis))};
  } else {
    attributes.push_back(attr("axis", axis));
  }
  const Val y = b.op("DFT", inputs, attributes);
  return b.cast(alone ? b.squeeze(y, {0}) : y, d);
}

// ONNX divides by n on the way back and by nothing on the way there; PyTorch as `normalization`
// says: 0 by nothing, 1 by sqrt(n), 2 by n.
Val normalized(Lowering& b, Val y, Expr n, std::int64_t mode, bool inverse) {
  const double power = (inverse ? 1.0 : 0.0) - (mode == 1 ? 0.5 : mode == 2 ? 1.0 : 0.0);
  if (power == 0) return y;
  const Num x = {&b, y};
  if (is_const(n)) return x * std::pow(static_cast<double>(n->value), power);
  const Num size = {&b, b.size_scalar(n, Dtype::kFloat64)};
  return x * cast(node("Pow", size, power), x.dtype());
}

Expr product(Lowering& b, const Shape& shape, const Ints& axes) {
  Expr n = b.expr(1);
  for (const std::int64_t a : axes) n = b.pool().mul(n, shape[static_cast<std::size_t>(a)]);
  return n;
}

}  // namespace

// aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor
void lower_fft_c2c(Lowering& b) {
  const bool inverse = !b.flag(3, true);
  const auto axes = b.axes(1);
  Val x = b.in(0);
  for (const std::int64_t a : axes) {
    x = dft(b, x, b.rank(0), a, inverse ? Way::kInverse : Way::kForward);
  }
  b.result(normalized(b, x, product(b, b.shape(0), axes), b.constant_int(2), inverse));
}

// aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor
//
// The last of the dims is transformed from real numbers, and may be cut to its first half.
void lower_fft_r2c(Lowering& b) {
  const auto axes = b.axes(1);
  Val x = b.unsqueeze(b.in(0), {b.rank(0)});
  x = dft(b, x, b.rank(0), axes.back(), b.flag(3) ? Way::kOneSided : Way::kForward);
  for (std::size_t k = 0; k + 1 < axes.size(); ++k)
    x = dft(b, x, b.rank(0), axes[k], Way::kForward);
  b.result(normalized(b, x, product(b, b.shape(0), axes), b.constant_int(2), false));
}

// aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor
//
// The half that was cut off the last dim is the conjugate of the other, mirrored.
void lower_fft_c2r(Lowering& b) {
  const auto axes = b.axes(1);
  const std::int64_t last = axes.back();
  const Expr n = b.integer(3);
  Val x = b.in(0);
  for (std::size_t k = 0; k + 1 < axes.size(); ++k)
    x = dft(b, x, b.rank(0), axes[k], Way::kInverse);
  const Expr half = b.pool().floordiv(n, b.expr(2));
  const Expr mirrored = b.pool().sub(n, b.pool().add(half, b.expr(1)));
  const Val head = b.slice(x, last, b.ints({0}), b.dim(b.pool().add(half, b.expr(1))));
  Val whole = head;
  if (!is_const(mirrored, 0)) {
    const Val tail = b.slice(x, last, b.dim(mirrored), b.ints({0}), -1);
    const Dtype d = b.dtype_of(x);
    const Val signs = b.concat({b.filled(1, d, Ints{1}), b.filled(-1, d, Ints{1})}, 0);
    whole = b.concat({head, b.op("Mul", {tail, signs})}, last);
  }
  const Val pairs = dft(b, whole, b.rank(0), last, Way::kInverse);
  const Val re = b.op("Gather", {pairs, b.size_scalar(b.expr(0))}, {attr("axis", -1)});
  b.result(normalized(b, re, product(b, b.out_shape(), axes), b.constant_int(2), true));
}

}  // namespace fairlead::onnx
