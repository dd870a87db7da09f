// Slices that tile a dimension become one split.
#pragma once

#include <cstddef>

#include "fairlead/graph/graph.h"

namespace fairlead {

// x[..., :n] and x[..., n:] (rotary embeddings, gated projections) become aten.split_with_sizes.
std::size_t merge_slices(Graph& graph);

}  // namespace fairlead
