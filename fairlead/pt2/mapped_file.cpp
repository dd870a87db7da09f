// POSIX memory mapping.
#include "fairlead/pt2/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fairlead/base/error.h"

namespace fairlead::pt2 {

MappedFile::MappedFile(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kIo, "[pt2] Could not read '" + path + "': " + why +
                                    ". Give the name of a file that torch.export.save wrote.");
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(std::strerror(errno));
  struct stat info {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(file);
    fail("it is not a plain file");
  }
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ > 0) {
    void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    const int problem = errno;
    ::close(file);
    if (at == MAP_FAILED) fail(std::strerror(problem));
    data_ = static_cast<const std::byte*>(at);
  } else {
    ::close(file);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace fairlead::pt2
