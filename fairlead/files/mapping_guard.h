// Mapped files that become shorter while they are read: the system ends a process that looks at what
// is gone, wherever it looks. Here it finds zeros instead, and whoever mapped the file finds out by
// its size.
#pragma once

#include <cstddef>

namespace fairlead {

// Guards memory for as long as this lives; several at once, from any thread. What else answers
// SIGBUS is asked about every other address, and is as it was when the last guard is gone. Of more
// than some thousand mappings those that come last have none.
class MappingGuard {
 public:
  MappingGuard() = default;
  MappingGuard(const void* begin, std::size_t size);
  ~MappingGuard();
  MappingGuard(MappingGuard&& other) noexcept;
  MappingGuard& operator=(MappingGuard&& other) noexcept;
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

 private:
  int slot_ = -1;
};

}  // namespace fairlead
