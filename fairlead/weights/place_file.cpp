// Shares, links or copies a file.
#include "fairlead/weights/place_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/fs.h>
#include <sys/ioctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <vector>

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

constexpr std::int64_t kAtOnce = 64 << 20;
constexpr std::size_t kBuffer = 4 << 20;

[[noreturn]] void fail(const std::string& to, int number, const std::string& advice) {
  throw Error(ErrorCode::kIo, "[export] Could not write '" + to +
                                  "': " + std::generic_category().message(number) + ". " + advice);
}

struct Descriptor {
  int number = -1;
  explicit Descriptor(int opened) : number(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

// Bytes that the system copied by itself; fewer than all where it cannot.
std::int64_t copied_by_system(int from, int to, std::int64_t bytes,
                              const std::function<void(std::int64_t)>& progress) {
  std::int64_t done = 0;
#if defined(__linux__)
  while (done < bytes) {
    const ssize_t some = ::copy_file_range(
        from, nullptr, to, nullptr, static_cast<std::size_t>(std::min(kAtOnce, bytes - done)), 0);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) break;
    done += some;
    if (progress) progress(done);
  }
#else
  (void)from, (void)to, (void)bytes, (void)progress;
#endif
  return done;
}

// 0, or the system's error number.
int copied(int from, int to, std::int64_t done, std::int64_t bytes,
           const std::function<void(std::int64_t)>& progress) {
  std::vector<char> buffer(kBuffer);
  std::int64_t told = done;
  while (done < bytes) {
    const ssize_t got = ::pread(from, buffer.data(), buffer.size(), done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0 ? EIO : errno;  // it became shorter
    for (ssize_t written = 0; written < got;) {
      const ssize_t some = ::pwrite(to, buffer.data() + written,
                                    static_cast<std::size_t>(got - written), done + written);
      if (some < 0 && errno != EINTR) return errno;
      written += std::max<ssize_t>(some, 0);
    }
    done += got;
    if (progress && done - told >= kAtOnce) progress(told = done);
  }
  return 0;
}

}  // namespace

Placed place_file(const std::string& from, const std::string& to, bool link,
                  const std::function<void(std::int64_t)>& progress) {
  if (link) {
    if (::link(from.c_str(), to.c_str()) != 0) {
      fail(to, errno, "Leave --link out: the file is then copied.");
    }
    return Placed::kLinked;
  }
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  struct ::stat info {};
  if (source.number < 0 || ::fstat(source.number, &info) != 0) {
    throw Error(ErrorCode::kIo, "[export] Could not read '" + from +
                                    "': " + std::generic_category().message(errno) +
                                    ". Check that the files are complete.");
  }
  const Descriptor target(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (target.number < 0) fail(to, errno, "Choose another folder.");
  // Whatever happens, no half file stays.
  const auto remove = [](const std::string* path) { ::unlink(path->c_str()); };
  std::unique_ptr<const std::string, decltype(remove)> half(&to, remove);
  Placed how = Placed::kShared;
#if defined(__linux__)
  const bool shared = ::ioctl(target.number, FICLONE, source.number) == 0;
#else
  const bool shared = false;
#endif
  if (!shared) {
    const std::int64_t done =
        copied_by_system(source.number, target.number, info.st_size, progress);
    how = done == info.st_size ? Placed::kKernel : Placed::kCopied;
    if (how == Placed::kCopied) {
      const int problem = copied(source.number, target.number, done, info.st_size, progress);
      if (problem != 0) fail(to, problem, "Choose another folder.");
    }
  }
  (void)half.release();
  return how;
}

}  // namespace fairlead
