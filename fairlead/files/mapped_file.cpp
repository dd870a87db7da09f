// POSIX memory mapping.
#include "fairlead/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "fairlead/base/error.h"

namespace fairlead {

MappedFile::MappedFile(const std::string& path, const std::string& function,
                       const std::string& advice) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kIo,
                "[" + function + "] Could not read '" + path + "': " + why + ". " + advice);
  };
  const auto reason = [](int number) { return std::generic_category().message(number); };
  // Without O_NONBLOCK a pipe would be waited for until somebody writes into it.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail(reason(errno));
  struct stat info {};
  std::string problem;
  if (::fstat(file, &info) != 0) {
    problem = reason(errno);
  } else if (S_ISDIR(info.st_mode)) {
    problem = reason(EISDIR);
  } else if (!S_ISREG(info.st_mode)) {
    problem = "it is not a plain file";
  } else if (info.st_size > 0) {
    size_ = static_cast<std::size_t>(info.st_size);
    void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    if (at == MAP_FAILED) {
      problem = reason(errno);
    } else {
      data_ = static_cast<const std::byte*>(at);
      guard_ = MappingGuard(at, size_);
    }
  }
  ::close(file);
  if (!problem.empty()) fail(problem);
}

void MappedFile::forget(std::size_t bytes) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (data_ != nullptr && bytes >= page) {
    ::madvise(const_cast<std::byte*>(data_), bytes / page * page, MADV_DONTNEED);
  }
}

MappedFile::~MappedFile() {
  guard_ = {};
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace fairlead
