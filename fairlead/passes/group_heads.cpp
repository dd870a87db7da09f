// key = repeat(few keys), value = repeat(few values), as often.
#include "fairlead/passes/group_heads.h"

#include "fairlead/graph/args.h"
#include "fairlead/passes/structure.h"

namespace fairlead {
namespace {

bool fuse(Rewriter& rewriter, Node& node) {
  if (node.op != Op::scaled_dot_product_attention || node.args[7].number != 0) return false;
  const Structure look(rewriter, rewriter.graph());
  const ValueId key = look.unrepeated(node.args[1].value),
                value = look.unrepeated(node.args[2].value);
  const Shape &few = look.shape(key), &all = look.shape(node.args[1].value);
  if (few.size() != 4 || few[1] == all[1] || look.shape(value)[1] != few[1]) return false;
  const ValueId before[] = {node.args[1].value, node.args[2].value};
  std::vector<Arg> args(node.args.begin(), node.args.end());
  args[1] = value_arg(key);
  args[2] = value_arg(value);
  args[7] = bool_arg(true);
  rewriter.become(node, Op::scaled_dot_product_attention, std::move(args));
  for (const ValueId id : before) rewriter.sweep(id);
  return true;
}

}  // namespace

std::size_t group_heads(Graph& graph) {
  return Rewriter(graph).each([&](Rewriter& rewriter, Node& node) { return fuse(rewriter, node); });
}

}  // namespace fairlead
