// Which memory stands for bytes of files: files that are mapped, and tensors that are put together
// of parts of them. A constant there is a reference, (file, offset, length), and is not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fairlead {

struct FilePart {
  std::string file;  // its name in the folder
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  bool operator==(const FilePart&) const = default;
};

class FileRegions {
 public:
  // The bytes of `part`, in their order, stand at `begin`. Regions do not overlap.
  void add(const std::byte* begin, FilePart part);

  // What the memory is, part after part as they were added; nothing where some of it is in no file.
  [[nodiscard]] std::vector<FilePart> find(const std::byte* begin, std::int64_t bytes) const;

  [[nodiscard]] bool holds(const std::byte* at) const { return !find(at, 1).empty(); }
  [[nodiscard]] bool empty() const { return parts_.empty(); }

 private:
  std::map<const std::byte*, FilePart> parts_;  // by where they begin
};

}  // namespace fairlead
