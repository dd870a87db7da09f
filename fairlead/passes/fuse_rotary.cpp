// y = add(mul(x, cos), mul(cat([neg(x2), x1], -1), sin)), with x1, x2 the halves of x.
#include "fairlead/passes/fuse_rotary.h"

#include "fairlead/graph/args.h"
#include "fairlead/passes/structure.h"

namespace fairlead {
namespace {

constexpr std::string_view kKind = "RotaryEmbedding";

struct Found {
  ValueId x, cos, sin;
};

// cat([neg(x2), x1], -1)
bool is_rotated(const Rewriter& rewriter, const Structure& look, ValueId id, ValueId x) {
  const Node* cat = look.made_by(id, Op::cat);
  if (cat == nullptr || cat->args[0].items.size() != 2) return false;
  const Shape& shape = look.shape(x);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const Arg& axis = cat->args[1];
  if (axis.kind != ArgKind::kInt || !(is_const(axis.expr, -1) || is_const(axis.expr, rank - 1))) {
    return false;
  }
  const Node* neg = rewriter.producer(cat->args[0].items[0].value);
  if (neg == nullptr || neg->op != Op::neg) return false;
  const ValueId second = neg->args[0].value, first = cat->args[0].items[1].value;
  const Node* split = rewriter.producer(first);
  if (split == nullptr || split != rewriter.producer(second) || split->op != Op::split_with_sizes ||
      split->outputs.size() != 2 || split->outputs[0] != first || split->outputs[1] != second) {
    return false;
  }
  const Arg& along = split->args[2];
  return look.origin(split->args[0].value) == look.origin(x) && along.kind == ArgKind::kInt &&
         (is_const(along.expr, rank - 1) || is_const(along.expr, -1)) &&
         look.shape(first).back() == look.shape(second).back();
}

// mul(a, b) with the one that is x, or its rotation, first.
std::optional<std::pair<ValueId, ValueId>> factors(const Rewriter& rewriter, ValueId id) {
  const Node* node = rewriter.producer(id);
  if (node == nullptr || node->op != Op::mul_Tensor || node->args[0].kind != ArgKind::kValue ||
      node->args[1].kind != ArgKind::kValue) {
    return std::nullopt;
  }
  return std::pair(node->args[0].value, node->args[1].value);
}

std::optional<Found> rotary(const Rewriter& rewriter, const Structure& look, const Node& node) {
  if (node.op != Op::add_Tensor || node.args[1].kind != ArgKind::kValue ||
      node.args[2].kind != ArgKind::kInt || !is_const(node.args[2].expr, 1)) {
    return std::nullopt;
  }
  const auto a = factors(rewriter, node.args[0].value), b = factors(rewriter, node.args[1].value);
  if (!a || !b) return std::nullopt;
  for (const auto& [plain, turned] : {std::pair(*a, *b), std::pair(*b, *a)}) {
    for (const auto& [x, cos] : {plain, std::pair(plain.second, plain.first)}) {
      for (const auto& [rotated, sin] : {turned, std::pair(turned.second, turned.first)}) {
        if (is_rotated(rewriter, look, rotated, x)) return Found{x, cos, sin};
      }
    }
  }
  return std::nullopt;
}

// [batch or 1, sequence, size] of [batch or 1, 1, sequence, size].
std::optional<ValueId> without_heads(const Structure& look, ValueId id) {
  const Node* node = look.made_by(id, Op::unsqueeze);
  if (node == nullptr || look.shape(id).size() != 4) return std::nullopt;
  const Arg& axis = node->args[1];
  const bool heads =
      axis.kind == ArgKind::kInt && (is_const(axis.expr, 1) || is_const(axis.expr, -3));
  return heads ? std::optional(look.origin(node->args[0].value)) : std::nullopt;
}

struct Doubled {
  ValueId half;        // a
  bool plain = false;  // it is `of` of cat([a, a], -1), and nothing else
};

// Where it is a pointwise function of cat([a, a], -1): then its second half along the last axis is
// its first.
std::optional<Doubled> doubled(const Rewriter& rewriter, const Structure& look, ValueId id, Op of) {
  bool plain = false;
  int steps = 0;
  for (const Node* node = rewriter.producer(look.origin(id)); node != nullptr;
       node = rewriter.producer(look.origin(node->args[0].value)), ++steps) {
    if (node->op == Op::cat) {
      const auto& items = node->args[0].items;
      const Arg& axis = node->args[1];
      const auto rank = static_cast<std::int64_t>(look.shape(node->outputs[0]).size());
      const bool twice = items.size() == 2 && items[0].value == items[1].value &&
                         axis.kind == ArgKind::kInt &&
                         (is_const(axis.expr, -1) || is_const(axis.expr, rank - 1));
      if (!twice) return std::nullopt;
      return Doubled{items[0].value, plain && steps == 1};
    }
    plain = node->op == of;
    const bool by_number = node->op == Op::mul_Tensor && node->args[1].kind != ArgKind::kValue;
    if (node->op != Op::cos && node->op != Op::sin && node->op != Op::_to_copy && !by_number) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

bool fuse(Rewriter& rewriter, FusionLog& log, Node& node) {
  const Structure look(rewriter, rewriter.graph());
  const auto found = rotary(rewriter, look, node);
  if (!found) return false;
  const auto refuse = [&](std::string_view why) {
    log.refused(kKind, why);
    return false;
  };
  const Graph& graph = rewriter.graph();
  const Shape& shape = look.shape(found->x);
  if (graph.values[node.outputs[0]].dtype != Dtype::kFloat32) {
    return refuse("it computes in another type than float32");
  }
  const auto cos = without_heads(look, found->cos), sin = without_heads(look, found->sin);
  if (!cos || !sin || shape.size() != 4 || !is_const(shape[1]) || !is_const(shape[3])) {
    return refuse("its cos and sin are not [batch, 1, sequence, size] of [batch, sequence, size]");
  }
  const Shape& table = look.shape(*cos);
  if (table[1] != shape[2] || table[2] != shape[3] ||
      !(table[0] == shape[0] || is_const(table[0], 1))) {
    return refuse("it turns a part of each head");
  }
  const auto of_cos = doubled(rewriter, look, *cos, Op::cos),
             of_sin = doubled(rewriter, look, *sin, Op::sin);
  if (!of_cos || !of_sin) {
    return refuse("the halves of its cos, or of its sin, are not known to be equal");
  }
  const std::vector<Arg> before = node.args;
  const bool same = of_cos->half == of_sin->half;
  const bool plain = same && of_cos->plain && of_sin->plain;
  rewriter.become(node, Op::onnxruntime_rotary_embedding,
                  {value_arg(found->x), plain ? Arg{} : value_arg(*cos),
                   plain ? Arg{} : value_arg(*sin), same ? value_arg(of_cos->half) : Arg{}});
  for (const Arg& arg : before) {
    if (arg.kind == ArgKind::kValue) rewriter.sweep(arg.value);
  }
  log.fused(kKind);
  return true;
}

}  // namespace

std::size_t fuse_rotary(Graph& graph, FusionLog& log) {
  if (!log.wants(kKind)) return 0;
  return Rewriter(graph).each(
      [&](Rewriter& rewriter, Node& node) { return fuse(rewriter, log, node); });
}

}  // namespace fairlead
