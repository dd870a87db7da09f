// The bytes of a file, written by a thread of its own while the next ones are made, and past the
// page cache where the file system can: a file is synced before it gets its name, so that a copy in
// memory only costs time.
//
// 1. Bytes are gathered in a few buffers; a full one goes to the writer, which hashes and writes it.
// 2. What goes past the page cache has to lie at whole blocks: the end of a buffer that fills no
//    block is moved to the front of the next one. The last bytes of the file go through the cache.
// 3. The first system call that fails ends the writing; who makes bytes is told at the next claim.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <vector>

namespace fairlead {

class ContentHash;

class WriteBehind {
 public:
  // Appends to an open file. `hash` is told every byte, and whole after finish.
  WriteBehind(int descriptor, ContentHash* hash);
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;
  ~WriteBehind();

  // The next `size` bytes of the file, to be filled before the next call of any kind; null where a
  // write failed.
  [[nodiscard]] std::byte* claim(std::size_t size);
  [[nodiscard]] bool write(std::span<const std::byte> bytes);  // false where one failed
  // When everything is written. True where all of it was.
  [[nodiscard]] bool finish();
  [[nodiscard]] int error();  // the number of the system's error, where a write failed

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  struct Buffer {
    std::unique_ptr<std::byte, Free> bytes;
    std::size_t capacity = 0;
    std::size_t used = 0;
  };
  struct Job {
    std::size_t buffer;
    std::size_t size;
    bool last;
  };
  void reserve(Buffer& buffer, std::size_t size);
  [[nodiscard]] bool hand_over(bool last, std::size_t next_size);
  void work();
  [[nodiscard]] int write_out(const std::byte* data, std::size_t size);
  void leave_direct();

  static constexpr std::size_t kBuffers = 3;  // one is filled, one is written, one waits
  std::array<Buffer, kBuffers> buffers_;
  std::size_t filling_ = 0;

  int descriptor_;
  bool direct_;
  ContentHash* hash_;
  std::int64_t written_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Job> jobs_;    // waiting, in order
  std::size_t in_hand_ = 0;  // buffers that wait or are being written
  bool ends_ = false;
  int error_ = 0;
  std::thread thread_;
};

}  // namespace fairlead
