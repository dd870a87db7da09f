// Extremes and orders in which NaN counts as PyTorch counts it: above every number, and the answer
// wherever there is one. The standard does not say how ReduceMax, ArgMax and TopK take it.
#pragma once

#include <cstdint>
#include <vector>

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

// Where a NaN stands along the axes, as bool; absent for types that have none.
[[nodiscard]] Val any_nan(Lowering& b, Val x, const std::vector<std::int64_t>& axes, bool keepdim);

// The larger or lesser of two; of integers beyond 32 bits too.
[[nodiscard]] Val larger(Lowering& b, bool largest, Val x, Val y);

// The largest or least element along the axes; NaN where there is one.
[[nodiscard]] Val extreme(Lowering& b, bool largest, Val x, const std::vector<std::int64_t>& axes,
                          bool keepdim);

// The place of the first largest or least element along the axis; of the first NaN where there is
// one.
[[nodiscard]] Val extreme_place(Lowering& b, bool largest, Val x, std::int64_t axis, bool keepdim);

// Values and int64 places of the k first elements along the axis, in order.
[[nodiscard]] Inputs ordered_top(Lowering& b, Val x, Val k, std::int64_t axis, bool largest);

}  // namespace fairlead::onnx
