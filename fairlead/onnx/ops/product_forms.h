// Products that several families are made of.
#pragma once

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

// The equation of the node at hand, aten.einsum, over these tensors of one type.
[[nodiscard]] Val einsum(Lowering& b, Inputs inputs, Dtype dtype);

}  // namespace fairlead::onnx
