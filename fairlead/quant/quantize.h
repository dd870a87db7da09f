// Weights of an ONNX model in blocks of small integers.
//
// MatMul by a constant becomes MatMulNBits; a Gather of rows of a constant (an embedding)
// GatherBlockQuantized; a matrix that both read is stored once; MoE becomes QMoE. Without operators of ONNX Runtime,
// DequantizeLinear before the MatMul, which it turns into the same kernel.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fairlead/onnx/model.h"
#include "fairlead/quant/blocks.h"

namespace fairlead::quant {

struct Options {
  Format format = {};
  bool head = true;     // embeddings and the product that makes an output as well
  bool contrib = true;  // with operators of ONNX Runtime
  bool int8_activations =
      false;  // MatMulNBits rounds what it multiplies to 8 bits: fast, not exact
  unsigned threads = 1;
  int runtime_version = 0;  // 31: what ONNX Runtime 1.31 has; 0: what the newest has
};

struct Layer {
  std::string name;  // of the weight
  std::int64_t rows = 0, columns = 0;
  double error = 0;  // |w - stored w| / |w|
};

struct Report {
  std::vector<Layer> layers;                              // in the order of the file
  std::vector<std::pair<std::string, std::string>> kept;  // weights that stay floats, and why
  std::int64_t bytes_before = 0, bytes_after = 0;         // of those that do not
};

// Throws Error(kInvalidInput) where the model has no weight that can be, or is quantised already.
[[nodiscard]] Report quantize(onnx::Model& model, const Options& options);

}  // namespace fairlead::quant
