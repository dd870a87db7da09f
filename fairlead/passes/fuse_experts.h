// Experts, chosen for each row by a router, as one operator.
#pragma once

#include "fairlead/passes/fusion.h"

namespace fairlead {

// Rows sorted by their experts, multiplied group by group, put back and summed by weight become
// MoE, where experts are gated by silu and weights are positive.
std::size_t fuse_experts(Graph& graph, FusionLog& log);

}  // namespace fairlead
