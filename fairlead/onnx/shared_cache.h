// A cache of keys and values that grows in the memory in which it lies.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fairlead/onnx/model.h"

namespace fairlead::onnx {

struct SharedCache {
  std::int64_t layers = 0;
  std::string why;  // it cannot be; then the model is as it was
  // A static cache: the input that is as long as past and new tokens together, along this axis.
  std::string mask = {};
  std::int64_t mask_axis = 0;
};

// GroupQueryAttention writes new keys behind the past ones where past and present are the same
// memory, which is then as long as the longest text: its size does not say how long the past is.
// So that is read from an input that is as long as past and new tokens together, which is the mask.
// The file takes a past of its own length as well, as before.
[[nodiscard]] SharedCache share_cache(Model& model);

// The same with operators of the standard: TensorScatter, which opset 24 has, writes new keys into a
// buffer, and Attention reads all of it under a mask that hides what is behind them. The file takes a
// buffer that has room for the new tokens, and no other.
[[nodiscard]] SharedCache static_cache(Model& model);

// Its inputs, each with the output that goes on with it.
[[nodiscard]] std::vector<std::pair<TensorId, TensorId>> cache_pairs(const Model& model);

// Keys and values of a cache that share_cache found are stored in int8: each of the heads * size
// channels of an input of the past, by its name, has a scale. What is beyond 127 times that becomes
// that.
void int8_cache(Model& model, const std::map<std::string, std::vector<float>>& scales);

}  // namespace fairlead::onnx
