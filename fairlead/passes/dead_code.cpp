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
};

}  // namespace

std::size_t remove_dead_code(Graph& graph) {
  Liveness state{graph, std::vector<bool>(graph.values.size(), false)};
  for (const ValueId id : graph.outputs) state.use(id);
  std::vector<bool> keep(graph.nodes.size(), false);
  for (std::size_t k = graph.nodes.size(); k-- > 0;) {
    const Node& node = graph.nodes[k];
    keep[k] = std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](ValueId id) { return id != kNoValue && state.live[id]; });
    if (!keep[k]) continue;
    for (const Arg& arg : node.args) state.use(arg);
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      for (const Expr e : graph.values[id].shape) state.use(e);
    }
  }
  std::size_t kept = 0;
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    if (!keep[k]) continue;
    if (kept != k) graph.nodes[kept] = std::move(graph.nodes[k]);
    ++kept;
  }
  const std::size_t removed = graph.nodes.size() - kept;
  graph.nodes.resize(kept);
  return removed;
}

}  // namespace fairlead
