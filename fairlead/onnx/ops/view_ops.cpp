// Views and rearrangements: what changes a tensor's shape or order but not its values.
#include <algorithm>

#include "fairlead/graph/places.h"
#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

// Everything whose result has the same elements in the same order.
void lower_reshape(Lowering& b) { b.result(b.reshape(b.in(0), b.shape(0), b.out_shape())); }

void lower_same(Lowering& b) { b.result(b.in(0)); }

// aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
void lower_expand(Lowering& b) { b.result(b.expand(b.in(0), b.shape(0), b.out_shape())); }

// aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
void lower_transpose(Lowering& b) {
  Ints perm(static_cast<std::size_t>(b.rank(0)));
  for (std::size_t k = 0; k < perm.size(); ++k) perm[k] = static_cast<std::int64_t>(k);
  if (!perm.empty()) std::swap(perm[b.axis(1)], perm[b.axis(2)]);
  b.result(b.transpose(b.in(0), perm));
}

// aten::t(Tensor(a) self) -> Tensor(a)
void lower_t(Lowering& b) { b.result(b.rank(0) < 2 ? b.in(0) : b.transpose(b.in(0), {1, 0})); }

// aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)
void lower_permute(Lowering& b) { b.result(b.transpose(b.in(0), b.axes(1))); }

// aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
void lower_unsqueeze(Lowering& b) { b.result(b.unsqueeze(b.in(0), {b.axis(1, b.rank(0) + 1)})); }

// aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a): only where the size is 1; a size that is
// no constant was, where the result has fewer dimensions
void lower_squeeze_dim(Lowering& b) {
  const Ints named = b.rank(0) > 0 ? b.axes(1) : Ints{};
  const Ints axes = squeezed_axes(b.shape(0), named, static_cast<std::size_t>(b.out_rank()));
  b.result(axes.empty() ? b.in(0) : b.squeeze(b.in(0), axes));
}

// aten::squeeze(Tensor(a) self) -> Tensor(a)
void lower_squeeze(Lowering& b) {
  Ints axes;
  for (std::size_t k = 0; k < b.shape(0).size(); ++k) {
    if (is_const(b.shape(0)[k], 1)) axes.push_back(static_cast<std::int64_t>(k));
  }
  b.result(axes.empty() ? b.in(0) : b.squeeze(b.in(0), axes));
}

// aten::cat(Tensor[] tensors, int dim=0) -> Tensor. A 1-d empty tensor is left out, as PyTorch
// does.
void lower_cat(Lowering& b) {
  Inputs parts;
  const Inputs given = b.ins(0);
  const auto& items = b.node().args[0].items;
  for (std::size_t k = 0; k < items.size(); ++k) {
    const Shape& shape = b.graph().values[items[k].value].shape;
    if (shape.size() == 1 && is_const(shape[0], 0) && b.out_rank() != 1) continue;
    parts.push_back(b.cast(given[k], b.out_dtype()));
  }
  const std::int64_t axis = b.has(1) ? b.axis(1, b.out_rank()) : 0;
  b.result(b.concat(parts, axis));
}

// aten::stack(Tensor[] tensors, int dim=0) -> Tensor
void lower_stack(Lowering& b) {
  const std::int64_t axis = b.has(1) ? b.axis(1, b.out_rank()) : 0;
  Inputs parts;
  for (const Val v : b.ins(0)) parts.push_back(b.unsqueeze(b.cast(v, b.out_dtype()), {axis}));
  b.result(b.concat(parts, axis));
}

// A free dimension cut into parts of one size. How many parts there are follows from it, and the
// model went through as many as it got: the file stops where there would be more or fewer.
void split_free(Lowering& b, std::int64_t axis, Expr by) {
  ExprPool& p = b.pool();
  const std::int64_t count = static_cast<std::int64_t>(b.result_count());
  const Expr parts = p.ceildiv(b.shape(0)[axis], by);
  Val stop;
  if (!is_const(parts, count)) {
    const Expr off = p.max(p.sub(parts, b.expr(count)), p.sub(b.expr(count), parts));
    stop = b.zero_where(p.sub(b.expr(1), p.min(off, b.expr(1))),
                        "a split gives " + std::to_string(count) +
                            (count == 1 ? " part" : " parts") + " as in the recorded runs");
  }
  for (std::int64_t k = 0; k < count; ++k) {
    if (!b.result_used(static_cast<std::size_t>(k))) continue;
    const Expr start = p.mul(by, b.expr(k));
    Val from = b.dim(start);
    if (stop.present()) from = b.op("Add", {from, stop});
    b.result(static_cast<std::size_t>(k), b.slice(b.in(0), axis, from, b.dim(p.add(start, by))));
  }
}

// aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[], and its
// relatives: the observed sizes of the parts say where to cut.
void lower_split(Lowering& b) {
  const std::int64_t axis = b.has(2) ? b.axis(2) : 0;
  const Arg& by = b.node().args[1];
  if (by.kind == ArgKind::kInt && !is_const(b.shape(0)[axis])) return split_free(b, axis, by.expr);
  if (b.result_count() == 1) return b.result(b.in(0));
  bool constant = true;
  Shape sizes;
  for (std::size_t k = 0; k < b.result_count(); ++k) {
    sizes.push_back(b.out_shape(k)[axis]);
    constant = constant && is_const(sizes.back());
  }
  if (constant) {
    const std::vector<Dtype> dtypes(b.result_count(), b.out_dtype());
    const Inputs parts =
        b.ops("Split", {b.in(0), b.shape_tensor(sizes)}, dtypes, {attr("axis", axis)});
    for (std::size_t k = 0; k < parts.size(); ++k) b.result(k, parts[k]);
    return;
  }
  Expr start = b.expr(0);
  for (std::size_t k = 0; k < b.result_count(); ++k) {
    const Expr end = b.pool().add(start, sizes[k]);
    if (b.result_used(k)) b.result(k, b.slice(b.in(0), axis, b.dim(start), b.dim(end)));
    start = end;
  }
}

// aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]
void lower_unbind(Lowering& b) {
  const std::int64_t axis = b.has(1) ? b.axis(1) : 0;
  for (std::size_t k = 0; k < b.result_count(); ++k) {
    if (!b.result_used(k)) continue;
    b.result(k, b.op("Gather", {b.in(0), b.size_scalar(b.expr(static_cast<std::int64_t>(k)))},
                     {attr("axis", axis)}));
  }
}

// aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt
// step=1)
void lower_slice(Lowering& b) {
  const std::int64_t axis = b.has(1) ? b.axis(1) : 0;
  // A place cuts where a free size grows beyond it, even if no run was that large.
  const Expr end_at = b.integer(3, INT64_MAX), size = b.shape(0)[axis];
  const bool to_end = end_at == size || (is_const(end_at) && end_at->value > INT32_MAX);
  const bool whole = is_const(size) || (is_const(b.integer(2, 0), 0) && to_end);
  if (b.out_shape() == b.shape(0) && whole) return b.result(b.in(0));
  const Val start = b.dim(b.integer(2, 0));
  const Val end = b.dim(b.integer(3, INT64_MAX));
  b.result(b.op("Slice", {b.in(0), start, end, b.ints({axis}), b.dim(b.integer(4, 1))}));
}

// aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
void lower_select(Lowering& b) {
  b.result(b.op("Gather", {b.in(0), b.size_scalar(b.integer(2))}, {attr("axis", b.axis(1))}));
}

// aten::repeat(Tensor self, SymInt[] repeats) -> Tensor
void lower_repeat(Lowering& b) {
  const Shape repeats = b.integers(1);
  Val v = b.in(0);
  if (repeats.size() > b.shape(0).size()) {
    Shape to(repeats.size() - b.shape(0).size(), b.expr(1));
    to.insert(to.end(), b.shape(0).begin(), b.shape(0).end());
    v = b.reshape(v, b.shape(0), to);
  }
  const bool plain =
      std::all_of(repeats.begin(), repeats.end(), [](Expr e) { return is_const(e, 1); });
  b.result(plain ? v : b.op("Tile", {v, b.shape_tensor(repeats)}));
}

// aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor
void lower_narrow(Lowering& b) {
  const Expr end = b.pool().add(b.integer(2), b.integer(3));
  b.result(b.slice(b.in(0), b.axis(1), b.dim(b.integer(2)), b.dim(end)));
}

constexpr OpRow kRows[] = {
    {"aten._reshape_alias.default", lower_reshape, "Reshape", ""},
    {"aten._unsafe_view.default", lower_reshape, "Reshape", ""},
    {"aten.alias.default", lower_same, "nothing", ""},
    {"aten.alias_copy.default", lower_same, "nothing", ""},
    {"aten.cat.default", lower_cat, "Concat", ""},
    {"aten.clone.default", lower_same, "nothing", ""},
    {"aten.contiguous.default", lower_same, "nothing", ""},
    {"aten.detach.default", lower_same, "nothing", ""},
    {"aten.detach_copy.default", lower_same, "nothing", ""},
    {"aten.expand.default", lower_expand, "Expand", ""},
    {"aten.expand_copy.default", lower_expand, "Expand", ""},
    {"aten.flatten.using_ints", lower_reshape, "Reshape", ""},
    {"aten.lift_fresh.default", lower_same, "nothing", ""},
    {"aten.lift_fresh_copy.default", lower_same, "nothing", ""},
    {"aten.narrow_copy.default", lower_narrow, "Slice", ""},
    {"aten.permute.default", lower_permute, "Transpose", ""},
    {"aten.permute_copy.default", lower_permute, "Transpose", ""},
    {"aten.repeat.default", lower_repeat, "Tile", ""},
    {"aten.reshape.default", lower_reshape, "Reshape", ""},
    {"aten.select.int", lower_select, "Gather", ""},
    {"aten.select_copy.int", lower_select, "Gather", ""},
    {"aten.slice.Tensor", lower_slice, "Slice", ""},
    {"aten.slice_copy.Tensor", lower_slice, "Slice", ""},
    {"aten.split.Tensor", lower_split, "Split, Slice", ""},
    {"aten.split_copy.Tensor", lower_split, "Split, Slice", ""},
    {"aten.split_with_sizes.default", lower_split, "Split, Slice", ""},
    {"aten.split_with_sizes_copy.default", lower_split, "Split, Slice", ""},
    {"aten.squeeze.default", lower_squeeze, "Squeeze", ""},
    {"aten.squeeze.dim", lower_squeeze_dim, "Squeeze", ""},
    {"aten.squeeze.dims", lower_squeeze_dim, "Squeeze", ""},
    {"aten.squeeze_copy.default", lower_squeeze, "Squeeze", ""},
    {"aten.squeeze_copy.dim", lower_squeeze_dim, "Squeeze", ""},
    {"aten.squeeze_copy.dims", lower_squeeze_dim, "Squeeze", ""},
    {"aten.stack.default", lower_stack, "Unsqueeze, Concat", ""},
    {"aten.t.default", lower_t, "Transpose", ""},
    {"aten.t_copy.default", lower_t, "Transpose", ""},
    {"aten.transpose.int", lower_transpose, "Transpose", ""},
    {"aten.transpose_copy.int", lower_transpose, "Transpose", ""},
    {"aten.unbind.int", lower_unbind, "Gather", ""},
    {"aten.unbind_copy.int", lower_unbind, "Gather", ""},
    {"aten.unsafe_split.Tensor", lower_split, "Split, Slice", ""},
    {"aten.unsafe_split_with_sizes.default", lower_split, "Split, Slice", ""},
    {"aten.unsqueeze.default", lower_unsqueeze, "Unsqueeze", ""},
    {"aten.unsqueeze_copy.default", lower_unsqueeze, "Unsqueeze", ""},
    {"aten.view.default", lower_reshape, "Reshape", ""},
    {"aten.view_copy.default", lower_reshape, "Reshape", ""},
};

}  // namespace

std::span<const OpRow> view_ops() { return kRows; }

}  // namespace fairlead::onnx
