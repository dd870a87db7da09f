// Groups the slices of a block by input and axis; a group whose constant ranges follow on each
// other is one split.
#include "fairlead/passes/merge_slices.h"

#include <algorithm>
#include <map>
#include <optional>

#include "fairlead/graph/args.h"
#include "fairlead/passes/rewrite.h"

namespace fairlead {
namespace {

struct Range {
  std::size_t node;
  std::int64_t start;
  std::int64_t end;
};

struct Slice {
  std::int64_t axis;
  std::int64_t start;
  std::int64_t end;
};

// slice.Tensor(self, dim, start, end, step) by steps of 1 between constant places.
std::optional<Slice> constant_slice(const Graph& graph, const Node& node) {
  if (node.op != Op::slice_Tensor || node.args[0].kind != ArgKind::kValue) return std::nullopt;
  const auto& shape = graph.values[node.args[0].value].shape;
  const auto constant = [&](std::size_t i, std::int64_t otherwise) -> std::optional<std::int64_t> {
    const Arg& arg = node.args[i];
    if (arg.kind == ArgKind::kNone) return otherwise;
    if (arg.kind != ArgKind::kInt || !is_const(arg.expr)) return std::nullopt;
    return arg.expr->value;
  };
  auto axis = constant(1, 0);
  if (!axis) return std::nullopt;
  if (*axis < 0) *axis += static_cast<std::int64_t>(shape.size());
  if (!is_const(shape[*axis]) || constant(4, 1) != 1) return std::nullopt;
  const std::int64_t size = shape[*axis]->value;
  auto start = constant(2, 0);
  auto end = constant(3, size);
  if (!start || !end) return std::nullopt;
  if (*start < 0) *start += size;
  if (*end < 0) *end += size;
  return Slice{*axis, *start, std::min(*end, size)};
}

// Whether they lie one behind the other from 0 to `size`.
bool tile(const std::vector<Range>& ranges, std::int64_t size) {
  std::int64_t at = 0;
  for (const Range& r : ranges) {
    if (r.start != at || r.end <= r.start) return false;
    at = r.end;
  }
  return ranges.size() > 1 && at == size;
}

std::size_t merge(Rewriter& rewriter, std::vector<Node>& nodes) {
  Graph& graph = rewriter.graph();
  std::map<std::pair<ValueId, std::int64_t>, std::vector<Range>> groups;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (const auto slice = constant_slice(graph, nodes[k])) {
      groups[{nodes[k].args[0].value, slice->axis}].push_back({k, slice->start, slice->end});
    }
  }
  std::size_t changes = 0;
  for (auto& [key, ranges] : groups) {
    Node& first = nodes[ranges.front().node];
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& a, const Range& b) { return a.start < b.start; });
    if (!tile(ranges, graph.values[key.first].shape[key.second]->value)) continue;
    Arg sizes;
    sizes.kind = ArgKind::kList;
    std::vector<ValueId> outputs;
    for (const Range& r : ranges) {
      sizes.items.push_back(int_arg(graph.pool->constant(r.end - r.start)));
      outputs.push_back(nodes[r.node].outputs[0]);
    }
    std::vector<Arg> args = {first.args[0], sizes, int_arg(graph.pool->constant(key.second))};
    for (const Range& r : ranges) {
      if (&nodes[r.node] != &first) rewriter.erase(nodes[r.node]);
    }
    rewriter.become(first, Op::split_with_sizes, std::move(args), std::move(outputs));
    ++changes;
  }
  return changes;
}

}  // namespace

std::size_t merge_slices(Graph& graph) { return Rewriter(graph).each_block(merge); }

}  // namespace fairlead
