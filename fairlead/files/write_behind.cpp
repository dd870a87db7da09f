// One producer, one writer, three buffers.
#include "fairlead/files/write_behind.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "fairlead/files/content_hash.h"

namespace fairlead {
namespace {

constexpr std::size_t kCapacity = std::size_t{8} << 20;
constexpr std::size_t kBlock = 4096;  // of every file system that can write past the cache

std::size_t in_blocks(std::size_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

// Past the page cache; false where this file system cannot.
bool set_direct(int descriptor, bool direct) {
#ifdef O_DIRECT
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0) return false;
  return ::fcntl(descriptor, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
#else
  (void)descriptor;
  return !direct;
#endif
}

}  // namespace

void WriteBehind::Free::operator()(std::byte* bytes) const { std::free(bytes); }

WriteBehind::WriteBehind(int descriptor, ContentHash* hash)
    : descriptor_(descriptor), direct_(set_direct(descriptor, true)), hash_(hash) {
  reserve(buffers_[0], kCapacity);
  thread_ = std::thread([this] { work(); });
}

WriteBehind::~WriteBehind() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Keeps what is in it.
void WriteBehind::reserve(Buffer& buffer, std::size_t size) {
  if (size <= buffer.capacity) return;
  const std::size_t capacity = in_blocks(std::max(size, kCapacity));
  std::unique_ptr<std::byte, Free> bytes(
      static_cast<std::byte*>(std::aligned_alloc(kBlock, capacity)));
  if (!bytes) throw std::bad_alloc();
  if (buffer.used > 0) std::memcpy(bytes.get(), buffer.bytes.get(), buffer.used);
  buffer.bytes = std::move(bytes);
  buffer.capacity = capacity;
}

std::byte* WriteBehind::claim(std::size_t size) {
  Buffer* buffer = &buffers_[filling_];
  if (size > buffer->capacity - buffer->used) {
    if (buffer->used >= kBlock && !hand_over(false, size)) return nullptr;
    buffer = &buffers_[filling_];
    reserve(*buffer, buffer->used + size);
  }
  std::byte* const place = buffer->bytes.get() + buffer->used;
  buffer->used += size;
  return place;
}

bool WriteBehind::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const Buffer& buffer = buffers_[filling_];
    std::size_t size = std::min(bytes.size(), buffer.capacity - buffer.used);
    if (size == 0) size = std::min(bytes.size(), kCapacity - kBlock);
    std::byte* const place = claim(size);
    if (place == nullptr) return false;
    std::memcpy(place, bytes.data(), size);
    bytes = bytes.subspan(size);
  }
  return true;
}

bool WriteBehind::finish() {
  bool all = hand_over(true, 0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return in_hand_ == 0 || error_ != 0; });
  return all && error_ == 0;
}

int WriteBehind::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

// Waits until the next buffer is free.
bool WriteBehind::hand_over(bool last, std::size_t next_size) {
  Buffer& full = buffers_[filling_];
  const std::size_t size = last ? full.used : full.used / kBlock * kBlock;
  const std::size_t next = (filling_ + 1) % kBuffers;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return in_hand_ < kBuffers - 1 || error_ != 0; });
  if (error_ != 0) return false;
  lock.unlock();
  Buffer& empty = buffers_[next];
  const std::size_t rest = full.used - size;
  empty.used = 0;
  if (!last) {
    reserve(empty, std::max(kCapacity, rest + next_size));
    std::memcpy(empty.bytes.get(), full.bytes.get() + size, rest);
    empty.used = rest;
  }
  lock.lock();
  jobs_.push_back({filling_, size, last});
  ++in_hand_;
  filling_ = next;
  lock.unlock();
  changed_.notify_all();
  return true;
}

void WriteBehind::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
    if (ends_) return;
    const Job job = jobs_.front();
    jobs_.erase(jobs_.begin());
    lock.unlock();
    const std::byte* const data = buffers_[job.buffer].bytes.get();
    const std::size_t whole = direct_ ? job.size / kBlock * kBlock : job.size;
    int error = write_out(data, whole);
    if (error == 0 && whole < job.size) {
      leave_direct();
      error = write_out(data + whole, job.size - whole);
    }
    if (error == 0 && hash_ != nullptr) hash_->update({data, job.size});
    lock.lock();
    if (error != 0) error_ = error;
    --in_hand_;
    changed_.notify_all();
    if (error != 0) return;
  }
}

void WriteBehind::leave_direct() {
  (void)set_direct(descriptor_, false);
  direct_ = false;
}

int WriteBehind::write_out(const std::byte* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, data, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EINVAL && direct_) {  // it said yes, and means other blocks
        leave_direct();
        continue;
      }
      return errno;
    }
    // Half a block, as a full disk leaves it: the rest goes through the cache, and says why.
    if (direct_ && static_cast<std::size_t>(written) % kBlock != 0) leave_direct();
    data += written;
    size -= static_cast<std::size_t>(written);
    written_ += written;
#ifdef __linux__
    // The disk begins at once, so that there is less to wait for when the file is synced.
    if (!direct_)
      (void)::sync_file_range(descriptor_, written_ - written, written, SYNC_FILE_RANGE_WRITE);
#endif
  }
  return 0;
}

}  // namespace fairlead
