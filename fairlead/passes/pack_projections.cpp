// q, k, v = linear(x, wq), linear(x, wk), linear(x, wv), read by one GroupQueryAttention alone.
#include "fairlead/passes/pack_projections.h"

#include <array>

#include "fairlead/graph/args.h"
#include "fairlead/passes/structure.h"

namespace fairlead {
namespace {

constexpr std::string_view kKind = "packed projections";

const std::byte* bytes_of(const Constant& c) {
  return c.data != nullptr ? c.data : c.owned ? c.owned->data() : nullptr;
}

bool is_contiguous(const Constant& c) {
  std::int64_t expected = 1;
  for (std::size_t k = c.dims.size(); k-- > 0;) {
    if (!c.strides.empty() && c.strides[k] != expected && c.dims[k] != 1) return false;
    expected *= c.dims[k];
  }
  return true;
}

// The constants one below the other; nothing where one cannot be copied as it lies.
std::optional<ValueId> stacked(Rewriter& rewriter, const std::array<Arg, 3>& parts) {
  const Graph& graph = rewriter.graph();
  auto bytes = std::make_shared<std::vector<std::byte>>();
  Constant made;
  for (const Arg& part : parts) {
    const Constant* c = is_float32(graph, part) ? graph.constant(part.value) : nullptr;
    if (c == nullptr || bytes_of(*c) == nullptr || !is_contiguous(*c) || c->dims.empty()) {
      return std::nullopt;
    }
    if (made.dims.empty()) {
      made.dims = c->dims;
    } else {
      made.dims[0] += c->dims[0];
    }
    std::int64_t count = 1;
    for (const std::int64_t size : c->dims) count *= size;
    const std::byte* data = bytes_of(*c);
    bytes->insert(bytes->end(), data, data + count * std::int64_t{sizeof(float)});
  }
  made.data = bytes->data();
  made.owned = bytes;
  std::string name = graph.values[parts[0].value].name;
  if (!name.empty()) name += ".packed";
  return rewriter.add_constant(Dtype::kFloat32, std::move(made), std::move(name));
}

struct Projections {
  std::array<Node*, 3> layers;
  Arg x;
};

std::optional<Projections> projections(Rewriter& rewriter, const Node& node) {
  Projections found;
  for (std::size_t k = 0; k < 3; ++k) {
    const Arg& arg = node.args[k];
    Node* layer = arg.kind == ArgKind::kValue ? rewriter.producer(arg.value) : nullptr;
    if (layer == nullptr || layer->op != Op::linear || rewriter.uses(arg.value) != 1) {
      return std::nullopt;
    }
    if (k > 0 && layer->args[0].value != found.x.value) return std::nullopt;
    found.x = layer->args[0];
    found.layers[k] = layer;
  }
  const auto biased = [&](std::size_t k) {
    return found.layers[k]->args[2].kind != ArgKind::kNone;
  };
  if (biased(0) != biased(1) || biased(0) != biased(2)) return std::nullopt;
  return found;
}

bool pack(Rewriter& rewriter, FusionLog& log, Node& node) {
  if (node.op != Op::onnxruntime_group_query_attention) return false;
  const auto found = projections(rewriter, node);
  if (!found) {
    log.refused(kKind, "queries, keys and values are not three products of one tensor");
    return false;
  }
  const auto argument = [&](std::size_t at) {
    const auto& layers = found->layers;
    return std::array<Arg, 3>{layers[0]->args[at], layers[1]->args[at], layers[2]->args[at]};
  };
  const bool biased = argument(2)[0].kind != ArgKind::kNone;
  const auto weight = stacked(rewriter, argument(1));
  const auto bias = biased ? stacked(rewriter, argument(2)) : std::nullopt;
  if (!weight || (biased && !bias)) {
    log.refused(kKind, "a weight does not lie in memory in its own order");
    return false;
  }
  Graph& graph = rewriter.graph();
  graph.values[node.args[0].value].shape[2] = graph.values[*weight].shape[0];
  std::vector<Arg> args = node.args;
  args[1] = args[2] = Arg{};
  rewriter.become(node, Op::onnxruntime_group_query_attention, std::move(args));
  rewriter.become(*found->layers[0], Op::linear,
                  {found->x, value_arg(*weight), bias ? value_arg(*bias) : Arg{}});
  rewriter.erase(*found->layers[1]);
  rewriter.erase(*found->layers[2]);
  log.fused(kKind);
  return true;
}

}  // namespace

std::size_t pack_projections(Graph& graph, FusionLog& log) {
  if (!log.wants(kKind)) return 0;
  return Rewriter(graph).each(
      [&](Rewriter& rewriter, Node& node) { return pack(rewriter, log, node); });
}

}  // namespace fairlead
