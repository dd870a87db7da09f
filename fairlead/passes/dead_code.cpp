// One backward sweep: symbols are born before they are used, so a single pass sees them all.
#include "fairlead/passes/dead_code.h"

#include <algorithm>

namespace fairlead {
namespace {

struct Liveness {
  const Graph& graph;
  std::vector<bool> live;

  void use(ValueId id) {
    if (id != kNoValue) live[id] = true;
  }
  void use(Expr e) {
    if (e == nullptr || is_const(e)) return;
    for (const SymbolId id : graph.pool->symbols_of(e)) {
      if (id < graph.symbol_sources.size()) use(graph.symbol_sources[id].value);
    }
  }
  void use(const Arg& arg) {
    use(arg.value);
    use(arg.expr);
    for (const Arg& item : arg.items) use(item);
  }

  // What is needed of `nodes`, the last first; the rest goes. Returns how many went.
  std::size_t sweep(std::vector<Node>& nodes) {
    std::size_t removed = 0;
    std::vector<bool> keep(nodes.size(), false);
    for (std::size_t k = nodes.size(); k-- > 0;) {
      Node& node = nodes[k];
      keep[k] = std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](ValueId id) { return id != kNoValue && live[id]; });
      if (!keep[k]) continue;
      for (Body& body : node.bodies) {
        for (const ValueId id : body.outputs) use(id);
        for (const ValueId id : body.inputs) use_shape(id);
        removed += sweep(body.nodes);
      }
      for (const Arg& arg : node.args) use(arg);
      for (const ValueId id : node.outputs) use_shape(id);
    }
    std::size_t kept = 0;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (!keep[k]) continue;
      if (kept != k) nodes[kept] = std::move(nodes[k]);
      ++kept;
    }
    removed += nodes.size() - kept;
    nodes.resize(kept);
    return removed;
  }

  void use_shape(ValueId id) {
    if (id == kNoValue) return;
    for (const Expr e : graph.values[id].shape) use(e);
  }
};

}  // namespace

std::size_t remove_dead_code(Graph& graph) { return remove_dead_code_but(graph, {}); }

std::size_t remove_dead_code_but(Graph& graph, std::span<const Expr> kept) {
  Liveness state{graph, std::vector<bool>(graph.values.size(), false)};
  for (const ValueId id : graph.outputs) state.use(id);
  for (const Requirement& asked : graph.requirements) state.use(asked.holds);
  for (const Expr e : kept) state.use(e);
  return state.sweep(graph.nodes);
}

}  // namespace fairlead
