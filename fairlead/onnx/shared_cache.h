// A cache of keys and values that grows in the memory in which it lies.
#pragma once

#include <cstdint>
#include <string>

#include "fairlead/onnx/model.h"

namespace fairlead::onnx {

struct SharedCache {
  std::int64_t layers = 0;
  std::string why;  // it cannot be; then the model is as it was
};

// GroupQueryAttention writes new keys behind the past ones where past and present are the same
// memory, which is then as long as the longest text: its size does not say how long the past is.
// So that is read from an input that is as long as past and new tokens together, which is the mask.
// The file takes a past of its own length as well, as before.
[[nodiscard]] SharedCache share_cache(Model& model);

}  // namespace fairlead::onnx
