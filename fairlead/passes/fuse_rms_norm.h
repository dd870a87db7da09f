// Root-mean-square normalisation written by hand becomes the operator.
#pragma once

#include <cstddef>

#include "fairlead/graph/graph.h"

namespace fairlead {

// x * rsqrt(mean(x^2, last, keepdim) + eps), then * weight where a constant of the last size
// follows, becomes aten.rms_norm.default(x, [size], weight, eps). Runtimes know the operator, not
// the spelling.
std::size_t fuse_rms_norm(Graph& graph);

}  // namespace fairlead
