// A file without a name and without blocks: the system gives it one when a page is looked at.
#include "fairlead/weights/reserved_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

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

// All that there are.
std::mutex listing;
std::vector<const ReservedMemory*>& list() {
  static std::vector<const ReservedMemory*> all;
  return all;
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
  const std::lock_guard lock(listing);
  list().push_back(this);
}

ReservedMemory::~ReservedMemory() {
  {
    const std::lock_guard lock(listing);
    std::erase(list(), this);
  }
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

void ReservedMemory::forget(std::size_t offset, std::size_t bytes) {
#if defined(__linux__)
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = (offset + page - 1) / page * page;
  const std::size_t last = std::min((offset + bytes) / page * page, size_);
  if (first >= last) return;
  // Where it cannot be given back it stays, and is written over.
  (void)::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(first), static_cast<off_t>(last - first));
#else
  (void)offset;
  (void)bytes;
#endif
}

bool ReservedMemory::is_empty(const std::byte* at) {
  const std::lock_guard lock(listing);
  return std::ranges::any_of(list(), [&](const ReservedMemory* each) {
    return at >= each->data_ && at < each->data_ + each->size_ && !each->filled_;
  });
}

bool ReservedMemory::touched() const {
  struct ::stat now {};
  return ::fstat(descriptor_, &now) != 0 || now.st_blocks > 0;
}

}  // namespace fairlead
