// 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), x * sigmoid(alpha * x), and by name.
#include "fairlead/passes/fuse_activations.h"

#include <cmath>

#include "fairlead/graph/args.h"
#include "fairlead/passes/structure.h"

namespace fairlead {
namespace {

constexpr std::string_view kFast = "FastGelu", kQuick = "QuickGelu", kBias = "BiasGelu";

enum Slot : std::size_t { kX, kFactor };

// As GPT-2 writes it.
Pattern gelu_by_hand() {
  Pattern cube =
      call(Op::mul_Tensor, {call(Op::pow_Tensor_Scalar, {any(kX), number(3)}), number(0.044715)});
  Pattern inner = call(Op::mul_Tensor,
                       {call(Op::add_Tensor, {any(kX), std::move(cube), number(1)}), any(kFactor)});
  Pattern outer = call(Op::add_Tensor, {call(Op::tanh, {std::move(inner)}), number(1), number(1)});
  return call(Op::mul_Tensor, {call(Op::mul_Tensor, {any(kX), number(0.5)}), std::move(outer)})
      .commutes();
}

Pattern swish_by_hand() {
  Pattern inner = either(call(Op::sigmoid, {call(Op::mul_Tensor, {any(kX), any(kFactor)})}),
                         call(Op::sigmoid, {any(kX)}));
  return call(Op::mul_Tensor, {any(kX), std::move(inner)}).commutes();
}

std::optional<double> constant(const Arg& arg) {
  if (arg.kind == ArgKind::kFloat && arg.expr == nullptr) return arg.number;
  if (arg.kind == ArgKind::kInt && is_const(arg.expr)) return static_cast<double>(arg.expr->value);
  return std::nullopt;
}

class Activations {
 public:
  explicit Activations(FusionLog& log) : log_(log) {}

  bool fuse(Rewriter& rewriter, Node& node) {
    if (node.op == Op::gelu) return by_name(rewriter, node);
    if (node.op == Op::silu) return quick(rewriter, node, node.args[0], 1.0);
    if (node.op != Op::mul_Tensor) return false;
    if (const auto found = rewriter.match(tanh_, node)) {
      const auto factor = constant(found->arg(kFactor));
      constexpr double kExpected = 0.7978845608028654;  // sqrt(2 / pi)
      if (factor && std::abs(*factor - kExpected) < 1e-6)
        return fast(rewriter, node, found->arg(kX));
    }
    if (const auto found = rewriter.match(swish_, node)) {
      const Arg x = found->arg(kX);
      const auto factor = found->has(kFactor) ? constant(found->arg(kFactor)) : 1.0;
      if (factor) return quick(rewriter, node, x, *factor);
    }
    return false;
  }

 private:
  bool by_name(Rewriter& rewriter, Node& node) {
    if (node.args[1].text == "tanh") return fast(rewriter, node, node.args[0]);
    const Arg x = node.args[0];
    if (!allowed(rewriter, kBias, x)) return false;
    const Arg bias = taken_bias(rewriter, x.value);
    if (bias.kind == ArgKind::kNone) return false;
    rewriter.become(node, Op::onnxruntime_bias_gelu, {x, bias});
    log_.fused(kBias);
    return true;
  }

  bool fast(Rewriter& rewriter, Node& node, Arg x) {
    if (!allowed(rewriter, kFast, x)) return false;
    const std::vector<Arg> before = node.args;
    rewriter.become(node, Op::onnxruntime_fast_gelu, {x, {}});
    for (const Arg& arg : before) {
      if (arg.kind == ArgKind::kValue) rewriter.sweep(arg.value);
    }
    rewriter.become(node, Op::onnxruntime_fast_gelu, {x, taken_bias(rewriter, x.value)});
    log_.fused(kFast);
    return true;
  }

  bool quick(Rewriter& rewriter, Node& node, Arg x, double alpha) {
    if (!allowed(rewriter, kQuick, x)) return false;
    rewriter.become(node, Op::onnxruntime_quick_gelu, {x, float_arg(alpha)});
    log_.fused(kQuick);
    return true;
  }

  bool allowed(Rewriter& rewriter, std::string_view kind, const Arg& x) {
    if (!log_.wants(kind)) return false;
    if (is_float32(rewriter.graph(), x)) return true;
    log_.refused(kind, "it computes in another type than float32");
    return false;
  }

  FusionLog& log_;
  const Pattern tanh_ = gelu_by_hand(), swish_ = swish_by_hand();
};

}  // namespace

std::size_t fuse_activations(Graph& graph, FusionLog& log) {
  Activations activations(log);
  return Rewriter(graph).each(
      [&](Rewriter& rewriter, Node& node) { return activations.fuse(rewriter, node); });
}

}  // namespace fairlead
