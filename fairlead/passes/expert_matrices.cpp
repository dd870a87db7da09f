// grouped_mm(rows, transpose(weight, 1, 2), ends), weight a constant.
#include "fairlead/passes/expert_matrices.h"

#include <utility>

#include "fairlead/graph/args.h"
#include "fairlead/passes/structure.h"

namespace fairlead {
namespace {

bool is_axis(const Arg& arg, std::int64_t axis) {
  return arg.kind == ArgKind::kInt && (is_const(arg.expr, axis) || is_const(arg.expr, axis - 3));
}

bool turn(Rewriter& rewriter, Node& node) {
  if (node.op != Op::_grouped_mm && node.op != Op::transformers_grouped_mm_fallback) return false;
  const ValueId given = node.args[1].value;
  const Node* transposed = rewriter.producer(given);
  if (transposed == nullptr || transposed->op != Op::transpose_int || rewriter.uses(given) != 1) {
    return false;
  }
  const Arg &a = transposed->args[1], &b = transposed->args[2];
  if (!((is_axis(a, 1) && is_axis(b, 2)) || (is_axis(a, 2) && is_axis(b, 1)))) return false;
  const ValueId source = transposed->args[0].value;
  const Constant* weight = rewriter.graph().constant(source);
  if (weight == nullptr || weight->dims.size() != 3 || rewriter.uses(source) != 1) return false;
  Constant made = *weight;
  if (made.strides.empty()) made.strides = {made.dims[1] * made.dims[2], made.dims[2], 1};
  std::swap(made.dims[1], made.dims[2]);
  std::swap(made.strides[1], made.strides[2]);
  const Value& value = rewriter.graph().values[source];
  const Dtype dtype = value.dtype;
  std::string name = value.name;
  const ValueId turned = rewriter.add_constant(dtype, std::move(made), std::move(name));
  std::vector<Arg> args = node.args;
  args[1] = value_arg(turned);
  const OpName op = node.op;
  rewriter.become(node, op, std::move(args));
  rewriter.sweep(given);
  return true;
}

}  // namespace

std::size_t expert_matrices(Graph& graph) {
  return Rewriter(graph).each([&](Rewriter& rewriter, Node& node) { return turn(rewriter, node); });
}

}  // namespace fairlead
