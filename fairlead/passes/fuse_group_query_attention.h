// Causal attention of decoders in one operator.
#pragma once

#include "fairlead/passes/fusion.h"

namespace fairlead {

// What a file says that stops because of it.
inline constexpr const char* kRotationWords = "all rows begin at the same position where past = 0";

// scaled_dot_product_attention whose mask is proved to hide what comes later becomes
// GroupQueryAttention. It takes in the repetition of key and value heads, the concatenation with
// the cache, and rotary embeddings. What else the mask hides stays a mask: any padding is right.
std::size_t fuse_group_query_attention(Graph& graph, FusionLog& log);

}  // namespace fairlead
