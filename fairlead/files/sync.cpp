// fsync and flock.
#include "fairlead/files/sync.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "fairlead/files/output_file.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr auto kLongestWait = std::chrono::seconds(10);
constexpr auto kBetweenTries = std::chrono::milliseconds(5);

// File systems without a way to sync say one of these; a folder that may be written to and not be
// read cannot be opened for it.
bool cannot_sync(int error_number) {
  return error_number == EINVAL || error_number == ENOTSUP || error_number == ENOSYS ||
         error_number == EROFS || error_number == EACCES;
}

void sync_opened(const std::string& path, int flags, const std::string& shown_as,
                 const std::string& function) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (descriptor < 0) {
    if (cannot_sync(errno)) return;
    fail_write(shown_as, errno, function);
  }
  int result = 0;
  do {
    result = ::fsync(descriptor);
  } while (result != 0 && errno == EINTR);
  const int reason = errno;
  ::close(descriptor);
  if (result != 0 && !cannot_sync(reason)) fail_write(shown_as, reason, function);
}

}  // namespace

void sync_path(const std::string& path, const std::string& shown_as, const std::string& function) {
  sync_opened(path, O_NOFOLLOW, shown_as, function);
}

void sync_names(const std::string& folder, const std::string& shown_as,
                const std::string& function) {
  sync_opened(folder, O_DIRECTORY, shown_as, function);
}

void sync_tree(const std::string& folder, const std::string& shown_as,
               const std::string& function) {
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const fs::file_status status = at->symlink_status(error);
    if (error) break;
    // A second name of a file is of one that others wrote: a checkpoint may be larger than all
    // memory.
    std::error_code ignored;
    if (fs::is_regular_file(status) && fs::hard_link_count(at->path(), ignored) > 1) continue;
    if (fs::is_regular_file(status) || fs::is_directory(status)) {
      sync_path(at->path().string(), shown_as, function);
    }
  }
  if (error) fail_write(shown_as, error.value(), function);
  sync_path(folder, shown_as, function);
}

FolderLock::FolderLock(const std::string& folder) {
  descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) return;
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (!(held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0)) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    if (std::chrono::steady_clock::now() > end) return;
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void FolderLock::remove(const std::string& name) const {
  if (descriptor_ >= 0) ::unlinkat(descriptor_, name.c_str(), 0);
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace fairlead
