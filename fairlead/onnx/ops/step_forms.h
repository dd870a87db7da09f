// Numbers combined step by step along an axis, which is exact of integers.
#pragma once

#include <cstdint>

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

// Whether a size may be 0 within the contract: free sizes of the inputs start at 1, counts of what
// data selects and differences do not.
[[nodiscard]] bool may_be_zero(Lowering& b, Expr e);

struct Products {
  Val whole;    // without the axis
  Val running;  // of the elements up to each
};

// x has this shape.
[[nodiscard]] Products products(Lowering& b, Val x, const Shape& shape, std::int64_t axis);

}  // namespace fairlead::onnx
