// Staging folders: made, locked, found dead, and the commit of a single file.
#include "fairlead/files/staging.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/files/output_file.h"
#include "fairlead/files/sync.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxNameInFolder = 200;  // of the 255 that file systems allow
constexpr std::string_view kMark = ".fairlead-";
constexpr std::size_t kRandomLetters = 6;  // as mkdtemp makes them
constexpr int kTries = 100;

std::string prefix_for(const std::string& name) {
  return "." + name.substr(0, kMaxNameInFolder) + std::string(kMark);
}

void remove_dead(const std::string& parent, const std::string& prefix) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(prefix) && is_staging_name(name)) found.push_back(at->path().string());
  }
  for (const std::string& folder : found) remove_if_dead(folder);
}

// Whether a folder cannot change places with one beside it: it is a disk of its own, the folder
// around it takes no others, or somebody stands in it.
bool must_be_inside(const std::string& target, const std::string& parent) {
  struct stat own {};
  struct stat around {};
  if (::stat(target.c_str(), &own) != 0 || !S_ISDIR(own.st_mode)) return false;
  if (::stat(parent.c_str(), &around) != 0) return false;
  return own.st_dev != around.st_dev || ::access(parent.c_str(), W_OK | X_OK) != 0 ||
         holds_working_directory(target);
}

bool has_no_locks(int error_number) {
  return error_number == ENOSYS || error_number == EOPNOTSUPP || error_number == EINVAL ||
         error_number == EBADF;
}

}  // namespace

bool is_staging_name(const std::string& name) {
  const std::size_t at = name.rfind(kMark);
  return name.starts_with(".") && at != std::string::npos && at > 0 &&
         name.size() == at + kMark.size() + kRandomLetters &&
         std::all_of(name.end() - kRandomLetters, name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0; });
}

bool holds_working_directory(const std::string& folder) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (error) return true;
  for (fs::path at = here;; at = at.parent_path()) {
    if (fs::equivalent(at, folder, error)) return true;
    if (!at.has_relative_path()) return false;
  }
}

bool remove_if_dead(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return errno == ENOENT;
  std::error_code error(EBUSY, std::generic_category());
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) fs::remove_all(folder, error);
  ::close(descriptor);
  return !error;
}

Staging::Staging(const std::string& target, std::string function)
    : target_(target), function_(std::move(function)), owner_(::getpid()) {
  fs::path path = fs::path(target).lexically_normal();
  if (!path.has_filename() && path.has_parent_path()) path = path.parent_path();  // "out/"
  if (path.filename() == "." || path.filename() == "..") {
    std::error_code error;
    path = fs::canonical(path, error);
    if (error) fail_write(target_, error.value(), function_);
  }
  name_ = path.filename().string();
  parent_ = path.has_parent_path() ? path.parent_path().string() : ".";
  if (name_.empty()) fail_write(target_, EISDIR, function_);
  refuse_special();
  made_in_ = must_be_inside(target_, parent_) ? target_ : parent_;
  remove_dead(made_in_, prefix_for(name_));
  try {
    make_folder();
  } catch (...) {
    discard();
    throw;
  }
}

Staging::~Staging() { discard(); }

// A rename would put a file in the place of a device or a pipe: of /dev/null, for whoever may.
void Staging::refuse_special() const {
  struct stat found {};
  if (::stat(target_.c_str(), &found) != 0 || S_ISREG(found.st_mode) || S_ISDIR(found.st_mode)) {
    return;
  }
  throw Error(ErrorCode::kIo, "[" + function_ + "] Could not write '" + target_ +
                                  "': it is a device, a pipe or a socket. Choose another name.");
}

void Staging::make_folder() {
  for (int k = 0; k < kTries; ++k) {
    std::string folder = (fs::path(made_in_) / (prefix_for(name_) + "XXXXXX")).string();
    if (::mkdtemp(folder.data()) == nullptr) {
      // A folder of the system (/proc) may be there, and still not know the name of a new one.
      std::error_code error;
      const bool takes_none = errno == ENOENT && fs::is_directory(made_in_, error);
      fail_write(target_, takes_none ? EACCES : errno, function_);
    }
    outer_ = std::move(folder);
    if (lock_folder()) {
      content_ = outer_ + "/new";
      if (::mkdir(content_.c_str(), 0777) != 0) fail_write(target_, errno, function_);
      return;
    }
  }
  fail_write(target_, EBUSY, function_);
}

// Between its making and its locking the folder looks dead to others: then it is theirs to remove,
// and another one is made.
bool Staging::lock_folder() {
  lock_ = ::open(outer_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) {
    if (errno == ENOENT) return false;
    fail_write(target_, errno, function_);
  }
  // Shared: a lock for oneself needs a descriptor that can write on network disks, and folders have
  // none.
  if (::flock(lock_, LOCK_SH | LOCK_NB) == 0) {
    struct stat opened {};
    struct stat named {};
    if (::fstat(lock_, &opened) == 0 && ::stat(outer_.c_str(), &named) == 0 &&
        opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) {
      return true;
    }
  } else if (has_no_locks(errno)) {
    return true;
  } else if (errno != EWOULDBLOCK) {
    fail_write(target_, errno, function_);
  }
  ::close(std::exchange(lock_, -1));
  return false;
}

void Staging::discard() noexcept {
  if (!outer_.empty() && owner_ == ::getpid()) {
    std::error_code ignored;
    fs::remove_all(outer_, ignored);
  }
  outer_.clear();
  if (lock_ >= 0) ::close(std::exchange(lock_, -1));
}

void Staging::sync_content() const { sync_tree(content_, target_, function_); }

void Staging::move(const std::string& name) const {
  FAIRLEAD_CHECK(!outer_.empty(), "nothing is staged");
  const std::string to = (fs::path(parent_) / name).string();
  if (std::rename((content_ + "/" + name).c_str(), to.c_str()) != 0) {
    fail_write(name == name_ ? target_ : to, errno, function_);
  }
}

void Staging::sync_parent() const { sync_names(parent_, target_, function_); }

void Staging::commit_file() {
  sync_path(path(), target_, function_);
  move(name_);
  sync_parent();
  discard();
}

void Staging::commit_pair(const std::string& second) {
  sync_content();
  move(second);
  commit_file();
}

void write_file(const std::string& path, const std::string& bytes, const std::string& function) {
  Staging staging(path, function);
  OutputFile file(staging.path(), path, OutputFile::Mode::kReplace, function);
  file.write(std::as_bytes(std::span(bytes)));
  file.close();
  staging.commit_file();
}

}  // namespace fairlead
