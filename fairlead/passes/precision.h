// With what precision the outputs of a program are computed.
#pragma once

#include <vector>

#include "fairlead/graph/graph.h"

namespace fairlead {

// By output: the lowest floating-point type among what the operators on the way to it made; its own
// type where there is none. An autocast within a model shows here and not in its outputs. Inputs
// and constants do not count: casting them up is exact.
[[nodiscard]] std::vector<Dtype> output_precision(const Graph& graph);

}  // namespace fairlead
