// Looks rules up, and what they share.
#include "fairlead/aten/rules/shapes.h"

#include <algorithm>

#include "fairlead/aten/rules/shape_call.h"

namespace fairlead {

namespace {

// An argument, or the only one of a list.
const Arg& only(const Arg& arg) {
  return arg.kind == ArgKind::kList && arg.items.size() == 1 ? arg.items[0] : arg;
}

// Counted from the beginning; nullopt where there is none.
std::optional<std::size_t> axis_of(const Arg& arg, std::size_t rank) {
  if (arg.kind != ArgKind::kInt || !is_const(arg.expr)) return std::nullopt;
  const std::int64_t place = arg.expr->value;
  const auto most = static_cast<std::int64_t>(rank);
  if (place < -most || place >= most) return std::nullopt;
  return static_cast<std::size_t>(place < 0 ? place + most : place);
}

}  // namespace

std::optional<std::int64_t> ShapeCall::fixed(std::size_t k) const {
  if (!has(k)) return std::nullopt;
  const Arg& arg = only(node.args[k]);
  if (arg.kind != ArgKind::kInt || !is_const(arg.expr)) return std::nullopt;
  return arg.expr->value;
}

std::optional<std::size_t> ShapeCall::axis(std::size_t k, std::size_t rank) const {
  return has(k) ? axis_of(only(node.args[k]), rank) : std::nullopt;
}

std::optional<std::vector<std::size_t>> ShapeCall::axes(std::size_t k, std::size_t rank) const {
  std::vector<std::size_t> found;
  if (rank == 0) return found;
  const bool list = has(k) && node.args[k].kind == ArgKind::kList;
  if (!has(k) || (list && node.args[k].items.empty())) {
    for (std::size_t axis = 0; axis < rank; ++axis) found.push_back(axis);
    return found;
  }
  const auto add = [&](const Arg& arg) {
    const auto one = axis_of(arg, rank);
    if (one) found.push_back(*one);
    return one.has_value();
  };
  const auto& items = node.args[k].items;
  const bool all = list ? std::all_of(items.begin(), items.end(), add) : add(node.args[k]);
  return all ? std::optional(std::move(found)) : std::nullopt;
}

std::optional<std::vector<Expr>> ShapeCall::sizes(std::size_t k) const {
  if (!has(k) || node.args[k].kind != ArgKind::kList) return std::nullopt;
  std::vector<Expr> found;
  for (const Arg& item : node.args[k].items) {
    if (item.kind != ArgKind::kInt) return std::nullopt;
    found.push_back(item.expr);
  }
  return found;
}

std::vector<Expr> list_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

std::vector<Expr> broadcast(ExprPool& pool, const std::vector<Expr>& a,
                            const std::vector<Expr>& b) {
  std::vector<Expr> joined(std::max(a.size(), b.size()));
  for (std::size_t k = 1; k <= joined.size(); ++k) {
    const Expr x = k <= a.size() ? a[a.size() - k] : pool.constant(1);
    const Expr y = k <= b.size() ? b[b.size() - k] : pool.constant(1);
    Expr& size = joined[joined.size() - k];
    if (x == nullptr || y == nullptr) {
      size = nullptr;
    } else if (x == y || is_const(y, 1)) {
      size = x;
    } else if (is_const(x, 1) || is_const(y)) {
      size = y;
    } else {
      size = is_const(x) ? x : nullptr;
    }
  }
  return joined;
}

namespace {

ResultShapes broadcast_all(const ShapeCall& call) {
  std::vector<Expr> joined;
  for (std::size_t k = 0; k < call.node.args.size(); ++k) {
    if (call.is_value(k)) joined = broadcast(call.pool, joined, list_of(call.shape(k)));
  }
  return {joined};
}

// Rules by operator; pointwise ones broadcast, whatever their overload.
const RuleTable<ShapeRule>& rules() {
  static const RuleTable<ShapeRule> table = {given_shapes(),   place_shapes(), product_shapes(),
                                             reduced_shapes(), same_shapes(),  window_shapes()};
  return table;
}

}  // namespace

ResultShapes result_shapes(ExprPool& pool, const Graph& graph, const Node& node, std::size_t count,
                           std::size_t rank) {
  const ShapeCall call{pool, graph, node, count, rank};
  if (const ShapeRule rule = rules().of(node.op)) return rule(call);
  if (node.op.has(Trait::kPointwise)) return broadcast_all(call);
  return {};
}

}  // namespace fairlead
