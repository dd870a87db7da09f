// Pooling to a given output size.
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/kernels.h"

namespace fairlead::onnx {
namespace {

// Along a dimension of size `in`, bin i of `out` is [floor(i*in/out), ceil((i+1)*in/out)). No bin
// is longer than ceil(in/out) + 1, so the elements of every bin are gathered into a table [out,
// longest] whose short rows repeat their last element; `valid` tells the repeats apart.
struct Bins {
  Val places;   // int64 [out, longest]
  Val valid;    // bool [out, longest]
  Val lengths;  // int64 [out, 1]
  Expr longest = nullptr;
};

Val range(Lowering& b, Expr end) {
  return b.op("Range", {b.size_scalar(b.expr(0)), b.size_scalar(end), b.size_scalar(b.expr(1))});
}

Bins make_bins(Lowering& b, Expr in, Expr out) {
  ExprPool& p = b.pool();
  Bins bins;
  const Expr divisor =
      is_const(out) ? out : p.max(out, p.constant(1));  // no bins at all are no division
  const bool divides = is_const(p.mod(in, out), 0);
  bins.longest =
      divides ? p.floordiv(in, out)
              : p.add(p.floordiv(p.add(in, p.sub(divisor, p.constant(1))), divisor), p.constant(1));
  const Val one = b.size_scalar(b.expr(1));
  const Val size = b.size_scalar(in), count = b.size_scalar(divisor);
  const Val i = b.unsqueeze(range(b, out), {1});
  const Val start = b.op("Div", {b.op("Mul", {i, size}), count});
  const Val last = b.op(
      "Div", {b.op("Sub", {b.op("Add", {b.op("Mul", {b.op("Add", {i, one}), size}), count}), one}),
              count});
  const Val place = b.op("Add", {start, range(b, bins.longest)});
  bins.valid = b.op("Less", {place, last});
  bins.places = b.op("Min", {place, b.op("Sub", {last, one})});
  bins.lengths = b.op("Sub", {last, start});
  return bins;
}

// Mean or maximum over the bins of one axis.
Val pool_axis(Lowering& b, Val x, std::int64_t axis, std::int64_t rank, Expr in, Expr out,
              bool mean) {
  if (in == out) return x;
  const std::string_view reduce = mean ? "ReduceMean" : "ReduceMax";
  if (is_const(out, 1)) return b.reduce(reduce, x, {axis}, true);
  const Bins bins = make_bins(b, in, out);
  const Val parts =
      b.op("Gather", {x, bins.places}, {attr("axis", axis)});  // [.., out, longest, ..]
  if (!mean || is_const(b.pool().mod(in, out), 0))
    return b.reduce(reduce, parts, {axis + 1}, false);
  // Valid and lengths stand at (axis, axis + 1); what follows is broadcast.
  const Dtype d = b.dtype_of(x);
  Ints after;
  for (std::int64_t k = 2; k < 2 + rank - 1 - axis; ++k) after.push_back(k);
  const auto wide = [&](Val v) { return after.empty() ? v : b.unsqueeze(v, after); };
  const Val kept = b.op("Where", {wide(bins.valid), parts, b.scalar(0, d)});
  const Val lengths = b.squeeze(bins.lengths, {1});  // [out]
  Ints later;
  for (std::int64_t k = 1; k < 1 + rank - 1 - axis; ++k) later.push_back(k);
  const Val divisor = b.cast(later.empty() ? lengths : b.unsqueeze(lengths, later), d);
  return b.op("Div", {b.reduce("ReduceSum", kept, {axis + 1}, false), divisor});
}

// aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor; 1d and 3d alike
template <std::size_t kCount>
void lower_avg(Lowering& b) {
  const Dtype d = work_dtype(b.out_dtype());
  const Shape& shape = b.shape(0);
  const std::size_t r = shape.size();
  // Whole windows of a constant size are a plain pool.
  Ints kernel;
  ExprPool& p = b.pool();
  for (std::size_t k = r - kCount; k < r; ++k) {
    const Expr in = shape[k], out = b.out_shape()[k];
    if (is_const(out, 0)) break;
    const Expr window = p.floordiv(in, out);
    if (is_const(p.mod(in, out), 0) && is_const(window)) kernel.push_back(window->value);
  }
  Val x = b.in(0, d);
  if (kernel.size() == kCount && d == Dtype::kFloat32 && r == kCount + 2) {
    return b.result(
        b.op("AveragePool", {x}, {attr("kernel_shape", kernel), attr("strides", kernel)}));
  }
  for (std::size_t k = r - kCount; k < r; ++k) {
    x = pool_axis(b, x, static_cast<std::int64_t>(k), static_cast<std::int64_t>(r), shape[k],
                  b.out_shape()[k], true);
  }
  b.result(x);
}

// The place in the plane of each bin's first maximum: the bins' elements in a row [.., k1*k2*..],
// ArgMax, and back from the place in the row to the place in the plane.
template <std::size_t kCount>
void lower_max_indices(Lowering& b, Val x) {
  const Shape& shape = b.shape(0);
  const std::size_t r = shape.size(), lead = r - kCount;
  ExprPool& p = b.pool();
  std::vector<Bins> bins;
  for (std::size_t k = 0; k < kCount; ++k)
    bins.push_back(make_bins(b, shape[lead + k], b.out_shape()[lead + k]));
  for (std::size_t k = kCount; k-- > 0;) {
    x = b.op("Gather", {x, bins[k].places}, {attr("axis", static_cast<std::int64_t>(lead + k))});
  }
  Ints perm;
  Shape from, to(b.out_shape());
  for (std::size_t k = 0; k < lead; ++k) perm.push_back(static_cast<std::int64_t>(k));
  for (std::size_t k = 0; k < kCount; ++k) perm.push_back(static_cast<std::int64_t>(lead + 2 * k));
  for (std::size_t k = 0; k < kCount; ++k)
    perm.push_back(static_cast<std::int64_t>(lead + 2 * k + 1));
  from = b.out_shape();
  Expr row = p.constant(1);
  for (const Bins& bin : bins) {
    from.push_back(bin.longest);
    row = p.mul(row, bin.longest);
  }
  to.push_back(row);
  x = b.reshape(b.transpose(x, perm), from, to);
  b.result(0, b.reduce("ReduceMax", x, {static_cast<std::int64_t>(b.out_shape().size())}, false));
  Val best = b.op("ArgMax", {x}, {attr("axis", -1), attr("keepdims", 0)});
  Val flat;
  Expr below = p.constant(1);
  for (std::size_t k = kCount; k-- > 0;) {
    const Val longest = b.size_scalar(bins[k].longest);
    Val step = k == 0 ? best : b.op("Mod", {best, longest});
    best = b.op("Div", {best, longest});
    // The bin's first place, shaped to this dimension; a first maximum is never a repeat.
    Val start = b.op("Gather", {bins[k].places, b.size_scalar(b.expr(0))}, {attr("axis", 1)});
    Ints later;
    for (std::size_t a = k + 1; a < kCount; ++a) later.push_back(static_cast<std::int64_t>(a - k));
    if (!later.empty()) start = b.unsqueeze(start, later);
    const Val place = b.op("Mul", {b.op("Add", {step, start}), b.size_scalar(below)});
    flat = flat.present() ? b.op("Add", {flat, place}) : place;
    below = p.mul(below, shape[lead + k]);
  }
  b.result(1, flat);
}

// aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor); 1d and 3d alike
template <std::size_t kCount>
void lower_max(Lowering& b) {
  const Dtype d = work_dtype(b.out_dtype());
  Val x = b.in(0, d);
  if (b.result_used(1)) return lower_max_indices<kCount>(b, x);
  const Shape& shape = b.shape(0);
  const std::size_t r = shape.size();
  for (std::size_t k = r - kCount; k < r; ++k) {
    x = pool_axis(b, x, static_cast<std::int64_t>(k), static_cast<std::int64_t>(r), shape[k],
                  b.out_shape()[k], false);
  }
  b.result(x);
}

constexpr OpRow kRows[] = {
    {"aten._adaptive_avg_pool2d.default", lower_avg<2>, "AveragePool, or Gather and ReduceMean",
     ""},
    {"aten._adaptive_avg_pool3d.default", lower_avg<3>, "AveragePool, or Gather and ReduceMean",
     ""},
    {"aten.adaptive_avg_pool1d.default", lower_avg<1>, "AveragePool, or Gather and ReduceMean", ""},
    {"aten.adaptive_avg_pool2d.default", lower_avg<2>, "AveragePool, or Gather and ReduceMean", ""},
    {"aten.adaptive_avg_pool3d.default", lower_avg<3>, "AveragePool, or Gather and ReduceMean", ""},
    {"aten.adaptive_max_pool1d.default", lower_max<1>, "Gather, ReduceMax, ArgMax", ""},
    {"aten.adaptive_max_pool2d.default", lower_max<2>, "Gather, ReduceMax, ArgMax", ""},
    {"aten.adaptive_max_pool3d.default", lower_max<3>, "Gather, ReduceMax, ArgMax", ""},
};

}  // namespace

std::span<const OpRow> adaptive_ops() { return kRows; }

}  // namespace fairlead::onnx
