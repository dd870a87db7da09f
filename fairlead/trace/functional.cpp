// Versions of storages.
#include "fairlead/trace/functional.h"

#include "fairlead/aten/rules/view_inverse.h"

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

}  // namespace fairlead
