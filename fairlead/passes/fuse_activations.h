// Activations that ONNX Runtime has in one operator.
#pragma once

#include "fairlead/passes/fusion.h"

namespace fairlead {

// gelu by tanh, by name or by hand, becomes FastGelu; x * sigmoid(alpha * x) and silu QuickGelu;
// gelu of a linear layer with bias BiasGelu.
std::size_t fuse_activations(Graph& graph, FusionLog& log);

}  // namespace fairlead
