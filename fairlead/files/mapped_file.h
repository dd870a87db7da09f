// A file's bytes, mapped and not copied: what is not looked at is not loaded.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "fairlead/files/mapping_guard.h"

namespace fairlead {

class MappedFile {
 public:
  // `function` and `advice` are for the message. Throws Error(kIo) where it is not a plain file, or
  // cannot be opened or mapped; a pipe is not waited for.
  MappedFile(const std::string& path, const std::string& function, const std::string& advice);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  // What was looked at of the first bytes need not stay in memory.
  void forget(std::size_t bytes) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  MappingGuard guard_;
};

}  // namespace fairlead
