// Groups slices by input and axis; a group whose constant ranges follow on each other is one split.
#include "fairlead/passes/merge_slices.h"

#include <algorithm>
#include <map>
#include <optional>

#include "fairlead/graph/args.h"

namespace fairlead {
namespace {

struct Range {
  std::size_t node;
  std::int64_t start;
  std::int64_t end;
};

}  // namespace

std::size_t merge_slices(Graph& graph) {
  std::map<std::pair<ValueId, std::int64_t>, std::vector<Range>> groups;
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    const Node& node = graph.nodes[k];
    if (node.op != "aten.slice.Tensor" || node.args[0].kind != ArgKind::kValue) continue;
    const auto& shape = graph.values[node.args[0].value].shape;
    const auto constant = [&](std::size_t i,
                              std::int64_t otherwise) -> std::optional<std::int64_t> {
      const Arg& arg = node.args[i];
      if (arg.kind == ArgKind::kNone) return otherwise;
      if (arg.kind != ArgKind::kInt || !is_const(arg.expr)) return std::nullopt;
      return arg.expr->value;
    };
    auto axis = constant(1, 0);
    if (!axis) continue;
    if (*axis < 0) *axis += static_cast<std::int64_t>(shape.size());
    if (!is_const(shape[*axis]) || constant(4, 1) != 1) continue;
    const std::int64_t size = shape[*axis]->value;
    auto start = constant(2, 0);
    auto end = constant(3, size);
    if (!start || !end) continue;
    if (*start < 0) *start += size;
    if (*end < 0) *end += size;
    groups[{node.args[0].value, *axis}].push_back({k, *start, std::min(*end, size)});
  }
  std::size_t changes = 0;
  std::vector<bool> gone(graph.nodes.size(), false);
  for (auto& [key, ranges] : groups) {
    const std::size_t first =
        std::min_element(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
          return a.node < b.node;
        })->node;
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& a, const Range& b) { return a.start < b.start; });
    std::int64_t at = 0;
    bool tiles = ranges.size() > 1;
    for (const Range& r : ranges) {
      tiles = tiles && r.start == at && r.end > r.start;
      at = r.end;
    }
    if (!tiles || at != graph.values[key.first].shape[key.second]->value) continue;
    Node split = graph.nodes[first];
    split.op = "aten.split_with_sizes.default";
    Arg sizes;
    sizes.kind = ArgKind::kList;
    split.outputs.clear();
    for (const Range& r : ranges) {
      sizes.items.push_back(int_arg(graph.pool->constant(r.end - r.start)));
      split.outputs.push_back(graph.nodes[r.node].outputs[0]);
      gone[r.node] = true;
    }
    split.args = {split.args[0], sizes, int_arg(graph.pool->constant(key.second))};
    graph.nodes[first] = std::move(split);
    gone[first] = false;
    ++changes;
  }
  std::size_t kept = 0;
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    if (gone[k]) continue;
    if (kept != k) graph.nodes[kept] = std::move(graph.nodes[k]);
    ++kept;
  }
  graph.nodes.resize(kept);
  return changes;
}

}  // namespace fairlead
