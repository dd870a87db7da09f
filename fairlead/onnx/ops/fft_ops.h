// Fourier transforms of joined pairs, for the rows in complex_ops.cpp.
#pragma once

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

void lower_fft_c2c(Lowering& b);
void lower_fft_r2c(Lowering& b);
void lower_fft_c2r(Lowering& b);

}  // namespace fairlead::onnx
