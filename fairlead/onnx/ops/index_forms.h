// What reading, writing and ordering by index share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

// 0, 1, ... n - 1 as int64 [n].
[[nodiscard]] Val range(Lowering& b, Expr n);
// start, start + step, ... : n of them, int64 [n].
[[nodiscard]] Val range(Lowering& b, Expr start, Expr n, Expr step);

// A size to divide by: what integers divided by 0 are the standard leaves open, and a process may
// end by it.
[[nodiscard]] inline Expr at_least_one(Lowering& b, Expr size) {
  return b.pool().max(size, b.expr(1));
}

// Where, also for types that a runtime has no Where for.
[[nodiscard]] Val choose(Lowering& b, Val condition, Val yes, Val no);

// v in a type that comparisons, TopK and reductions take: bools and 16-bit integers become int32,
// bfloat16 float32.
[[nodiscard]] Val ordered(Lowering& b, Val v);

// [.., axis, ..] -> [axis, ..] and back.
[[nodiscard]] Ints to_front(std::int64_t axis, int rank);
[[nodiscard]] Ints inverse(const Ints& perm);

// The shape that two shapes broadcast to.
[[nodiscard]] Shape broadcast(Lowering& b, const Shape& x, const Shape& y);

// Any element true along the axes, of a bool tensor.
[[nodiscard]] Val any_true(Lowering& b, Val v, Ints axes, bool keepdim);

// ScatterND and ScatterElements, in a type for which the runtime has the reduction.
[[nodiscard]] Val scatter_nd(Lowering& b, Val data, Val indices, Val updates,
                             std::string_view reduction = "none");
[[nodiscard]] Val scatter_elements(Lowering& b, Val data, Val indices, Val updates,
                                   std::int64_t axis, std::string_view reduction = "none");

// The index list of index.Tensor and index_put, with masks replaced by the indices of their true
// places.
struct Index {
  std::int64_t axis = 0;
  Val value;  // int64
  int rank = 0;
  std::optional<Shape> shape;  // none where a mask decides its length
  Val mask;                    // the [rank, count] places of the mask it comes from
};
struct IndexList {
  std::vector<Index> items;
  Ints perm;               // of the indexed tensor: indexed axes in front
  int wide = 0;            // rank of the broadcast indices
  std::int64_t front = 0;  // where the broadcast dimensions stand in a result

  // The indices broadcast together, int64 [wide..., items].
  [[nodiscard]] Val together(Lowering& b) const;
  // Their broadcast shape as tensor [wide].
  [[nodiscard]] Val wide_shape(Lowering& b) const;
  // [wide..., before..., after...] -> [before..., wide..., after...]
  [[nodiscard]] Ints back(int result_rank) const;
};
// Argument i as indices of a tensor of rank `rank`.
[[nodiscard]] IndexList read_indices(Lowering& b, std::size_t i, int rank);

}  // namespace fairlead::onnx
