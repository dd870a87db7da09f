// Tensors that come from outside the operators: constants, or tensors that Python made from sizes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fairlead/graph/graph.h"
#include "fairlead/symbol/solve.h"
#include "fairlead/trace/run.h"

namespace fairlead {

// The graph value for run value `v`: a constant where its bytes are the same in every run,
// otherwise a node that makes it from expressions: `fairlead.tensor` of solved elements, or an
// arithmetic progression of solved length; `numbers` are those that Python made it of, where known.
// Throws Error(kUnsolved) with `where`.
[[nodiscard]] ValueId constant_value(Graph& graph, const std::vector<const Run*>& runs, RunValue v,
                                     Solver& solver, std::span<const Expr> numbers,
                                     const std::string& where);

}  // namespace fairlead
