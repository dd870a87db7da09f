// sum = add(x, y);  norm = layer_norm(sum, [n], weight, bias, eps) | rms_norm(sum, [n], weight,
// eps)
#include "fairlead/passes/fuse_norms.h"

#include "fairlead/graph/args.h"
#include "fairlead/passes/structure.h"

namespace fairlead {
namespace {

constexpr std::string_view kSkipLayer = "SkipLayerNormalization";
constexpr std::string_view kSkipRms = "SkipSimplifiedLayerNormalization";
constexpr std::string_view kRms = "SimplifiedLayerNormalization";

// A constant of the last size.
bool is_weight(const Graph& graph, const Arg& arg, const Shape& of) {
  return is_float32(graph, arg) && graph.constant(arg.value) != nullptr &&
         graph.values[arg.value].shape.size() == 1 && graph.values[arg.value].shape[0] == of.back();
}

bool is_plain_sum(const Graph& graph, const Node& node) {
  if (node.op != Op::add_Tensor || node.args[0].kind != ArgKind::kValue ||
      node.args[1].kind != ArgKind::kValue || node.args[2].kind != ArgKind::kInt ||
      !is_const(node.args[2].expr, 1)) {
    return false;
  }
  const Shape &a = graph.values[node.args[0].value].shape,
              &b = graph.values[node.args[1].value].shape;
  return a.size() == 3 && a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin()) &&
         is_float32(graph, node.args[0]) && is_float32(graph, node.args[1]);
}

bool fuse(Rewriter& rewriter, FusionLog& log, Node& node) {
  const bool layer = node.op == Op::layer_norm;
  if (!layer && node.op != Op::rms_norm) return false;
  const Graph& graph = rewriter.graph();
  const std::string_view kind = layer ? kSkipLayer : kSkipRms;
  const Arg x = node.args[0], weight = node.args[2], beta = layer ? node.args[3] : Arg{};
  const Arg eps = node.args[layer ? 4 : 3];
  const auto refuse = [&](std::string_view what, std::string_view why) {
    log.refused(what, why);
    return false;
  };
  const bool by_constant = eps.kind == ArgKind::kFloat && eps.expr == nullptr;
  Node* sum = rewriter.producer(x.value);
  const bool summed = sum != nullptr && is_plain_sum(graph, *sum);
  const Shape& shape = graph.values[x.value].shape;
  if (!is_float32(graph, x) || graph.values[node.outputs[0]].dtype != Dtype::kFloat32) {
    return refuse(summed ? kind : kRms, "it computes in another type than float32");
  }
  if (node.args[1].items.size() != 1 || !by_constant) {
    return refuse(summed ? kind : kRms, "it goes over several axes, or its epsilon is no constant");
  }
  const bool weighted = is_weight(graph, weight, shape) &&
                        (beta.kind == ArgKind::kNone || is_weight(graph, beta, shape));
  if (summed && log.wants(kind) && weighted) {
    const Arg left = sum->args[0], right = sum->args[1];
    // The sum's bias comes with what was projected, whichever side it stands on.
    Arg bias = taken_bias(rewriter, left.value);
    const bool swapped = bias.kind == ArgKind::kNone;
    if (swapped) bias = taken_bias(rewriter, right.value);
    const Arg first = swapped ? right : left, second = swapped ? left : right;
    const std::vector<ValueId> made = {node.outputs[0], sum->outputs[0]};
    rewriter.erase(node);
    if (layer) {
      rewriter.become(*sum, Op::onnxruntime_skip_layer_norm,
                      {first, second, weight, beta, bias, eps}, made);
    } else {
      rewriter.become(*sum, Op::onnxruntime_skip_rms_norm, {first, second, weight, bias, eps},
                      made);
    }
    log.fused(kind);
    return true;
  }
  if (summed && !weighted) log.refused(kind, "its weight is no constant");
  if (layer || !log.wants(kRms)) return false;
  rewriter.become(node, Op::onnxruntime_rms_norm, {x, weight, eps});
  log.fused(kRms);
  return true;
}

}  // namespace

std::size_t fuse_norms(Graph& graph, FusionLog& log) {
  return Rewriter(graph).each(
      [&](Rewriter& rewriter, Node& node) { return fuse(rewriter, log, node); });
}

}  // namespace fairlead
