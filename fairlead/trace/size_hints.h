// The size formulas of operators that few runs could confuse: convolutions and pools.
#pragma once

#include <vector>

#include "fairlead/graph/graph.h"

namespace fairlead {

// Expressions that the result sizes of `node` may have; empty for operators without a formula.
[[nodiscard]] std::vector<Expr> size_hints(ExprPool& pool, const Graph& graph, const Node& node);

// The shape of the result of an operator that picks by indices or by places, axis by axis; empty
// for others. A size that data decides may be as large as another in every run, and a slice may be
// cut by its dimension in none: here it is known which is meant.
[[nodiscard]] std::vector<Expr> indexed_shape(const Graph& graph, const Node& node);

}  // namespace fairlead
