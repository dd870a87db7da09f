// A file's bytes, mapped and not copied.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fairlead::pt2 {

class MappedFile {
 public:
  // Throws Error(kIo) where the file cannot be opened or mapped.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fairlead::pt2
