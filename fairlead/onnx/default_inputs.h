// Inputs that need not be given: the file has a value for each.
#pragma once

#include <string>
#include <vector>

#include "fairlead/onnx/model.h"

namespace fairlead::onnx {

// Each named input becomes one that a run may leave out: where a size of it varies, nothing of it is
// there then (an adapter of rank 0, whose product is zero). Throws where a name is no input, or no
// size of it varies.
void default_inputs(Model& model, const std::vector<std::string>& names);

}  // namespace fairlead::onnx
