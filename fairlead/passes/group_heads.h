// Attention over groups of queries.
#pragma once

#include <cstddef>

#include "fairlead/graph/graph.h"

namespace fairlead {

// scaled_dot_product_attention of keys and values that are repeated for groups of queries becomes
// one that repeats them itself (enable_gqa).
std::size_t group_heads(Graph& graph);

}  // namespace fairlead
