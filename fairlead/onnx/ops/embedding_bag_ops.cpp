// Sums, means and maxima over bags of rows.
#include <limits>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/kernels.h"

namespace fairlead::onnx {
namespace {

enum Mode : std::int64_t { kSum = 0, kMean = 1, kMax = 2 };

// aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool
// scale_grad_by_freq=False, int mode=0,
//   bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int
//   padding_idx=-1)
//   -> (Tensor, Tensor, Tensor, Tensor)
//
// Bag k holds the places from offsets[k] up to the next offset; a table [bags, places] says which.
// Sums are a product with that table.
void lower_embedding_bag(Lowering& b) {
  for (std::size_t k = 1; k < b.result_count(); ++k) {
    if (b.result_used(k)) b.unsupported("what it saves for the backward pass");
  }
  const Dtype d = work_dtype(b.out_dtype());
  const std::int64_t mode = b.constant_int(4, kSum);
  const std::int64_t padding = b.constant_int(8, -1);
  const Val indices = b.in(1, Dtype::kInt64), offsets = b.in(2, Dtype::kInt64);
  const Expr count = b.shape(1)[0];
  const Val end = b.dim(count);
  const Expr bags = b.out_shape()[0];
  const Val zero = b.ints({0});
  Val start = offsets, next;
  if (b.flag(7)) {
    start = b.slice(offsets, 0, zero, b.dim(bags));
    next = b.slice(offsets, 0, b.ints({1}), b.ints({INT64_MAX}));
  } else {
    next = b.concat({b.slice(offsets, 0, b.ints({1}), b.ints({INT64_MAX})), end}, 0);
  }
  const Val places =
      b.op("Range", {b.size_scalar(b.expr(0)), b.size_scalar(count), b.size_scalar(b.expr(1))});
  Val inside = b.op("And", {b.op("GreaterOrEqual", {places, b.unsqueeze(start, {1})}),
                            b.op("Less", {places, b.unsqueeze(next, {1})})});
  if (padding >= 0) {
    const Val real = b.op("Not", {b.op("Equal", {indices, b.size_scalar(b.expr(padding))})});
    inside = b.op("And", {inside, real});
  }
  Val rows = b.op("Gather", {b.in(0, d), indices}, {attr("axis", 0)});
  if (b.has(6)) rows = b.op("Mul", {rows, b.unsqueeze(b.in(6, d), {1})});
  const Val members = b.cast(inside, d);
  if (mode != kMax) {
    Val y = b.op("MatMul", {members, rows});
    if (mode == kMean) {
      const Val size = b.reduce("ReduceSum", members, {1}, true);
      y = b.op("Div", {y, b.op("Max", {size, b.scalar(1, d)})});
    }
    return b.result(0, y);
  }
  const Val none = b.scalar(-std::numeric_limits<double>::infinity(), d);
  const Val all = b.op("Where", {b.unsqueeze(inside, {2}), rows, none});
  const Val top = b.reduce("ReduceMax", all, {1}, false);
  const Val filled = b.op("Greater", {b.reduce("ReduceSum", members, {1}, true), b.scalar(0, d)});
  b.result(0, b.op("Where", {filled, top, b.scalar(0, d)}));
}

constexpr OpRow kRows[] = {
    {"aten._embedding_bag.default", lower_embedding_bag, "Gather, MatMul",
     "only the bags, not what it saves"},
    {"aten._embedding_bag_forward_only.default", lower_embedding_bag, "Gather, MatMul",
     "only the bags, not what it saves"},
};

}  // namespace

std::span<const OpRow> embedding_bag_ops() { return kRows; }

}  // namespace fairlead::onnx
