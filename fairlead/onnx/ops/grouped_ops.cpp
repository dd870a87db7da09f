// Products of groups of rows with one matrix per group: mixtures of experts.
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/kernels.h"

namespace fairlead::onnx {
namespace {

// Row s of x belongs to the group g with offsets[g-1] <= s < offsets[g], and is multiplied by
// weight[g]. A Loop runs once per group that has rows; its body takes the group's rows and matrix
// and appends the product. Rows after the last offset give zeros.
Val grouped_product(Lowering& b, Val x, Val weight, Val offsets, Expr rows, Expr columns) {
  const Dtype d = work_dtype(b.dtype_of(x));
  offsets = b.cast(offsets, Dtype::kInt64);
  const Val starts = b.concat({b.ints({0}), b.slice(offsets, 0, b.ints({0}), b.ints({-1}))}, 0);
  const Val sizes = b.op("Sub", {offsets, starts});
  const Val hit = b.op("Greater", {sizes, b.size_scalar(b.expr(0))});
  const Val groups = b.squeeze(b.op("NonZero", {hit}), {0});
  const Val count = b.squeeze(b.op("Shape", {groups}), {0});
  const Shape nothing = {b.expr(0), columns};
  const Val start = b.op("Expand", {b.scalar(0, d), b.shape_tensor(nothing)});
  const auto body =
      b.body({{"", Dtype::kInt64, Shape{}}, {"", Dtype::kBool, Shape{}}, {"", d, std::nullopt}},
             [&](const Inputs& in) -> Inputs {
               const Val group = b.op("Gather", {groups, in[0]}, {attr("axis", 0)});
               const auto bound = [&](Val v) {
                 return b.unsqueeze(b.op("Gather", {v, group}, {attr("axis", 0)}), {0});
               };
               const Val part = b.cast(b.slice(x, 0, bound(starts), bound(offsets)), d);
               const Val matrix = b.cast(b.op("Gather", {weight, group}, {attr("axis", 0)}), d);
               return {in[1], b.concat({in[2], b.op("MatMul", {part, matrix})}, 0)};
             });
  const Val joined = b.op("Loop", {count, {}, start}, {{"body", body}}, d);
  const Val missing =
      b.op("Sub", {b.dim(rows), b.op("Shape", {joined}, {attr("start", 0), attr("end", 1)})});
  return b.op("Pad", {joined, b.concat({b.ints({0, 0}), missing, b.ints({0})}, 0), b.scalar(0, d)});
}

// transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor
void lower_grouped_mm(Lowering& b) {
  b.result(grouped_product(b, b.in(0), b.in(1), b.in(2), b.shape(0)[0], b.shape(1)[2]));
}

// aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None,
//   ScalarType? out_dtype=None) -> Tensor
void lower_aten_grouped_mm(Lowering& b) {
  if (b.has(3)) b.unsupported("a bias");
  if (b.rank(0) == 3 && b.rank(1) == 3) return b.result(b.op("MatMul", {b.in(0), b.in(1)}));
  if (b.rank(0) != 2 || b.rank(1) != 3)
    b.unsupported("groups along anything but the rows of the first operand");
  lower_grouped_mm(b);
}

constexpr OpRow kRows[] = {
    {"aten._grouped_mm.default", lower_aten_grouped_mm, "Loop, MatMul",
     "groups of rows only; no bias"},
    {"transformers.grouped_mm_fallback.default", lower_grouped_mm, "Loop, MatMul", ""},
};

}  // namespace

std::span<const OpRow> grouped_ops() { return kRows; }

}  // namespace fairlead::onnx
