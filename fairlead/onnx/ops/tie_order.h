// The order of equal elements: PyTorch's CPU kernels sort by std::sort, std::nth_element and
// std::partial_sort, which are not stable, and the places they give are results.
#pragma once

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

// The first k of n equal elements as std::partial_sort puts them, in front of the others: places
// [n]; absent where that is the order of their places.
[[nodiscard]] Val order_of_heap(Lowering& b, Expr n, std::int64_t k);

// Values and places of all elements along the axis: `plain` (those of a stable sort) unless some
// are equal and the kernel would put them otherwise.
[[nodiscard]] Inputs sorted_as_eager(Lowering& b, Val x, const Inputs& plain, std::int64_t axis,
                                     bool largest);

// The same for the first k, as the kernel of topk gives them where 64 k > n; `plain` below.
[[nodiscard]] Inputs top_as_eager(Lowering& b, Val x, const Inputs& plain, Expr k,
                                  std::int64_t axis, bool largest);

// The first k where they are not to be sorted: in the order that std::nth_element leaves.
[[nodiscard]] Inputs unsorted_top(Lowering& b, Val x, const Inputs& plain, Expr k,
                                  std::int64_t axis, bool largest);

}  // namespace fairlead::onnx
