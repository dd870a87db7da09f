// Counts in one sweep over the nodes.
#include "fairlead/passes/uses.h"

namespace fairlead {
namespace {

void count_arg(const Arg& arg, std::vector<std::int32_t>& count) {
  if (arg.kind == ArgKind::kValue) ++count[arg.value];
  for (const Arg& item : arg.items) count_arg(item, count);
}

}  // namespace

Uses::Uses(const Graph& graph) : producer(graph.values.size(), -1), count(graph.values.size(), 0) {
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    for (const ValueId id : graph.nodes[k].outputs) {
      if (id != kNoValue) producer[id] = static_cast<std::int32_t>(k);
    }
  }
  for_each_node(graph.nodes, [&](const Node& node) {
    for (const Arg& arg : node.args) count_arg(arg, count);
    for (const Body& body : node.bodies) {
      for (const ValueId id : body.outputs) ++count[id];
    }
  });
  for (const ValueId id : graph.outputs) ++count[id];
  for (const SymbolSource& source : graph.symbol_sources) {
    if (source.value != kNoValue) ++count[source.value];
  }
}

}  // namespace fairlead
