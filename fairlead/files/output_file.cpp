// POSIX writes, and the advice that goes with each way they fail.
#include "fairlead/files/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/files/content_hash.h"
#include "fairlead/files/write_behind.h"

namespace fairlead {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
// Pieces of at least this size are written from where they lie: one copy less.
constexpr std::size_t kDirectBytes = std::size_t{1} << 18;
// Linux writes at most 2 GiB less a page per call, and macOS refuses more than INT_MAX.
constexpr std::size_t kMaxWriteBytes = std::size_t{1} << 30;

struct AdviceRow {
  int error_number;
  const char* advice;
};

constexpr AdviceRow kAdvice[] = {
    {ENOSPC, "Free some space, or choose a folder on another disk."},
    {EDQUOT, "Free some of your quota, or choose a folder on another disk."},
    {EFBIG, "Raise the limit on file sizes (ulimit -f), or choose another disk."},
    {EACCES, "Check the permissions of the folder, or choose another one."},
    {EPERM, "Check the permissions of the folder, or choose another one."},
    {EROFS, "Choose a folder on a disk that can be written."},
    {ENOENT, "Create the folder first."},
    {ENOTDIR, "Create the folder first; a part of the path is a file."},
    {EISDIR, "Give the name of a file, such as 'model.onnx' in that folder."},
    {ENAMETOOLONG, "Choose a shorter name."},
};

}  // namespace

void fail_write(const std::string& path, int error_number, const std::string& function) {
  const char* advice = "Check the disk, or choose another folder.";
  for (const AdviceRow& row : kAdvice) {
    if (row.error_number == error_number) advice = row.advice;
  }
  throw Error(ErrorCode::kIo, "[" + function + "] Could not write '" + path + "': " +
                                  std::generic_category().message(error_number) + ". " + advice);
}

OutputFile::OutputFile(const std::string& path, std::string shown_as, Mode mode,
                       std::string function)
    : shown_as_(std::move(shown_as)), function_(std::move(function)) {
  buffer_.resize(kBufferBytes);
  descriptor_ =
      ::open(path.c_str(),
             O_WRONLY | O_CLOEXEC | (mode == Mode::kAppend ? O_APPEND : O_CREAT | O_TRUNC), 0666);
  if (descriptor_ < 0) fail_write(shown_as_, errno, function_);
}

OutputFile::~OutputFile() {
  behind_.reset();  // before what it writes to is closed
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::int64_t OutputFile::position() const { return flushed_ + static_cast<std::int64_t>(used_); }

void OutputFile::write_behind() {
  FAIRLEAD_CHECK(position() == 0, "a file of " + std::to_string(position()) + " bytes");
  buffer_ = {};
  behind_ = std::make_unique<WriteBehind>(descriptor_, hash_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (behind_) {
    if (!behind_->write(bytes)) fail_write(shown_as_, behind_->error(), function_);
    flushed_ += static_cast<std::int64_t>(bytes.size());
    return;
  }
  if (bytes.size() >= kDirectBytes) {
    flush();
    write_out(bytes.data(), bytes.size());
    return;
  }
  std::memcpy(claim(bytes.size()), bytes.data(), bytes.size());
}

void OutputFile::pad_to(std::int64_t offset) {
  FAIRLEAD_CHECK(offset >= position(), "padding backwards to " + std::to_string(offset));
  while (position() < offset) {
    const auto size = static_cast<std::size_t>(
        std::min<std::int64_t>(offset - position(), static_cast<std::int64_t>(kBufferBytes)));
    std::memset(claim(size), 0, size);
  }
}

std::byte* OutputFile::claim(std::size_t size) {
  if (behind_) {
    std::byte* const place = behind_->claim(size);
    if (place == nullptr) fail_write(shown_as_, behind_->error(), function_);
    flushed_ += static_cast<std::int64_t>(size);
    return place;
  }
  if (size > buffer_.size() - used_) flush();
  if (size > buffer_.size()) buffer_.resize(size);
  std::byte* const place = buffer_.data() + used_;
  used_ += size;
  return place;
}

void OutputFile::close() {
  if (behind_) {
    if (!behind_->finish()) fail_write(shown_as_, behind_->error(), function_);
    behind_.reset();
  }
  flush();
  // close releases the descriptor even where it reports an error.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR)
    fail_write(shown_as_, errno, function_);
}

void OutputFile::flush() { write_out(buffer_.data(), std::exchange(used_, 0)); }

void OutputFile::write_out(const std::byte* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, data, std::min(size, kMaxWriteBytes));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_write(shown_as_, errno, function_);
    }
    if (hash_ != nullptr) hash_->update({data, static_cast<std::size_t>(written)});
    data += written;
    size -= static_cast<std::size_t>(written);
    flushed_ += written;
  }
}

}  // namespace fairlead
