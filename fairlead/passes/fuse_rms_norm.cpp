// square = pow(x, 2) | mul(x, x);  mean = mean.dim(square, [-1], keepdim);  sum = add(mean, eps)
// root = rsqrt(sum);  y = mul(x, root) | mul(root, x);  z = mul(y, weight) | mul(weight, y)
#include "fairlead/passes/fuse_rms_norm.h"

#include "fairlead/graph/args.h"
#include "fairlead/passes/rewrite.h"

namespace fairlead {
namespace {

enum Slot : std::size_t { kX, kEps, kMean, kNorm, kShape, kWeight };

Pattern norm_by_hand() {
  Pattern square = either(call(Op::pow_Tensor_Scalar, {any(kX), number(2)}),
                          call(Op::mul_Tensor, {any(kX), any(kX)}));
  Pattern mean = call(Op::mean_dim, {std::move(square)}).as(kMean);
  Pattern sum = call(Op::add_Tensor, {std::move(mean), any(kEps), number(1)});
  return call(Op::mul_Tensor, {any(kX), call(Op::rsqrt, {std::move(sum)})}).commutes();
}

Pattern norm_by_weight() {
  Pattern norm = call(Op::rms_norm, {any(kX), any(kShape)}).as(kNorm);
  return call(Op::mul_Tensor, {std::move(norm), any(kWeight)}).commutes();
}

bool last_axis_kept(const Graph& graph, const Node& mean) {
  const std::size_t rank = graph.values[mean.args[0].value].shape.size();
  const CheckedList<Arg>& axes = mean.args[1].items;
  if (rank == 0 || axes.size() != 1 || mean.args[2].number == 0) return false;
  if (axes[0].kind != ArgKind::kInt || !is_const(axes[0].expr)) return false;
  const std::int64_t axis = axes[0].expr->value;
  return axis == -1 || axis == static_cast<std::int64_t>(rank) - 1;
}

bool is_weight(const Graph& graph, const Arg& arg, const Value& of) {
  if (arg.kind != ArgKind::kValue || graph.constant(arg.value) == nullptr) return false;
  const Value& v = graph.values[arg.value];
  return v.shape.size() == 1 && v.shape[0] == of.shape.back() && v.dtype == of.dtype;
}

// mul(x, rsqrt(..)) becomes the norm without a weight.
bool fuse(Rewriter& rewriter, const Pattern& pattern, Node& node) {
  const auto found = rewriter.match(pattern, node);
  if (!found) return false;
  const Graph& graph = rewriter.graph();
  const Arg x = found->arg(kX), eps = found->arg(kEps);
  if (x.kind != ArgKind::kValue || eps.kind != ArgKind::kFloat || eps.expr != nullptr) return false;
  const Value& value = graph.values[x.value];
  if (!last_axis_kept(graph, found->node(kMean)) || !is_const(value.shape.back()) ||
      value.dtype != graph.values[node.outputs[0]].dtype) {
    return false;
  }
  rewriter.become(node, Op::rms_norm, {x, shape_arg({value.shape.back()}), {}, eps});
  return true;
}

// A multiplication by the weight right after, and nowhere else, joins in.
bool join_weight(Rewriter& rewriter, const Pattern& pattern, Node& node) {
  const auto found = rewriter.match(pattern, node);
  if (!found) return false;
  const Node& norm = found->node(kNorm);
  const ValueId y = norm.outputs[0];
  if (norm.args[2].kind != ArgKind::kNone || rewriter.uses(y) != 1) return false;
  const Arg weight = found->arg(kWeight);
  if (!is_weight(rewriter.graph(), weight, rewriter.graph().values[y])) return false;
  std::vector<Arg> args = norm.args;
  args[2] = weight;
  rewriter.become(node, Op::rms_norm, std::move(args));
  return true;
}

}  // namespace

std::size_t fuse_rms_norm(Graph& graph) {
  const Pattern plain = norm_by_hand(), weighted = norm_by_weight();
  return Rewriter(graph).each([&](Rewriter& rewriter, Node& node) {
    return fuse(rewriter, plain, node) || join_weight(rewriter, weighted, node);
  });
}

}  // namespace fairlead
