// A file without a name and without blocks: the system gives it one when a page is looked at.
#include "fairlead/weights/reserved_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

// -1 where there is none, and errno says why.
int file_without_name() {
#if defined(__linux__)
  return ::memfd_create("fairlead-weights", MFD_CLOEXEC);
#else
  std::FILE* const made = std::tmpfile();  // gone when its last descriptor is
  if (made == nullptr) return -1;
  const int descriptor = ::dup(::fileno(made));
  std::fclose(made);
  return descriptor;
#endif
}

}  // namespace

ReservedMemory::ReservedMemory(std::int64_t bytes) : size_(static_cast<std::size_t>(bytes)) {
  const auto fail = [&] {
    const int number = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    throw Error(ErrorCode::kIo, "[read_weights] Could not reserve addresses for " +
                                    std::to_string(bytes) +
                                    " bytes: " + std::generic_category().message(number) +
                                    ". Load the model instead of leaving its weights in place.");
  };
  descriptor_ = file_without_name();
  if (descriptor_ < 0 || ::ftruncate(descriptor_, bytes) != 0) fail();
  if (bytes == 0) return;
  void* const at =
      ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  if (at == MAP_FAILED) fail();
  data_ = static_cast<std::byte*>(at);
}

ReservedMemory::~ReservedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
  ::close(descriptor_);
}

void ReservedMemory::forget() {
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) {
    throw Error(ErrorCode::kIo, "[read_weights] Could not give memory back: " +
                                    std::generic_category().message(errno) +
                                    ". Load the model instead of leaving its weights in place.");
  }
}

bool ReservedMemory::touched() const {
  struct ::stat now {};
  return ::fstat(descriptor_, &now) != 0 || now.st_blocks > 0;
}

}  // namespace fairlead
