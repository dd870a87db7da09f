// 1. sum = add(x, y);  norm = rms_norm(sum, [n], weight, eps) is one operator.
// 2. Before a layer_norm the sum takes the bias of the layer before, and is written as Sum: of Add
//    and LayerNormalization ONNX Runtime makes a SkipLayerNormalization when it loads them, whose
//    kernel takes six times as long as the two.
#include "fairlead/passes/fuse_norms.h"

#include "fairlead/graph/args.h"
#include "fairlead/passes/structure.h"

namespace fairlead {
namespace {

constexpr std::string_view kSkipLayer = "SkipLayerNormalization", kSum = "Sum";
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

// The sum as its terms, with the bias that came with what was projected, whichever side it stands
// on.
struct Terms {
  Arg first, second, bias;
};

Terms terms_of(Rewriter& rewriter, const Node& sum) {
  const Arg left = sum.args[0], right = sum.args[1];
  const Arg bias = taken_bias(rewriter, left.value);
  if (bias.kind != ArgKind::kNone) return {left, right, bias};
  return {right, left, taken_bias(rewriter, right.value)};
}

void fuse_sum(Rewriter& rewriter, FusionLog& log, Node& sum) {
  const Terms terms = terms_of(rewriter, sum);
  rewriter.become(sum, Op::onnxruntime_sum, {terms.first, terms.bias, terms.second});
  log.fused(kSum);
  log.refused(kSkipLayer, "its kernel takes longer than Sum and LayerNormalization");
}

bool fuse(Rewriter& rewriter, FusionLog& log, Node& node) {
  const bool layer = node.op == Op::layer_norm;
  if (!layer && node.op != Op::rms_norm) return false;
  const Graph& graph = rewriter.graph();
  const std::string_view kind = layer ? kSum : kSkipRms;
  const Arg x = node.args[0], weight = node.args[2];
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
  if (layer) {
    if (!summed || !log.wants(kSum)) return false;
    fuse_sum(rewriter, log, *sum);
    return true;
  }
  if (node.args[1].items.size() != 1 || !by_constant) {
    return refuse(summed ? kind : kRms, "it goes over several axes, or its epsilon is no constant");
  }
  const bool weighted = is_weight(graph, weight, shape);
  if (summed && log.wants(kind) && weighted) {
    const Terms terms = terms_of(rewriter, *sum);
    const std::vector<ValueId> made = {node.outputs[0], sum->outputs[0]};
    rewriter.erase(node);
    rewriter.become(*sum, Op::onnxruntime_skip_rms_norm,
                    {terms.first, terms.second, weight, terms.bias, eps}, made);
    log.fused(kind);
    return true;
  }
  if (summed && !weighted) log.refused(kind, "its weight is no constant");
  if (!log.wants(kRms)) return false;
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
