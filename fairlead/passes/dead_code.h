// Removes nodes whose results nothing reads.
#pragma once

#include <cstddef>
#include <span>

#include "fairlead/graph/graph.h"

namespace fairlead {

// Requires a checked graph; ensures that every node is needed by an output, directly or through a
// symbol that a size, an argument or one of `kept` mentions. Returns the number of nodes removed.
std::size_t remove_dead_code_but(Graph& graph, std::span<const Expr> kept);
std::size_t remove_dead_code(Graph& graph);

}  // namespace fairlead
