// Removes nodes whose results nothing reads.
#pragma once

#include "fairlead/graph/graph.h"

namespace fairlead {

// Requires a checked graph; ensures that every node is needed by an output, directly or through a
// symbol that a size or argument mentions. Returns the number of nodes removed.
std::size_t remove_dead_code(Graph& graph);

}  // namespace fairlead
