// Tensors that come from outside the operators: constants, or tensors that Python made from sizes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fairlead/graph/graph.h"
#include "fairlead/symbol/solve.h"
#include "fairlead/trace/run.h"

namespace fairlead {

// What Python made the elements of a tensor of: number `k` of the call that made it, else any of
// its numbers with these values in every run. Null where it made it of none; elements in single
// precision are rounded.
struct CallNumbers {
  std::function<Expr(int k, const std::vector<std::int64_t>& seen)> integer;
  std::function<Expr(int k, const std::vector<double>& seen, bool single)> real;
};

// The graph value for run value `v`: a constant where its bytes are the same in every run,
// otherwise a node that makes it from expressions: `fairlead.tensor` of solved elements, or an
// arithmetic progression of solved length; `numbers` are those that Python made it of, where known
// (null: it came another way). Throws Error(kUnsolved) with `where`.
[[nodiscard]] ValueId constant_value(Graph& graph, const std::vector<const Run*>& runs, RunValue v,
                                     Solver& solver, const CallNumbers* numbers,
                                     const std::string& where);

}  // namespace fairlead
