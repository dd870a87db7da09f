// A file brought into the page cache by a thread of its own, from its first byte to its last. A large
// file was written past the cache, and a program that maps it takes its pages one by one, three times
// as slowly as they are read in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace fairlead {

class ReadAhead {
 public:
  // Begins at once. A file that cannot be read is left to whoever wants it, and its error.
  explicit ReadAhead(const std::string& path);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();  // ends after the piece that is being read

  std::int64_t wait();  // until all of it was read; how many bytes

 private:
  void read(int descriptor);

  std::atomic<bool> ends_ = false;
  std::atomic<std::int64_t> bytes_ = 0;
  std::thread thread_;
};

}  // namespace fairlead
