// Products that several families are made of.
#pragma once

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

// The equation of the node at hand, aten.einsum, over these tensors of one type.
[[nodiscard]] Val einsum(Lowering& b, Inputs inputs, Dtype dtype);

// MatMul; where an operand may be empty, no Transpose stands right before it for a runtime that
// would take it in wrongly.
[[nodiscard]] Val product(Lowering& b, Val x, Val y, bool may_be_empty);
[[nodiscard]] bool may_be_empty(Lowering& b, const Shape& shape);

}  // namespace fairlead::onnx
