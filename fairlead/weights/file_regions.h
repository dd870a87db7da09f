// Which memory stands for bytes of files: files that are mapped, and tensors that are put together
// of parts of them. A constant there is a reference, (file, offset, length), and is not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

struct FilePart {
  std::string_view file;  // its name in the folder; of the FileRegions that it is from
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  bool operator==(const FilePart&) const = default;
};

// Names that others may point to, however many come after them and whoever owns them next.
class KeptNames {
 public:
  KeptNames() = default;
  KeptNames(KeptNames&&) = default;
  KeptNames& operator=(KeptNames&&) = default;
  std::string_view keep(std::string_view name);

 private:
  std::set<std::string, std::less<>> names_;
};

class FileRegions {
 public:
  // The bytes of `part`, in their order, stand at `begin`. Regions do not overlap. In the order of
  // where they begin it takes no time.
  void add(const std::byte* begin, const FilePart& part);

  // What the memory is, part after part as they were added; nothing where some of it is in no file.
  [[nodiscard]] std::vector<FilePart> find(const std::byte* begin, std::int64_t bytes) const;

  [[nodiscard]] bool holds(const std::byte* at) const { return !find(at, 1).empty(); }
  [[nodiscard]] bool empty() const { return regions_.empty(); }

 private:
  struct Region {
    const std::byte* begin;
    FilePart part;
  };
  std::vector<Region> regions_;  // by where they begin
  KeptNames names_;
};

}  // namespace fairlead
