// The projections of queries, keys and values as one product.
#pragma once

#include "fairlead/passes/fusion.h"

namespace fairlead {

// Three linear layers of the same tensor that only a GroupQueryAttention reads become one, whose
// weight is theirs one below the other: their bytes are in memory twice until the file is written.
std::size_t pack_projections(Graph& graph, FusionLog& log);

}  // namespace fairlead
