// Matches backwards from the multiplication by rsqrt:
//   square = pow(x, 2) | mul(x, x);  mean = mean.dim(square, [-1], keepdim);  sum = add(mean, eps)
//   root = rsqrt(sum);  y = mul(x, root) | mul(root, x);  z = mul(y, weight) | mul(weight, y)
#include "fairlead/passes/fuse_rms_norm.h"

#include "fairlead/graph/args.h"
#include "fairlead/passes/uses.h"

namespace fairlead {
namespace {

struct Matcher {
  Graph& graph;
  const Uses& uses;

  [[nodiscard]] const Node* made_by(const Arg& arg, std::string_view op) const {
    if (arg.kind != ArgKind::kValue) return nullptr;
    const std::int32_t k = uses.producer[arg.value];
    return k >= 0 && graph.nodes[k].op == op ? &graph.nodes[k] : nullptr;
  }

  // x where `node` is x * rsqrt(mean(x^2) + eps), else kNoValue.
  [[nodiscard]] ValueId normalised(const Node& node, double& eps) const {
    for (const int root_at : {0, 1}) {
      const Arg& x = node.args[1 - root_at];
      const Node* root = made_by(node.args[root_at], "aten.rsqrt.default");
      if (root == nullptr || x.kind != ArgKind::kValue) continue;
      const Node* sum = made_by(root->args[0], "aten.add.Tensor");
      if (sum == nullptr || !adds_number(*sum)) continue;
      const Node* mean = made_by(sum->args[0], "aten.mean.dim");
      if (mean == nullptr || !last_axis_kept(*mean)) continue;
      const Node* square = made_by(mean->args[0], "aten.pow.Tensor_Scalar");
      if (square != nullptr) {
        const Arg& power = square->args[1];
        const bool two = power.kind == ArgKind::kInt ? is_const(power.expr, 2)
                                                     : power.expr == nullptr && power.number == 2;
        if (!two || square->args[0].value != x.value) continue;
      } else {
        square = made_by(mean->args[0], "aten.mul.Tensor");
        if (square == nullptr || square->args[0].value != x.value ||
            square->args[1].value != x.value) {
          continue;
        }
      }
      eps = sum->args[1].number;
      return x.value;
    }
    return kNoValue;
  }

  // add(mean, eps, alpha = 1)
  [[nodiscard]] static bool adds_number(const Node& sum) {
    const Arg& eps = sum.args[1];
    if (eps.kind != ArgKind::kFloat || eps.expr != nullptr) return false;
    if (sum.args.size() < 3) return true;
    const Arg& alpha = sum.args[2];
    return alpha.kind == ArgKind::kInt ? is_const(alpha.expr, 1)
                                       : alpha.expr == nullptr && alpha.number == 1;
  }

  [[nodiscard]] bool last_axis_kept(const Node& mean) const {
    const auto& shape = graph.values[mean.args[0].value].shape;
    if (shape.empty()) return false;
    if (mean.args[1].items.size() != 1 || mean.args[2].number == 0 ||
        mean.args[1].items[0].kind != ArgKind::kInt || !is_const(mean.args[1].items[0].expr)) {
      return false;
    }
    const std::int64_t axis = mean.args[1].items[0].expr->value;
    return axis == -1 || axis == static_cast<std::int64_t>(shape.size()) - 1;
  }

  [[nodiscard]] bool is_weight(const Arg& arg, const Value& of) const {
    if (arg.kind != ArgKind::kValue || graph.constant(arg.value) == nullptr) return false;
    const Value& v = graph.values[arg.value];
    return v.shape.size() == 1 && v.shape[0] == of.shape.back() && v.dtype == of.dtype;
  }
};

}  // namespace

std::size_t fuse_rms_norm(Graph& graph) {
  const Uses uses(graph);
  const Matcher match{graph, uses};
  std::size_t changes = 0;
  std::vector<bool> done(graph.nodes.size(), false);
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    Node& node = graph.nodes[k];
    if (node.op != "aten.mul.Tensor" || done[k]) continue;
    double eps = 0;
    const ValueId x = match.normalised(node, eps);
    if (x == kNoValue || graph.values[x].dtype != graph.values[node.outputs[0]].dtype ||
        !is_const(graph.values[x].shape.back())) {
      continue;
    }
    Arg input, number;
    input.kind = ArgKind::kValue;
    input.value = x;
    number.kind = ArgKind::kFloat;
    number.number = eps;
    node.op = "aten.rms_norm.default";
    node.args = {input, shape_arg({graph.values[x].shape.back()}), {}, number};
    ++changes;
  }
  // A multiplication by the weight right after, and nowhere else, joins in.
  for (Node& node : graph.nodes) {
    if (node.op != "aten.mul.Tensor") continue;
    for (const int y_at : {0, 1}) {
      const Arg& y = node.args[y_at];
      const Node* norm = match.made_by(y, "aten.rms_norm.default");
      if (norm == nullptr || norm->args[2].kind != ArgKind::kNone || uses.count[y.value] != 1)
        continue;
      const Arg weight = node.args[1 - y_at];
      if (!match.is_weight(weight, graph.values[y.value])) continue;
      std::vector<Arg> args = norm->args;
      args[2] = weight;
      node.op = "aten.rms_norm.default";
      node.args = std::move(args);
      ++changes;
      break;
    }
  }
  return changes;
}

}  // namespace fairlead
