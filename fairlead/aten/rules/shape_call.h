// What a shape rule reads, and the families of rules.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fairlead/aten/rules/rule_table.h"
#include "fairlead/aten/rules/shapes.h"

namespace fairlead {

// The arguments of a node by their places in the schema.
struct ShapeCall {
  ExprPool& pool;
  const Graph& graph;
  const Node& node;
  std::size_t count;     // results
  std::size_t out_rank;  // of the first

  [[nodiscard]] bool has(std::size_t k) const {
    return k < node.args.size() && node.args[k].kind != ArgKind::kNone;
  }
  [[nodiscard]] bool is_value(std::size_t k) const {
    return has(k) && node.args[k].kind == ArgKind::kValue;
  }
  [[nodiscard]] const Shape& shape(std::size_t k) const {
    return graph.values[node.args[k].value].shape;
  }
  [[nodiscard]] std::size_t rank(std::size_t k) const { return shape(k).size(); }
  [[nodiscard]] bool flag(std::size_t k) const { return has(k) && node.args[k].number != 0; }
  // Null where it is no integer.
  [[nodiscard]] Expr integer(std::size_t k) const {
    return has(k) && node.args[k].kind == ArgKind::kInt ? node.args[k].expr : nullptr;
  }
  // An integer, or the only one of a list.
  [[nodiscard]] std::optional<std::int64_t> fixed(std::size_t k) const;
  [[nodiscard]] std::optional<std::size_t> axis(std::size_t k, std::size_t rank) const;
  // All of them where none is named.
  [[nodiscard]] std::optional<std::vector<std::size_t>> axes(std::size_t k, std::size_t rank) const;
  // A list of integers; nullopt where it is none.
  [[nodiscard]] std::optional<std::vector<Expr>> sizes(std::size_t k) const;
};

[[nodiscard]] std::vector<Expr> list_of(const Shape& shape);
// Null where two sizes that differ meet.
[[nodiscard]] std::vector<Expr> broadcast(ExprPool& pool, const std::vector<Expr>& a,
                                          const std::vector<Expr>& b);

using ShapeRule = ResultShapes (*)(const ShapeCall&);
using ShapeRow = RuleRow<ShapeRule>;

// One file each.
[[nodiscard]] std::span<const ShapeRow> given_shapes();
[[nodiscard]] std::span<const ShapeRow> place_shapes();
[[nodiscard]] std::span<const ShapeRow> product_shapes();
[[nodiscard]] std::span<const ShapeRow> reduced_shapes();
[[nodiscard]] std::span<const ShapeRow> same_shapes();
[[nodiscard]] std::span<const ShapeRow> window_shapes();

}  // namespace fairlead
