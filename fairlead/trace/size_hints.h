// The size formulas of operators that few runs could confuse: convolutions and pools.
#pragma once

#include <vector>

#include "fairlead/graph/graph.h"

namespace fairlead {

// Expressions that the result sizes of `node` may have; empty for operators without a formula.
[[nodiscard]] std::vector<Expr> size_hints(ExprPool& pool, const Graph& graph, const Node& node);

}  // namespace fairlead
