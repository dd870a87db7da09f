// Looks up which parts of files memory stands for.
#include "fairlead/weights/file_regions.h"

#include <algorithm>
#include <iterator>

#include "fairlead/base/error.h"

namespace fairlead {

std::string_view KeptNames::keep(std::string_view name) {
  const auto found = names_.find(name);
  return found != names_.end() ? *found : *names_.emplace(name).first;
}

void FileRegions::add(const std::byte* begin, const FilePart& part) {
  if (part.bytes <= 0) return;
  const auto next = std::ranges::lower_bound(regions_, begin, {}, &Region::begin);
  const bool free =
      (next == regions_.end() || begin + part.bytes <= next->begin) &&
      (next == regions_.begin() || std::prev(next)->begin + std::prev(next)->part.bytes <= begin);
  FAIRLEAD_CHECK(free, "memory that stands for two parts of files, of " + std::string(part.file));
  regions_.insert(next, {begin, {names_.keep(part.file), part.offset, part.bytes}});
}

std::vector<FilePart> FileRegions::find(const std::byte* begin, std::int64_t bytes) const {
  std::vector<FilePart> found;
  auto it = std::ranges::upper_bound(regions_, begin, {}, &Region::begin);
  if (bytes <= 0 || it == regions_.begin()) return found;
  for (--it; bytes > 0; ++it) {
    if (it == regions_.end() || it->begin > begin) return {};
    const std::int64_t skipped = begin - it->begin;
    const std::int64_t taken = std::min(bytes, it->part.bytes - skipped);
    if (taken <= 0) return {};
    found.push_back({it->part.file, it->part.offset + skipped, taken});
    begin += taken;
    bytes -= taken;
  }
  return found;
}

}  // namespace fairlead
