// 1. The mask, or is_causal, hides every key after its query: the operator always does.
// 2. Keys and values are repeated for groups of queries, or rotary, or both: otherwise
//    MultiHeadAttention does as well, and takes any batch.
// 3. A cache is a concatenation of past and new keys, which the operator gives as well.
// 4. With a cache the operator takes several new tokens of one row, or one of several rows.
#include "fairlead/passes/fuse_group_query_attention.h"

#include "fairlead/graph/args.h"
#include "fairlead/passes/heads.h"

namespace fairlead {
namespace {

constexpr std::string_view kKind = "GroupQueryAttention";
constexpr std::string_view kRotation = "RotaryEmbedding in GroupQueryAttention";

// Rotations of queries and new keys by the same angles.
struct Rotation {
  const Node *query = nullptr, *key = nullptr;
};

Rotation rotation(const Structure& look, ValueId query, ValueId key) {
  const Node* q = look.made_by(query, Op::onnxruntime_rotary_embedding);
  const Node* k = look.made_by(key, Op::onnxruntime_rotary_embedding);
  if (q == nullptr || k == nullptr || q->args[1].value != k->args[1].value ||
      q->args[2].value != k->args[2].value || q->args[3].value != k->args[3].value) {
    return {};
  }
  return {q, k};
}

Requirement one_row_or_token(ExprPool& pool, Expr batch, Expr sequence, Expr past) {
  const Expr one = pool.constant(1);
  const Expr least = pool.min(pool.min(pool.sub(batch, one), pool.sub(sequence, one)), past);
  return {pool.less(least, one), pool.to_string(batch) + " = 1, or " + pool.to_string(sequence) +
                                     " = 1, or " + pool.to_string(past) + " = 0"};
}

// The angles are those of one row for all.
bool is_shared(const Structure& look, const Attention& found, const Rotation& turned) {
  const auto& args = turned.query->args;
  const Arg& angles = args[3].kind == ArgKind::kValue ? args[3] : args[1];
  return is_const(found.batch, 1) || is_const(look.shape(angles.value)[0], 1);
}

// Whether the operator does the rotation as well. It turns heads of multiples of 16; and without a
// past it turns all rows as the first one, which is right where they begin at the same position.
bool turns_itself(FusionLog& log, const Structure& look, const Attention& found,
                  const Rotation& turned, Expr past) {
  if (turned.query == nullptr || found.size % 16 != 0) return false;
  if (is_shared(look, found, turned)) return true;
  if (log.padding() || !log.wants(kRotation) || turned.query->args[3].kind != ArgKind::kValue) {
    return false;
  }
  ExprPool& pool = look.pool();
  const Expr one = pool.constant(1);
  const Expr several = pool.less(one, found.batch), first = pool.less(past, one);
  log.require(kRotation, {pool.sub(one, pool.mul(several, first)), kRotationWords});
  log.fused(kRotation);
  return true;
}

// The rotation of heads that are still joined, where only the attention reads it.
ValueId joined_rotation(Rewriter& rewriter, ValueId id) {
  const Structure look(rewriter, rewriter.graph());
  Node* node = rewriter.producer(look.origin(id));
  if (node == nullptr || node->op != Op::onnxruntime_rotary_embedding ||
      rewriter.uses(node->outputs[0]) != 1 || look.origin(id) != id) {
    return id;
  }
  const auto joined = look.joined_heads(node->args[0].value);
  const Shape& apart = look.shape(node->args[0].value);
  if (!joined) return id;
  std::vector<Arg> args = node->args;
  args[0] = value_arg(*joined);
  args.push_back(int_arg(apart[1]));
  rewriter.graph().values[id].shape = look.shape(*joined);
  rewriter.become(*node, Op::onnxruntime_rotary_embedding, std::move(args));
  return id;
}

bool fuse(Rewriter& rewriter, FusionLog& log, Node& node) {
  Graph& graph = rewriter.graph();
  const Structure look(rewriter, graph);
  std::string why;
  const auto found = attention_joined_by(rewriter, look, node, why);
  if (!found) return false;
  const ValueId key = look.unrepeated(found->key), value = look.unrepeated(found->value);
  const Shape &keys = look.shape(key), &values = look.shape(value);
  if (!is_const(keys[1]) || keys[1] != values[1] || keys[1]->value <= 0) return false;
  const std::int64_t kv = keys[1]->value;
  const bool masked = found->mask.kind == ArgKind::kValue;
  Structure::Mask hides = {found->causal && found->sequence == found->total, false};
  if (masked) hides = look.mask(found->mask.value);
  const auto cached = caches(rewriter, look, graph, *found, why);
  const ValueId fresh = cached && cached->key ? cached->key->fresh : key;
  const Rotation turned = rotation(look, found->query, fresh);
  if (!hides.causal || (kv == found->heads && turned.query == nullptr)) return false;
  const auto refuse = [&](std::string_view reason) {
    log.refused(kKind, reason);
    return false;
  };
  if (!cached) return refuse(why);
  if (found->size % 8 != 0) return refuse("the size of its heads is no multiple of 8");
  if (masked) {
    const Shape& mask = look.shape(found->mask.value);
    if (mask.size() != 4 || mask[2] != found->sequence || mask[3] != found->total) {
      return refuse("its mask is not [batch, heads, queries, keys]");
    }
  }
  const Expr past = cached->key ? look.shape(cached->key->past)[2] : graph.pool->constant(0);
  if (look.shape(fresh)[2] != found->sequence ||
      graph.pool->add(past, found->sequence) != found->total) {
    return refuse("its keys are not those of the queries after those of a cache");
  }
  // The operator itself hides what comes later.
  Arg hidden = masked && hides.more ? found->mask : Arg{};
  if (hides.rest != kNoValue && mask_fits(look.shape(hides.rest), *found)) {
    hidden = value_arg(hides.rest);
  }
  const bool inside = turns_itself(log, look, *found, turned, past);
  const ValueId q = inside ? turned.query->args[0].value : joined_rotation(rewriter, found->query);
  const ValueId k = inside ? turned.key->args[0].value : joined_rotation(rewriter, fresh);
  const ValueId v = cached->value ? cached->value->fresh : value;
  const HeadsArg queries = heads_arg(look, q), fresh_keys = heads_arg(look, k),
                 fresh_values = heads_arg(look, v);
  const auto expr = [&](std::int64_t number) { return int_arg(graph.pool->constant(number)); };
  const auto turning = [&](std::size_t k) { return inside ? turned.query->args[k] : Arg{}; };
  std::vector<Arg> args = {queries.arg,
                           fresh_keys.arg,
                           fresh_values.arg,
                           cached->key ? value_arg(cached->key->past) : Arg{},
                           cached->key ? value_arg(cached->value->past) : Arg{},
                           turning(1),
                           turning(2),
                           hidden,
                           expr(found->heads),
                           expr(kv),
                           expr(found->size),
                           float_arg(found->scale),
                           bool_arg(queries.apart),
                           bool_arg(fresh_keys.apart),
                           bool_arg(fresh_values.apart),
                           turning(3),
                           bool_arg(inside && !is_shared(look, *found, turned))};
  const bool open =
      !is_const(past, 0) && !is_const(found->batch, 1) && !is_const(found->sequence, 1);
  if (open) {
    // The kernel stops by itself.
    log.require(kKind, one_row_or_token(*graph.pool, found->batch, found->sequence, past));
  }
  replace_attention(rewriter, node, *found, Op::onnxruntime_group_query_attention, std::move(args),
                    *cached);
  log.fused(kKind);
  return true;
}

}  // namespace

std::size_t fuse_group_query_attention(Graph& graph, FusionLog& log) {
  if (!log.wants(kKind)) return 0;
  return Rewriter(graph).each(
      [&](Rewriter& rewriter, Node& node) { return fuse(rewriter, log, node); });
}

}  // namespace fairlead
