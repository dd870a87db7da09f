// Mixtures of experts whose weights are quantised: MoE becomes QMoE.
#pragma once

#include <unordered_set>

#include "fairlead/onnx/model.h"
#include "fairlead/quant/quantize.h"

namespace fairlead::quant {

// Adds what became of each, and why others stay, to the report; nothing else of the model changes.
// The constants that stay and of which the report says why.
std::unordered_set<onnx::TensorId> quantize_experts(onnx::Model& model, const Options& options,
                                                    Report& report);

}  // namespace fairlead::quant
