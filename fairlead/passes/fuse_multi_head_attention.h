// Attention of encoders, cross attention, and decoders with as many heads of keys as of queries.
#pragma once

#include "fairlead/passes/fusion.h"

namespace fairlead {

// scaled_dot_product_attention becomes MultiHeadAttention, with the concatenation with a cache.
std::size_t fuse_multi_head_attention(Graph& graph, FusionLog& log);

}  // namespace fairlead
