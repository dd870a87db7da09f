// What fusions ask about the structure of a graph: what a value is, seen through operators that
// only arrange it.
#pragma once

#include <optional>

#include "fairlead/passes/rewrite.h"

namespace fairlead {

[[nodiscard]] bool is_float32(const Graph& graph, const Arg& arg);
// The constant bias of the linear layer that makes the value, taken from the layer where nobody
// else reads that; None where there is none.
[[nodiscard]] Arg taken_bias(Rewriter& rewriter, ValueId id);

class Structure {
 public:
  explicit Structure(const Rewriter& rewriter, const Graph& graph)
      : rewriter_(rewriter), graph_(graph) {}

  // The value that is the same tensor, before copies, casts to its own type, views and expansions
  // to its own shape, multiplications by 1, and concatenations with nothing.
  [[nodiscard]] ValueId origin(ValueId id) const;
  // The value that has the same elements in the same order, in whatever shape.
  [[nodiscard]] ValueId flat_origin(ValueId id) const;
  // The producer of origin(id) where it is this operator.
  [[nodiscard]] const Node* made_by(ValueId id, Op op) const;
  [[nodiscard]] const Shape& shape(ValueId id) const { return graph_.values[id].shape; }
  [[nodiscard]] ExprPool& pool() const { return *graph_.pool; }
  [[nodiscard]] const Graph& graph() const { return graph_; }

  // x of a transpose of axes 1 and 2, for [batch, heads, sequence, size].
  [[nodiscard]] std::optional<ValueId> untransposed(ValueId id) const;
  // [batch, sequence, heads * size] of [batch, heads, sequence, size] that is a transposed view of
  // it; nothing where it is made otherwise.
  [[nodiscard]] std::optional<ValueId> joined_heads(ValueId id) const;
  // [batch, kv, total, size] of which [batch, heads, total, size] is a repetition of each head; the
  // value itself where it repeats nothing.
  [[nodiscard]] ValueId unrepeated(ValueId id) const;
  // Past and new part of a concatenation along axis 2; nothing where it is none of two.
  struct Cache {
    ValueId past, fresh;
    ValueId present;  // what the concatenation gives
  };
  [[nodiscard]] std::optional<Cache> cache(ValueId id) const;

  // Whole numbers that rise by one along an axis: offset + index.
  struct Ramp {
    int axis_from_end;  // -1 is the last
    Expr offset;
  };
  [[nodiscard]] std::optional<Ramp> ramp(ValueId id) const;

  // What a mask of booleans [.., queries, keys] hides.
  struct Mask {
    bool causal = false;      // every key that comes after its query
    bool more = false;        // also others
    ValueId rest = kNoValue;  // what hides these, where it is one mask that can stand alone
  };
  [[nodiscard]] Mask mask(ValueId id) const;
  // Whether a mask, of booleans or of floats that are added, leaves every query a key.
  [[nodiscard]] bool leaves_a_key(ValueId id) const;

 private:
  [[nodiscard]] bool is_finite(ValueId id) const;  // floats that are chosen from constants
  void look_at_mask(ValueId id, Expr queries, Expr keys, Mask& found) const;
  [[nodiscard]] bool is_causal(const Node& node, Expr queries, Expr keys) const;
  [[nodiscard]] bool is_true(const Node& node) const;

  const Rewriter& rewriter_;
  const Graph& graph_;
};

}  // namespace fairlead
