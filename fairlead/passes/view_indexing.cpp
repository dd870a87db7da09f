// index.Tensor(x [a, b], [i, j]): i counts from 0 to a along one axis of the result, j from 0 to b
// along a later one.
#include "fairlead/passes/view_indexing.h"

#include "fairlead/graph/args.h"
#include "fairlead/passes/structure.h"

namespace fairlead {
namespace {

bool fuse(Rewriter& rewriter, Node& node) {
  if (node.op != Op::index_Tensor || node.args[1].items.size() != 2) return false;
  const Graph& graph = rewriter.graph();
  const Structure look(rewriter, graph);
  const Shape &from = look.shape(node.args[0].value), &to = look.shape(node.outputs[0]);
  if (from.size() != 2) return false;
  int axes[2] = {0, 0};
  for (std::size_t k = 0; k < 2; ++k) {
    const Arg& index = node.args[1].items[k];
    const auto counted = index.kind == ArgKind::kValue ? look.ramp(index.value) : std::nullopt;
    if (!counted || !is_const(counted->offset, 0)) return false;
    axes[k] = counted->axis_from_end;
    const Shape& shape = look.shape(index.value);
    if (shape[shape.size() - static_cast<std::size_t>(-axes[k])] != from[k]) return false;
  }
  if (axes[0] >= axes[1]) return false;
  const Arg x = node.args[0];
  rewriter.become(node, Op::view, {x, shape_arg({to.begin(), to.end()})});
  return true;
}

}  // namespace

std::size_t view_indexing(Graph& graph, FusionLog&) {
  return Rewriter(graph).each([&](Rewriter& rewriter, Node& node) { return fuse(rewriter, node); });
}

}  // namespace fairlead
