// The sizes of results by the rules of the operators.
//
// A size may be as large as another in every run, or not have varied: a rule says which is meant.
// What no rule knows is searched for among the sizes at hand, and is only as good as the runs.
#pragma once

#include <vector>

#include "fairlead/graph/graph.h"

namespace fairlead {

// Result by result; a null size is not known, an empty list (or too short a one) says nothing.
using ResultShapes = std::vector<std::vector<Expr>>;

// `count`: how many results the node has; `rank`: of the first.
[[nodiscard]] ResultShapes result_shapes(ExprPool& pool, const Graph& graph, const Node& node,
                                         std::size_t count, std::size_t rank);

// Expressions that the result sizes of `node` may have where its rule does not say: places whose
// signs are not known. The likelier come last.
[[nodiscard]] std::vector<Expr> size_hints(ExprPool& pool, const Graph& graph, const Node& node);

}  // namespace fairlead
