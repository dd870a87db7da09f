// Rotary embeddings in one operator.
#pragma once

#include "fairlead/passes/fusion.h"

namespace fairlead {

// x * cos + cat(-x2, x1) * sin of x [batch, heads, sequence, size] becomes RotaryEmbedding, where
// the two halves of cos, and of sin, are proved to be equal.
std::size_t fuse_rotary(Graph& graph, FusionLog& log);

}  // namespace fairlead
