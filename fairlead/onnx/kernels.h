// Which element types a runtime's kernels take, so that a Cast stands only where one is needed.
#pragma once

#include <cstdint>
#include <string_view>

#include "fairlead/base/dtype.h"
#include "fairlead/passes/target.h"

namespace fairlead::onnx {

// The type in which `op` is computed on elements of `dtype`: `dtype` itself where a kernel exists.
// Half floats become float32, small integers int32; where only single precision exists, float64
// does too.
[[nodiscard]] Dtype kernel_dtype(const RuntimeProfile& runtime, std::string_view op, Dtype dtype);

// Which of the operator's inputs are of that type: bit k for input k.
[[nodiscard]] std::uint32_t kernel_inputs(std::string_view op);

// The type for formulas of several nodes: they round once, as PyTorch's kernels do.
[[nodiscard]] inline Dtype work_dtype(Dtype dtype) {
  return dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16 ? Dtype::kFloat32 : dtype;
}

}  // namespace fairlead::onnx
