// Reads one attention from its end to its beginning.
#include "fairlead/passes/heads.h"

#include <algorithm>
#include <cmath>

#include "fairlead/graph/args.h"

namespace fairlead {
namespace {

bool joins_heads(const Graph& graph, const Node& node) {
  if (node.op != Op::reshape && node.op != Op::view && node.op != Op::_unsafe_view &&
      node.op != Op::flatten_using_ints) {
    return false;
  }
  const Shape &from = graph.values[node.args[0].value].shape,
              &to = graph.values[node.outputs[0]].shape;
  return from.size() == 4 && to.size() == 3 && from[0] == to[0] && from[1] == to[1] &&
         to[2] == graph.pool->mul(from[2], from[3]);
}

bool is_dropped(const Arg& arg) { return arg.kind == ArgKind::kFloat && arg.number > 0; }

// Values between an attention's argument and the cache it is made of are read once each.
bool read_once(const Rewriter& rewriter, ValueId from, ValueId to) {
  for (ValueId id = from; id != to;) {
    const Node* node = rewriter.producer(id);
    if (rewriter.uses(id) != 1 || node == nullptr || node->args[0].kind != ArgKind::kValue) {
      return false;
    }
    id = node->args[0].value;
  }
  return true;
}

}  // namespace

std::optional<Attention> attention_joined_by(Rewriter& rewriter, const Structure& look,
                                             const Node& node, std::string& why) {
  const Graph& graph = rewriter.graph();
  if (node.outputs.size() != 1 || !joins_heads(graph, node)) return std::nullopt;
  const auto apart = look.untransposed(node.args[0].value);
  if (!apart) return std::nullopt;
  Node* made = rewriter.producer(*apart);
  if (made == nullptr || made->op != Op::scaled_dot_product_attention) return std::nullopt;
  Attention found;
  found.node = made;
  found.query = made->args[0].value;
  found.key = made->args[1].value;
  found.value = made->args[2].value;
  found.mask = made->args[3];
  found.causal = made->args[5].number != 0;
  const Shape &q = look.shape(found.query), &k = look.shape(found.key),
              &v = look.shape(found.value);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || !is_const(q[1]) || !is_const(q[3])) {
    why = "its number of heads or their size is no constant";
    return std::nullopt;
  }
  if (!is_float32(graph, made->args[0]) || is_dropped(made->args[4])) {
    why = "it computes in another type than float32";
    return std::nullopt;
  }
  if (v[3] != q[3] || v[2] != k[2] || v[1] != k[1] || q[0] != k[0]) {
    why = "its keys and values have other sizes than its queries";
    return std::nullopt;
  }
  if (rewriter.uses(made->outputs[0]) != 1) {
    why = "its result is read before its heads are joined";
    return std::nullopt;
  }
  const Arg& scale = made->args[6];
  if (scale.kind == ArgKind::kFloat && scale.expr != nullptr) {
    why = "its scale is no constant";
    return std::nullopt;
  }
  found.batch = q[0];
  found.heads = q[1]->value;
  found.sequence = q[2];
  found.size = q[3]->value;
  found.total = k[2];
  found.scale = scale.kind == ArgKind::kFloat ? scale.number
                                              : 1.0 / std::sqrt(static_cast<double>(found.size));
  return found;
}

bool mask_fits(const Shape& mask, const Attention& attention) {
  const auto one_or = [](Expr e, Expr size) { return e == size || is_const(e, 1); };
  return mask.size() == 4 && one_or(mask[0], attention.batch) &&
         (is_const(mask[1], 1) || is_const(mask[1], attention.heads)) &&
         one_or(mask[2], attention.sequence) && mask[3] == attention.total;
}

HeadsArg heads_arg(const Structure& look, ValueId id) {
  if (look.shape(id).size() == 3) return {value_arg(id), false};
  if (const auto joined = look.joined_heads(id)) return {value_arg(*joined), false};
  if (const auto apart = look.untransposed(id)) return {value_arg(*apart), false};
  return {value_arg(id), true};
}

std::optional<CachePair> caches(const Rewriter& rewriter, const Structure& look, const Graph& graph,
                                const Attention& attention, std::string& why) {
  const ValueId key = look.unrepeated(attention.key), value = look.unrepeated(attention.value);
  CachePair found = {look.cache(key), look.cache(value)};
  if (found.key.has_value() != found.value.has_value()) {
    why = "only its keys or its values have a cache";
    return std::nullopt;
  }
  if (!found.key) return found;
  const auto alone = [&](ValueId argument, ValueId present) {
    const auto outputs = std::count(graph.outputs.begin(), graph.outputs.end(), present);
    return read_once(rewriter, argument, present) &&
           rewriter.uses(present) == 1 + static_cast<std::size_t>(outputs);
  };
  if (!alone(attention.key, found.key->present) || !alone(attention.value, found.value->present)) {
    why = "its cache is read elsewhere too";
    return std::nullopt;
  }
  return found;
}

void replace_attention(Rewriter& rewriter, Node& node, const Attention& attention, Op op,
                       std::vector<Arg> args, const CachePair& cached) {
  std::vector<ValueId> read;
  for (const Arg& arg : attention.node->args) {
    if (arg.kind == ArgKind::kValue) read.push_back(arg.value);
  }
  const ValueId joined = node.args[0].value;
  std::vector<ValueId> made = {node.outputs[0], kNoValue, kNoValue};
  Node *keys = nullptr, *values = nullptr;
  if (cached.key) {
    keys = rewriter.producer(cached.key->present);
    values = rewriter.producer(cached.value->present);
    made = {node.outputs[0], cached.key->present, cached.value->present};
  }
  node.module = attention.node->module;
  node.source = attention.node->source;
  rewriter.become(node, op, std::move(args), std::move(made));
  rewriter.sweep(joined);
  for (const ValueId id : read) rewriter.sweep(id);
  if (keys == nullptr) return;
  rewriter.erase(*keys);
  rewriter.erase(*values);
  rewriter.sweep(cached.key->fresh);
  rewriter.sweep(cached.value->fresh);
}

}  // namespace fairlead
