// Keeps where the weights of models that were written are.
#include "fairlead/onnx/shared_weights.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

namespace fairlead::onnx {

void SharedWeights::declare(const std::byte* begin, std::int64_t bytes) {
  if (bytes <= 0) return;
  // Ranges that overlap are one: views of a tensor and the whole of it.
  const std::byte* end = begin + bytes;
  auto it = memory_.upper_bound(begin);
  if (it != memory_.begin() && std::prev(it)->second > begin) --it;
  while (it != memory_.end() && it->first < end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    it = memory_.erase(it);
  }
  memory_.emplace(begin, end);
}

bool SharedWeights::declared(const std::byte* begin, std::int64_t bytes) const {
  const auto it = memory_.upper_bound(begin);
  return it != memory_.begin() && begin + bytes <= std::prev(it)->second;
}

void SharedWeights::declare_files(const std::string& folder, FileRegions files) {
  folder_ = std::filesystem::absolute(folder).lexically_normal().string();
  if (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
  files_ = std::move(files);
}

std::optional<ExternalSlot> SharedWeights::find(const TensorIdentity& tensor) const {
  const auto found = placed_.find(tensor);
  if (found != placed_.end()) return found->second;
  const auto& [begin, bytes, size, dims, strides] = tensor;
  if (!dims.empty()) return std::nullopt;  // in another order than in the file
  const std::vector<FilePart> parts = files_.find(begin, bytes);
  if (parts.size() != 1) return std::nullopt;
  return ExternalSlot{parts[0].offset, parts[0].bytes, parts[0].file};
}

bool SharedWeights::stored(const std::byte* begin) const {
  if (files_.holds(begin) || (fetched_ && fetched_->holds(begin))) return true;
  // They are in order of where they begin.
  for (auto it = placed_.lower_bound(TensorIdentity{begin, INT64_MIN, 0, {}, {}});
       it != placed_.end() && std::get<0>(it->first) == begin; ++it) {
    if (std::get<3>(it->first).empty()) return true;
  }
  return false;
}

void SharedWeights::remember(const std::string& folder, const std::string& location,
                             const std::map<TensorIdentity, ExternalSlot>& placed) {
  if (folder_.empty()) folder_ = folder;
  if (folder != folder_) return;  // a model refers to files beside it only
  const std::string_view kept = locations_.keep(location);
  for (const auto& [tensor, slot] : placed) {
    // A view with strides spans at most as much as the memory it was cut from: its first byte and
    // its own size are inside where the whole tensor is.
    if (!slot.location.empty() || !declared(std::get<0>(tensor), std::get<1>(tensor))) continue;
    placed_.try_emplace(tensor, ExternalSlot{slot.offset, slot.length, kept});
  }
}

}  // namespace fairlead::onnx
