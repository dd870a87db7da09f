// Versions of storages, and the inverse of every view operator.
#include "fairlead/trace/functional.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "fairlead/base/error.h"
#include "fairlead/graph/args.h"

namespace fairlead {

void Functional::reserve(RunValue v) {
  if (static_cast<std::size_t>(v) >= states_.size())
    states_.resize(static_cast<std::size_t>(v) + 1);
}

void Functional::define_root(RunValue v, ValueId ssa) {
  reserve(v);
  states_[v] = {ssa, 0, kNoRunValue, 0, 0};
}

void Functional::define_view(RunValue v, RunValue parent, std::size_t node, std::size_t position) {
  reserve(v);
  states_[v] = {graph_.nodes[node].outputs[position], states_[root_of(parent)].version, parent,
                node, position};
}

RunValue Functional::root_of(RunValue v) const {
  while (states_[v].parent != kNoRunValue) v = states_[v].parent;
  return v;
}

ValueId Functional::read(RunValue v) {
  State& state = states_[v];
  if (state.parent == kNoRunValue) return state.ssa;
  const std::uint32_t version = states_[root_of(v)].version;
  if (state.version == version) return state.ssa;
  const ValueId parent = read(state.parent);
  Node again = graph_.nodes[state.node];
  again.args[0].value = parent;
  for (ValueId& output : again.outputs) {
    if (output == kNoValue) continue;
    const Value old = graph_.values[output];
    output = graph_.add_value(old.dtype, old.shape);
  }
  state.ssa = again.outputs[state.position];
  state.version = version;
  graph_.nodes.push_back(std::move(again));
  return state.ssa;
}

void Functional::write(RunValue v, ValueId updated) {
  State& state = states_[v];
  if (state.parent == kNoRunValue) {
    state.ssa = updated;
    ++state.version;
    return;
  }
  const ValueId parent = read(state.parent);
  const Node view = graph_.nodes[state.node];
  write(state.parent, scatter_into(graph_, view, state.position, parent, updated));
  state.ssa = updated;
  state.version = states_[root_of(v)].version;
}

namespace {

struct Scatter {
  Graph& graph;
  const Node& view;
  std::size_t position;
  ValueId parent;
  ValueId updated;

  ValueId emit(std::string_view op, std::vector<Arg> args) const {
    const Value like = graph.values[parent];
    const ValueId out = graph.add_value(like.dtype, like.shape);
    graph.nodes.push_back({std::string(op), std::move(args), {out}, view.module, view.source});
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
    return emit("aten.slice_scatter.default",
                {value_arg(parent), value_arg(updated), dim, start, end, step});
  }
  [[nodiscard]] ValueId into_select(Arg dim, Arg index) const {
    return emit("aten.select_scatter.default", {value_arg(parent), value_arg(updated), dim, index});
  }
};

ValueId same(const Scatter& s) { return s.updated; }
ValueId reshape(const Scatter& s) {
  return s.emit("aten.reshape.default",
                {value_arg(s.updated), shape_arg(s.graph.values[s.parent].shape)});
}
ValueId transpose(const Scatter& s) {
  return s.emit("aten.transpose.int", {value_arg(s.updated), s.view.args[1], s.view.args[2]});
}
ValueId t(const Scatter& s) { return s.emit("aten.t.default", {value_arg(s.updated)}); }
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
  return s.emit("aten.permute.default", {value_arg(s.updated), shape_arg(inverse)});
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
  return s.emit("aten.diagonal_scatter.default", {value_arg(s.parent), value_arg(s.updated),
                                                  s.view.args[1], s.view.args[2], s.view.args[3]});
}
ValueId as_strided(const Scatter& s) {
  std::vector<Arg> args = s.view.args;
  args.insert(args.begin() + 1, value_arg(s.updated));
  args[0] = value_arg(s.parent);
  return s.emit("aten.as_strided_scatter.default", std::move(args));
}
ValueId as_real(const Scatter& s) {
  return s.emit("aten.view_as_complex.default", {value_arg(s.updated)});
}
ValueId as_complex(const Scatter& s) {
  return s.emit("aten.view_as_real.default", {value_arg(s.updated)});
}

using Inverse = ValueId (*)(const Scatter&);

const std::unordered_map<std::string_view, Inverse>& inverses() {
  static const std::unordered_map<std::string_view, Inverse> table = {
      {"aten.alias.default", same},
      {"aten.detach.default", same},
      {"aten.lift_fresh.default", same},
      {"aten.contiguous.default", same},
      {"aten.view_as.default", reshape},
      {"aten.to.dtype", same},
      {"aten.view.default", reshape},
      {"aten.reshape.default", reshape},
      {"aten._unsafe_view.default", reshape},
      {"aten._reshape_alias.default", reshape},
      {"aten.flatten.using_ints", reshape},
      {"aten.unsqueeze.default", reshape},
      {"aten.squeeze.default", reshape},
      {"aten.squeeze.dim", reshape},
      {"aten.squeeze.dims", reshape},
      {"aten.transpose.int", transpose},
      {"aten.t.default", t},
      {"aten.permute.default", permute},
      {"aten.expand.default", expand},
      {"aten.slice.Tensor", slice},
      {"aten.select.int", select},
      {"aten.unbind.int", unbind},
      {"aten.split.Tensor", split},
      {"aten.split_with_sizes.default", split},
      {"aten.diagonal.default", diagonal},
      {"aten.as_strided.default", as_strided},
      {"aten.view_as_real.default", as_real},
      {"aten.view_as_complex.default", as_complex},
  };
  return table;
}

}  // namespace

ValueId scatter_into(Graph& graph, const Node& view, std::size_t position, ValueId parent,
                     ValueId updated) {
  const auto it = inverses().find(view.op);
  if (it == inverses().end()) {
    throw Error(ErrorCode::kUnsupported,
                "[export] Expected a write through a view that can be undone, got one through " +
                    view.op + " (in " + std::string(view.module) + " at " +
                    std::string(view.source) + "). Clone the tensor before writing to it.");
  }
  return it->second({graph, view, position, parent, updated});
}

}  // namespace fairlead
