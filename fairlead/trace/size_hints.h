// The size formulas of operators that few runs could confuse: convolutions and pools.
#pragma once

#include <vector>

#include "fairlead/graph/graph.h"

namespace fairlead {

// Expressions that the result sizes of `node` may have; empty for operators without a formula.
[[nodiscard]] std::vector<Expr> size_hints(ExprPool& pool, const Graph& graph, const Node& node);

// The shape of the result of an operator whose rule is known, axis by axis; empty for others. A
// size may be as large as another in every run, or not have varied: here it is known which is
// meant.
[[nodiscard]] std::vector<Expr> known_shape(ExprPool& pool, const Graph& graph, const Node& node);

// The same for operators that keep, move or combine whole axes; null where an axis is not known.
[[nodiscard]] std::vector<Expr> kept_shape(const Graph& graph, const Node& node);

}  // namespace fairlead
