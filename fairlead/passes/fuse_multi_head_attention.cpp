// Heads of keys and values are as many as those of queries. A mask of booleans is right where it
// hides all keys of a query, too: the lowering puts zeros there. One of floats is added as it is.
#include "fairlead/passes/fuse_multi_head_attention.h"

#include "fairlead/graph/args.h"
#include "fairlead/passes/heads.h"

namespace fairlead {
namespace {

constexpr std::string_view kKind = "MultiHeadAttention";

bool fuse(Rewriter& rewriter, FusionLog& log, Node& node) {
  Graph& graph = rewriter.graph();
  const Structure look(rewriter, graph);
  std::string why;
  const auto found = attention_joined_by(rewriter, look, node, why);
  const auto refuse = [&](std::string_view reason) {
    log.refused(kKind, reason);
    return false;
  };
  if (!found) return why.empty() ? false : refuse(why);
  if (!is_const(look.shape(found->key)[1], found->heads)) {
    return refuse("it has fewer heads of keys than of queries");
  }
  const bool masked = found->mask.kind == ArgKind::kValue;
  if (found->causal && (masked || found->sequence != found->total)) {
    return refuse("it is causal over other keys than those of its queries");
  }
  const bool booleans = masked && graph.values[found->mask.value].dtype == Dtype::kBool;
  Structure::Mask hides;
  if (booleans) hides = look.mask(found->mask.value);
  const bool all_seen = booleans && !hides.more && !hides.causal;
  if (masked && !all_seen) {
    const Shape& mask = look.shape(found->mask.value);
    if (!mask_fits(mask, *found)) return refuse("its mask is not [batch, heads, queries, keys]");
    if (!is_const(mask[1], 1) && !look.leaves_a_key(found->mask.value)) {
      return refuse("its mask, another one for each head, may hide all keys of a query");
    }
    if (!booleans && !is_float32(graph, found->mask)) {
      return refuse("its mask is neither of booleans nor of float32");
    }
  }
  // Every query sees itself, or something: otherwise the lowering restores zeros.
  const bool sees = masked && look.leaves_a_key(found->mask.value);
  // Repeated heads are more than the cache has: there is none then.
  CachePair cached;
  if (look.unrepeated(found->key) == look.origin(found->key) &&
      look.unrepeated(found->value) == look.origin(found->value)) {
    const auto pair = caches(rewriter, look, graph, *found, why);
    if (pair) cached = *pair;
  }
  const ValueId k = cached.key ? cached.key->fresh : found->key;
  const ValueId v = cached.value ? cached.value->fresh : found->value;
  const HeadsArg queries = heads_arg(look, found->query), keys = heads_arg(look, k),
                 values = heads_arg(look, v);
  const auto expr = [&](std::int64_t number) { return int_arg(graph.pool->constant(number)); };
  std::vector<Arg> args = {queries.arg,
                           keys.arg,
                           values.arg,
                           cached.key ? value_arg(cached.key->past) : Arg{},
                           cached.key ? value_arg(cached.value->past) : Arg{},
                           masked && !all_seen ? found->mask : Arg{},
                           expr(found->heads),
                           expr(found->size),
                           float_arg(found->scale),
                           bool_arg(found->causal),
                           bool_arg(sees),
                           bool_arg(queries.apart),
                           bool_arg(keys.apart),
                           bool_arg(values.apart)};
  replace_attention(rewriter, node, *found, Op::onnxruntime_multi_head_attention, std::move(args),
                    cached);
  log.fused(kKind);
  return true;
}

}  // namespace

std::size_t fuse_multi_head_attention(Graph& graph, FusionLog& log) {
  if (!log.wants(kKind)) return 0;
  return Rewriter(graph).each(
      [&](Rewriter& rewriter, Node& node) { return fuse(rewriter, log, node); });
}

}  // namespace fairlead
