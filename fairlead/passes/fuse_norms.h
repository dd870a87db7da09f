// Normalisations of ONNX Runtime: with the sum before them, or alone.
#pragma once

#include "fairlead/passes/fusion.h"

namespace fairlead {

// layer_norm(x + y) and rms_norm(x + y), of sums that others may read too, become
// SkipLayerNormalization and SkipSimplifiedLayerNormalization, which take a bias of x as well;
// other rms_norm become SimplifiedLayerNormalization.
std::size_t fuse_norms(Graph& graph, FusionLog& log);

}  // namespace fairlead
