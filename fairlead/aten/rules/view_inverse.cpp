// One row per view operator: how what was written through it gets into the tensor it was cut from.
#include "fairlead/aten/rules/view_inverse.h"

#include <algorithm>

#include "fairlead/aten/rules/rule_table.h"
#include "fairlead/base/error.h"
#include "fairlead/graph/args.h"

namespace fairlead {
namespace {

struct Scatter {
  Graph& graph;
  const Node& view;
  std::size_t position;
  ValueId parent;
  ValueId updated;

  ValueId emit(Op op, std::vector<Arg> args) const {
    const Value like = graph.values[parent];
    const ValueId out = graph.add_value(like.dtype, like.shape);
    graph.nodes.push_back({op, std::move(args), {out}, view.module, view.source});
    return out;
  }
  [[nodiscard]] ExprPool& pool() const { return *graph.pool; }
  [[nodiscard]] std::int64_t axis(std::size_t arg) const {
    const Arg& given = view.args[arg];
    if (given.kind != ArgKind::kInt || !is_const(given.expr)) {
      throw Error(ErrorCode::kInvalidInput, "[export] Expected a constant axis, got another (" +
                                                view.op + " at " + std::string(view.source) + ").");
    }
    const std::int64_t dim = given.expr->value;
    return dim < 0 ? dim + static_cast<std::int64_t>(graph.values[parent].shape.size()) : dim;
  }
  [[nodiscard]] Arg constant(std::int64_t value) const { return int_arg(pool().constant(value)); }
  // Writes `updated` into [start, end) of `dim`.
  [[nodiscard]] ValueId into_slice(Arg dim, Arg start, Arg end, Arg step) const {
    if (graph.values[parent].shape == graph.values[updated].shape) return updated;
    return emit(Op::slice_scatter, {value_arg(parent), value_arg(updated), dim, start, end, step});
  }
  [[nodiscard]] ValueId into_select(Arg dim, Arg index) const {
    return emit(Op::select_scatter, {value_arg(parent), value_arg(updated), dim, index});
  }
};

ValueId same(const Scatter& s) { return s.updated; }
ValueId reshape(const Scatter& s) {
  return s.emit(Op::reshape, {value_arg(s.updated), shape_arg(s.graph.values[s.parent].shape)});
}
ValueId transpose(const Scatter& s) {
  return s.emit(Op::transpose_int, {value_arg(s.updated), s.view.args[1], s.view.args[2]});
}
ValueId t(const Scatter& s) { return s.emit(Op::t, {value_arg(s.updated)}); }
ValueId permute(const Scatter& s) {
  const auto& dims = s.view.args[1].items;
  Shape inverse(dims.size(), nullptr);
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const bool plain = dims[k].kind == ArgKind::kInt && is_const(dims[k].expr);
    std::int64_t d = plain ? dims[k].expr->value : INT64_MAX;
    if (d < 0) d += static_cast<std::int64_t>(dims.size());
    inverse[static_cast<std::size_t>(d)] = s.pool().constant(static_cast<std::int64_t>(k));
  }
  if (std::find(inverse.begin(), inverse.end(), nullptr) != inverse.end()) {
    throw Error(ErrorCode::kInvalidInput, "[export] Expected a permutation, got an axis twice (" +
                                              s.view.op + " at " + std::string(s.view.source) +
                                              ").");
  }
  return s.emit(Op::permute, {value_arg(s.updated), shape_arg(inverse)});
}
ValueId expand(const Scatter& s) {
  if (s.graph.values[s.parent].shape == s.graph.values[s.updated].shape) return s.updated;
  throw Error(
      ErrorCode::kUnsupported,
      "[export] Expected a write to a tensor with one element per place, got a write through "
      "expand (at " +
          std::string(s.view.source) + "). Clone the tensor before writing to it.");
}
ValueId slice(const Scatter& s) {
  return s.into_slice(s.view.args[1], s.view.args[2], s.view.args[3], s.view.args[4]);
}
ValueId select(const Scatter& s) { return s.into_select(s.view.args[1], s.view.args[2]); }
ValueId unbind(const Scatter& s) {
  return s.into_select(s.view.args[1], s.constant(static_cast<std::int64_t>(s.position)));
}
// split and split_with_sizes: the part starts after the parts before it, by their observed sizes.
ValueId split(const Scatter& s) {
  const std::int64_t axis = s.axis(2);
  Expr start = s.pool().constant(0);
  for (std::size_t k = 0; k < s.position; ++k) {
    start = s.pool().add(start, s.graph.values[s.view.outputs[k]].shape[axis]);
  }
  const Expr end = s.pool().add(start, s.graph.values[s.updated].shape[axis]);
  return s.into_slice(s.constant(axis), int_arg(start), int_arg(end), s.constant(1));
}
ValueId diagonal(const Scatter& s) {
  return s.emit(Op::diagonal_scatter, {value_arg(s.parent), value_arg(s.updated), s.view.args[1],
                                       s.view.args[2], s.view.args[3]});
}
ValueId as_strided(const Scatter& s) {
  std::vector<Arg> args = s.view.args;
  args.insert(args.begin() + 1, value_arg(s.updated));
  args[0] = value_arg(s.parent);
  return s.emit(Op::as_strided_scatter, std::move(args));
}
ValueId as_real(const Scatter& s) { return s.emit(Op::view_as_complex, {value_arg(s.updated)}); }
ValueId as_complex(const Scatter& s) { return s.emit(Op::view_as_real, {value_arg(s.updated)}); }

using Inverse = ValueId (*)(const Scatter&);

constexpr RuleRow<Inverse> kRows[] = {
    {"aten._reshape_alias.default", reshape},
    {"aten._unsafe_view.default", reshape},
    {"aten.alias.default", same},
    {"aten.as_strided.default", as_strided},
    {"aten.contiguous.default", same},
    {"aten.detach.default", same},
    {"aten.diagonal.default", diagonal},
    {"aten.expand.default", expand},
    {"aten.flatten.using_ints", reshape},
    {"aten.lift_fresh.default", same},
    {"aten.permute.default", permute},
    {"aten.reshape.default", reshape},
    {"aten.select.int", select},
    {"aten.slice.Tensor", slice},
    {"aten.split.Tensor", split},
    {"aten.split_with_sizes.default", split},
    {"aten.squeeze.default", reshape},
    {"aten.squeeze.dim", reshape},
    {"aten.squeeze.dims", reshape},
    {"aten.t.default", t},
    {"aten.to.dtype", same},
    {"aten.transpose.int", transpose},
    {"aten.unbind.int", unbind},
    {"aten.unsqueeze.default", reshape},
    {"aten.view.default", reshape},
    {"aten.view_as.default", reshape},
    {"aten.view_as_complex.default", as_complex},
    {"aten.view_as_real.default", as_real},
};

}  // namespace

ValueId scatter_into(Graph& graph, const Node& view, std::size_t position, ValueId parent,
                     ValueId updated) {
  static const RuleTable<Inverse> inverses = {kRows};
  const Inverse inverse = inverses.of(view.op);
  if (inverse == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                "[export] Expected a write through a view that can be undone, got one through " +
                    view.op + " (in " + std::string(view.module) + " at " +
                    std::string(view.source) + "). Clone the tensor before writing to it.");
  }
  return inverse({graph, view, position, parent, updated});
}

}  // namespace fairlead
