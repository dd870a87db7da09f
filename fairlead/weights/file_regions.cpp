// Looks up which parts of files memory stands for.
#include "fairlead/weights/file_regions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fairlead/base/error.h"

namespace fairlead {

void FileRegions::add(const std::byte* begin, FilePart part) {
  if (part.bytes <= 0) return;
  const auto next = parts_.lower_bound(begin);
  const bool free =
      (next == parts_.end() || begin + part.bytes <= next->first) &&
      (next == parts_.begin() || std::prev(next)->first + std::prev(next)->second.bytes <= begin);
  FAIRLEAD_CHECK(free, "memory that stands for two parts of files, of " + part.file);
  parts_.emplace(begin, std::move(part));
}

std::vector<FilePart> FileRegions::find(const std::byte* begin, std::int64_t bytes) const {
  std::vector<FilePart> found;
  auto it = parts_.upper_bound(begin);
  if (bytes <= 0 || it == parts_.begin()) return found;
  for (--it; bytes > 0; ++it) {
    if (it == parts_.end() || it->first > begin) return {};
    const std::int64_t skipped = begin - it->first;
    const std::int64_t taken = std::min(bytes, it->second.bytes - skipped);
    if (taken <= 0) return {};
    found.push_back({it->second.file, it->second.offset + skipped, taken});
    begin += taken;
    bytes -= taken;
  }
  return found;
}

}  // namespace fairlead
