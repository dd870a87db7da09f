// Operators that PyTorch takes apart before they run, written in terms of those that have a
// lowering.
#pragma once

#include "fairlead/graph/graph.h"

namespace fairlead {

// Changes operator and arguments of a node whose arguments are in schema order and whose results
// have their shapes; leaves alone what it does not know. torch.export keeps such operators whole,
// recorded runs do not have them.
void rewrite_composite(const Graph& graph, Node& node);

}  // namespace fairlead
