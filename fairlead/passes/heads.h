// What fusions of attention have in common: one attention, from the heads of its queries to its
// result with the heads joined again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fairlead/passes/structure.h"

namespace fairlead {

struct Attention {
  Node* node = nullptr;                                        // scaled_dot_product_attention
  ValueId query = kNoValue, key = kNoValue, value = kNoValue;  // [batch, heads, sequence, size]
  Arg mask;
  bool causal = false;  // its argument is_causal
  double scale = 1;
  Expr batch = nullptr, sequence = nullptr, total = nullptr;
  std::int64_t heads = 0, size = 0;
};

// The attention whose result, transposed, this node joins; nothing where it is none. `why` is set
// where it is one of another form.
[[nodiscard]] std::optional<Attention> attention_joined_by(Rewriter& rewriter,
                                                           const Structure& look, const Node& node,
                                                           std::string& why);

// Whether a mask is [batch, heads, queries, keys] of this attention, each of the first three
// maybe 1.
[[nodiscard]] bool mask_fits(const Shape& mask, const Attention& attention);

// Heads as operators of ONNX Runtime take them: [batch, sequence, heads * size] where the graph has
// it so, else [batch, sequence, heads, size] or, where `apart`, [batch, heads, sequence, size].
struct HeadsArg {
  Arg arg;
  bool apart = false;
};
[[nodiscard]] HeadsArg heads_arg(const Structure& look, ValueId id);

// Keys and values that are past and new ones, of which the graph reads nothing but the attention
// and the outputs of the graph.
struct CachePair {
  std::optional<Structure::Cache> key, value;
};
// Nothing where one has a cache and the other has not, or where another node reads it: `why` says.
[[nodiscard]] std::optional<CachePair> caches(const Rewriter& rewriter, const Structure& look,
                                              const Graph& graph, const Attention& attention,
                                              std::string& why);

// The node becomes `op` with the joined result and the present caches as its results; what was only
// there for the attention goes.
void replace_attention(Rewriter& rewriter, Node& node, const Attention& attention, Op op,
                       std::vector<Arg> args, const CachePair& cached);

}  // namespace fairlead
