// Pieces of one buffer's size, read and forgotten: the page cache keeps them.
#include "fairlead/files/read_ahead.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

namespace fairlead {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;

}  // namespace

ReadAhead::ReadAhead(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  try {
    thread_ = std::thread([this, descriptor] { read(descriptor); });
  } catch (const std::system_error&) {  // no more threads: it goes without
    ::close(descriptor);
  }
}

ReadAhead::~ReadAhead() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

std::int64_t ReadAhead::wait() {
  if (thread_.joinable()) thread_.join();
  return bytes_;
}

void ReadAhead::read(int descriptor) {
  std::vector<char> piece(kPiece);
  while (!ends_) {
    const ::ssize_t got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    bytes_ += got;
  }
  ::close(descriptor);
}

}  // namespace fairlead
