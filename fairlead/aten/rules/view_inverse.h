// Writes through views.
#pragma once

#include "fairlead/graph/graph.h"

namespace fairlead {

// The parent after `updated` was written through the view that `view` makes as its result
// `position`.
[[nodiscard]] ValueId scatter_into(Graph& graph, const Node& view, std::size_t position,
                                   ValueId parent, ValueId updated);

}  // namespace fairlead
