// Keeps where the weights of models that were written are.
#include "fairlead/onnx/shared_weights.h"

#include <algorithm>

namespace fairlead::onnx {

void SharedWeights::declare(const std::byte* begin, std::int64_t bytes) {
  if (bytes > 0) memory_.emplace_back(begin, begin + bytes);
}

bool SharedWeights::declared(const std::byte* begin, std::int64_t bytes) const {
  return std::ranges::any_of(memory_, [&](const auto& range) {
    return range.first <= begin && begin + bytes <= range.second;
  });
}

const ExternalSlot* SharedWeights::find(const TensorIdentity& tensor) const {
  const auto found = placed_.find(tensor);
  return found == placed_.end() ? nullptr : &found->second;
}

bool SharedWeights::stored(const std::byte* begin) const {
  return std::ranges::any_of(placed_, [&](const auto& entry) {
    return std::get<0>(entry.first) == begin && std::get<3>(entry.first).empty();
  });
}

void SharedWeights::remember(const std::string& folder, const std::string& location,
                             const std::map<TensorIdentity, ExternalSlot>& placed) {
  if (folder_.empty()) folder_ = folder;
  if (folder != folder_) return;  // a model refers to files beside it only
  for (const auto& [tensor, slot] : placed) {
    // A view with strides spans at most as much as the memory it was cut from: its first byte and
    // its own size are inside where the whole tensor is.
    if (!slot.location.empty() || !declared(std::get<0>(tensor), std::get<1>(tensor))) continue;
    placed_.try_emplace(tensor, ExternalSlot{slot.offset, slot.length, location});
  }
}

}  // namespace fairlead::onnx
