// The dtypes in which ONNX Runtime's CPU kernels compute.
#pragma once

#include "fairlead/base/dtype.h"

namespace fairlead::onnx {

// For kernels of float32 only (float16 is widened by the runtime itself).
[[nodiscard]] inline Dtype kernel_dtype(Dtype d) {
  return d == Dtype::kFloat32 || d == Dtype::kFloat16 ? d : Dtype::kFloat32;
}

// For sums over many elements: half precision adds up in float32, as PyTorch does.
[[nodiscard]] inline Dtype wide_dtype(Dtype d) {
  return d == Dtype::kFloat16 || d == Dtype::kBfloat16 ? Dtype::kFloat32 : d;
}

}  // namespace fairlead::onnx
