// Products of groups of rows with one matrix per group: mixtures of experts.
#include <limits>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/kernels.h"
#include "fairlead/passes/expert_matrices.h"

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

// The matrices of few groups, where they are constants that lie in memory.
const Constant* few_matrices(Lowering& b) {
  const Constant* c = b.graph().constant(b.node().args[1].value);
  const bool few = c != nullptr && c->data != nullptr && !c->owned && c->dims.size() == 3 &&
                   c->dims[0] > 0 && c->dims[0] <= kFewExperts;
  return few && work_dtype(b.dtype(1)) == b.dtype(1) && b.dtype(0) == b.dtype(1) ? c : nullptr;
}

// The same as a product for each group, of none or more rows: runtimes pack constant matrices.
Val unrolled_product(Lowering& b, const Constant& weight) {
  const Dtype d = b.dtype(0);
  const auto groups = static_cast<std::size_t>(weight.dims[0]);
  const Val count = b.dim(b.shape(0)[0]);
  const Val ends = b.op("Min", {b.cast(b.in(2), Dtype::kInt64), count});  // as slices end
  const Val bounds = b.concat({b.ints({0}), ends, count}, 0);
  const Val sizes = b.op(
      "Sub", {b.slice(bounds, 0, b.ints({1}), b.ints({std::numeric_limits<std::int64_t>::max()})),
              b.slice(bounds, 0, b.ints({0}), b.ints({-1}))});
  const Inputs rows =
      b.ops("Split", {b.in(0), sizes}, std::vector<Dtype>(groups + 1, d), {attr("axis", 0)});
  const std::string& name = b.graph().values[b.node().args[1].value].name;
  std::vector<std::int64_t> strides = weight.strides;
  if (strides.empty()) strides = {weight.dims[1] * weight.dims[2], weight.dims[2], 1};
  Inputs products;
  for (std::size_t g = 0; g < groups; ++g) {
    TensorData data;
    data.dtype = d;
    data.dims = {weight.dims[1], weight.dims[2]};
    data.strides = {strides[1], strides[2]};
    data.data = weight.data + static_cast<std::int64_t>(g) * strides[0] *
                                  static_cast<std::int64_t>(dtype_size(d));
    const Val matrix =
        b.constant(std::move(data), name.empty() ? name : name + "." + std::to_string(g));
    products.push_back(b.op("MatMul", {rows[g], matrix}));
  }
  // What is after the last group is zero.
  const Val rest = b.op("Shape", {rows[groups]}, {attr("start", 0), attr("end", 1)});
  const Val pads = b.concat({b.ints({0, 0}), rest, b.ints({0})}, 0);
  return b.op("Pad", {b.concat(products, 0), pads, b.scalar(0, d)});
}

// transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor
void lower_grouped_mm(Lowering& b) {
  if (const Constant* few = few_matrices(b)) return b.result(unrolled_product(b, *few));
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
    {"aten._grouped_mm.default", lower_aten_grouped_mm, "Split, MatMul; Loop",
     "groups of rows only; no bias"},
    {"transformers.grouped_mm_fallback.default", lower_grouped_mm, "Split, MatMul; Loop", ""},
};

}  // namespace

std::span<const OpRow> grouped_ops() { return kRows; }

}  // namespace fairlead::onnx
