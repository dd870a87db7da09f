// Looks through what only arranges a tensor, and proves what masks hide.
#include "fairlead/passes/structure.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fairlead {
namespace {

bool same_shape(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

bool is_view(const Node& node) {
  return node.op == Op::view || node.op == Op::reshape || node.op == Op::_unsafe_view;
}

bool is_conjunction(const Node& node) {
  return node.op == Op::bitwise_and_Tensor || node.op == Op::logical_and;
}

bool has_no_elements(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](Expr e) { return is_const(e, 0); });
}

bool is_times_one(const Node& node) {
  return node.op == Op::mul_Tensor && node.args[1].kind == ArgKind::kFloat &&
         node.args[1].expr == nullptr && node.args[1].number == 1;
}

// The one tensor of a concatenation that is not known to be empty.
ValueId only_part(const Graph& graph, const Node& cat) {
  ValueId found = kNoValue;
  for (const Arg& item : cat.args[0].items) {
    if (item.kind != ArgKind::kValue) return kNoValue;
    if (has_no_elements(graph.values[item.value].shape)) continue;
    if (found != kNoValue) return kNoValue;
    found = item.value;
  }
  return found;
}

std::optional<std::int64_t> constant_int(const Arg& arg) {
  if (arg.kind != ArgKind::kInt || !is_const(arg.expr)) return std::nullopt;
  return arg.expr->value;
}

std::int64_t from_start(std::int64_t axis, std::size_t rank) {
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

// Whether every element of a constant of int64 is at least this.
bool all_at_least(const Graph& graph, ValueId id, std::int64_t least) {
  const Constant* c = graph.constant(id);
  if (c == nullptr || graph.values[id].dtype != Dtype::kInt64) return false;
  const std::byte* data = c->data != nullptr ? c->data : c->owned ? c->owned->data() : nullptr;
  if (data == nullptr || c->dims.size() != 1) return false;
  const std::int64_t stride = c->strides.empty() ? 1 : c->strides[0];
  for (std::int64_t k = 0; k < c->dims[0]; ++k) {
    std::int64_t value = 0;
    std::memcpy(&value, data + k * stride * std::int64_t{sizeof value}, sizeof value);
    if (value < least) return false;
  }
  return true;
}

bool all_finite(const Graph& graph, ValueId id) {
  const Constant* c = graph.constant(id);
  if (c == nullptr || graph.values[id].dtype != Dtype::kFloat32) return false;
  const std::byte* data = c->data != nullptr ? c->data : c->owned ? c->owned->data() : nullptr;
  std::int64_t count = 1, expected = 1;
  for (std::size_t k = c->dims.size(); k-- > 0;) {
    if (!c->strides.empty() && c->strides[k] != expected && c->dims[k] != 1) return false;
    expected *= c->dims[k];
    count *= c->dims[k];
  }
  if (data == nullptr) return count == 0;
  for (std::int64_t k = 0; k < count; ++k) {
    float value = 0;
    std::memcpy(&value, data + k * std::int64_t{sizeof value}, sizeof value);
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace

bool is_float32(const Graph& graph, const Arg& arg) {
  return arg.kind == ArgKind::kValue && graph.values[arg.value].dtype == Dtype::kFloat32;
}

Arg taken_bias(Rewriter& rewriter, ValueId id) {
  Node* linear = rewriter.producer(id);
  if (linear == nullptr || linear->op != Op::linear || rewriter.uses(id) != 1) return {};
  const Arg bias = linear->args[2];
  if (!is_float32(rewriter.graph(), bias) || rewriter.graph().constant(bias.value) == nullptr) {
    return {};
  }
  rewriter.become(*linear, Op::linear, {linear->args[0], linear->args[1], {}});
  return bias;
}

ValueId Structure::origin(ValueId id) const {
  for (;;) {
    const Node* node = rewriter_.producer(id);
    if (node == nullptr || node->args.empty() || node->outputs[0] != id) return id;
    ValueId next = node->args[0].value;
    if (node->op == Op::cat) {
      next = only_part(graph_, *node);
    } else if (is_times_one(*node)) {
      next = node->args[0].value;
    } else if (node->op != Op::contiguous && node->op != Op::clone && node->op != Op::_to_copy &&
               node->op != Op::expand && !is_view(*node) && !node->op.has(Trait::kIdentity)) {
      return id;
    }
    if (next == kNoValue || !same_shape(shape(next), shape(id)) ||
        graph_.values[next].dtype != graph_.values[id].dtype) {
      return id;
    }
    id = next;
  }
}

ValueId Structure::flat_origin(ValueId id) const {
  for (;;) {
    id = origin(id);
    const Node* node = rewriter_.producer(id);
    if (node == nullptr || !is_view(*node)) return id;
    id = node->args[0].value;
  }
}

const Node* Structure::made_by(ValueId id, Op op) const {
  const Node* node = rewriter_.producer(origin(id));
  return node != nullptr && node->op == op ? node : nullptr;
}

std::optional<ValueId> Structure::untransposed(ValueId id) const {
  if (shape(id).size() != 4) return std::nullopt;
  if (const Node* node = made_by(id, Op::transpose_int)) {
    const auto a = constant_int(node->args[1]), b = constant_int(node->args[2]);
    if (!a || !b) return std::nullopt;
    const std::int64_t low = std::min(from_start(*a, 4), from_start(*b, 4));
    const std::int64_t high = std::max(from_start(*a, 4), from_start(*b, 4));
    if (low == 1 && high == 2) return origin(node->args[0].value);
  }
  if (const Node* node = made_by(id, Op::permute)) {
    static constexpr std::int64_t kOrder[] = {0, 2, 1, 3};
    for (std::size_t k = 0; k < 4; ++k) {
      const auto axis = constant_int(node->args[1].items[k]);
      if (!axis || from_start(*axis, 4) != kOrder[k]) return std::nullopt;
    }
    return origin(node->args[0].value);
  }
  return std::nullopt;
}

std::optional<ValueId> Structure::joined_heads(ValueId id) const {
  const auto apart = untransposed(id);
  if (!apart) return std::nullopt;
  const Node* view = rewriter_.producer(*apart);
  if (view == nullptr || !is_view(*view)) return std::nullopt;
  const Shape &from = shape(view->args[0].value), &to = shape(*apart);
  const bool joins = from.size() == 3 && from[0] == to[0] && from[1] == to[1] &&
                     from[2] == graph_.pool->mul(to[2], to[3]);
  return joins ? std::optional(origin(view->args[0].value)) : std::nullopt;
}

ValueId Structure::unrepeated(ValueId id) const {
  id = origin(id);
  const Node* join = rewriter_.producer(id);
  if (join == nullptr || !is_view(*join) || shape(id).size() != 4) return id;
  const Node* wide = made_by(join->args[0].value, Op::expand);
  if (wide == nullptr) return id;
  const Shape& apart = shape(wide->outputs[0]);
  const Node* one = made_by(wide->args[0].value, Op::unsqueeze);
  if (one == nullptr || apart.size() != 5) return id;
  const Shape &few = shape(one->args[0].value), &all = shape(id);
  const auto axis = constant_int(one->args[1]);
  const bool repeats = axis && from_start(*axis, 5) == 2 && few.size() == 4 && few[0] == apart[0] &&
                       few[1] == apart[1] && few[2] == apart[3] && few[3] == apart[4] &&
                       all[0] == apart[0] && all[1] == graph_.pool->mul(apart[1], apart[2]) &&
                       all[2] == apart[3] && all[3] == apart[4];
  return repeats ? origin(one->args[0].value) : id;
}

std::optional<Structure::Cache> Structure::cache(ValueId id) const {
  const Node* node = made_by(id, Op::cat);
  if (node == nullptr || node->args[0].items.size() != 2 || shape(id).size() != 4) {
    return std::nullopt;
  }
  const auto axis = constant_int(node->args[1]);
  const Arg &past = node->args[0].items[0], &fresh = node->args[0].items[1];
  if (!axis || from_start(*axis, 4) != 2 || past.kind != ArgKind::kValue ||
      fresh.kind != ArgKind::kValue || shape(past.value).size() != 4) {
    return std::nullopt;
  }
  return Cache{past.value, origin(fresh.value), node->outputs[0]};
}

std::optional<Structure::Ramp> Structure::ramp(ValueId id) const {
  const Shape& whole = shape(id);
  int axis = 0;
  for (std::size_t k = 0; k < whole.size(); ++k) {
    if (is_const(whole[k], 1)) continue;
    if (axis != 0) return std::nullopt;
    axis = static_cast<int>(k) - static_cast<int>(whole.size());
  }
  if (axis == 0) return std::nullopt;
  Expr offset = graph_.pool->constant(0);
  for (const Node* node = rewriter_.producer(origin(id)); node != nullptr;
       node = rewriter_.producer(origin(node->args[0].value))) {
    if (node->op == Op::arange) return Ramp{axis, offset};
    if (node->op == Op::arange_start && node->args[0].kind == ArgKind::kInt) {
      return Ramp{axis, graph_.pool->add(offset, node->args[0].expr)};
    }
    if (node->op == Op::add_Tensor && node->args[1].kind == ArgKind::kInt &&
        constant_int(node->args[2]) == 1) {
      offset = graph_.pool->add(offset, node->args[1].expr);
    } else if (node->op != Op::unsqueeze) {
      return std::nullopt;
    }
    if (node->args[0].kind != ArgKind::kValue) return std::nullopt;
  }
  return std::nullopt;
}

Structure::Mask Structure::mask(ValueId id) const {
  Mask found;
  const Shape& whole = shape(id);
  if (whole.size() < 2 || graph_.values[id].dtype != Dtype::kBool) return {false, true, kNoValue};
  look_at_mask(id, whole[whole.size() - 2], whole.back(), found);
  return found;
}

bool Structure::is_finite(ValueId id) const {
  const Node* node = rewriter_.producer(origin(id));
  if (node == nullptr) return all_finite(graph_, origin(id));
  if (node->op == Op::zeros) return true;
  if (node->op == Op::where_self) {
    return is_finite(node->args[1].value) && is_finite(node->args[2].value);
  }
  const bool arranges = node->op == Op::embedding || node->op == Op::permute ||
                        node->op == Op::unsqueeze || node->op == Op::expand ||
                        node->op == Op::transpose_int;
  return arranges && is_finite(node->args[0].value);
}

bool Structure::leaves_a_key(ValueId id) const {
  if (graph_.values[id].dtype == Dtype::kBool) return !mask(id).more;
  if (is_finite(id)) return true;
  const Node* node = made_by(id, Op::where_self);
  return node != nullptr && graph_.values[node->args[0].value].dtype == Dtype::kBool &&
         !mask(node->args[0].value).more && is_finite(node->args[1].value);
}

void Structure::look_at_mask(ValueId id, Expr queries, Expr keys, Mask& found) const {
  const Node* node = rewriter_.producer(origin(id));
  if (node != nullptr && node->op == Op::expand) {
    look_at_mask(node->args[0].value, queries, keys, found);
  } else if (node != nullptr && is_conjunction(*node)) {
    look_at_mask(node->args[0].value, queries, keys, found);
    look_at_mask(node->args[1].value, queries, keys, found);
  } else if (node != nullptr && is_causal(*node, queries, keys)) {
    found.causal = true;
  } else if (node == nullptr || !is_true(*node)) {
    found.rest = found.more ? kNoValue : origin(id);
    found.more = true;
  }
}

// keys <= queries, counted so that the last query stands at the last key.
bool Structure::is_causal(const Node& node, Expr queries, Expr keys) const {
  const bool le = node.op == Op::le_Tensor;
  if (!le && node.op != Op::ge_Tensor) return false;
  const auto key = ramp(node.args[le ? 0 : 1].value), query = ramp(node.args[le ? 1 : 0].value);
  if (!key || !query || key->axis_from_end != -1 || query->axis_from_end != -2) return false;
  return graph_.pool->sub(query->offset, key->offset) == graph_.pool->sub(keys, queries);
}

bool Structure::is_true(const Node& node) const {
  if (node.op == Op::new_ones || node.op == Op::ones) return true;
  if (node.op != Op::ge_Scalar) return false;
  const auto least = constant_int(node.args[1]);
  if (!least) return false;
  if (const auto rising = ramp(node.args[0].value)) {
    return is_const(rising->offset) && rising->offset->value >= *least;
  }
  ValueId id = origin(node.args[0].value);
  while (const Node* made = rewriter_.producer(id)) {
    if (made->op != Op::unsqueeze) return false;
    id = origin(made->args[0].value);
  }
  return all_at_least(graph_, id, *least);
}

}  // namespace fairlead
