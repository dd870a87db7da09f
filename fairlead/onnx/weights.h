// Weights of a model as inputs of its graph: to be given, or overridden, when it runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fairlead/onnx/model.h"

namespace fairlead::onnx {

struct Weight {
  std::string name;
  std::vector<std::int64_t> dims;  // as its owner has it
};

// A copy of `model` in which the initializers that are these weights are inputs, after the other
// inputs; with `keep_values` they stay initializers too, which makes the inputs optional. The bytes
// stay borrowed. An initializer that lowering stores transposed is an input of its owner's shape
// and a Transpose, so that what a state dict holds can be fed as it is. An initializer that is only
// a part of a weight stays what it is.
[[nodiscard]] Model weights_as_inputs(Model model, std::span<const Weight> weights,
                                      bool keep_values);

}  // namespace fairlead::onnx
