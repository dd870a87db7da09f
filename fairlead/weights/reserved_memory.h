// Addresses for tensors that are made up of parts of files and lie nowhere in one piece: no memory
// stands behind them until somebody looks, and whether somebody did is known.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fairlead {

class ReservedMemory {
 public:
  // Throws Error(kIo) where the system has no addresses left.
  explicit ReservedMemory(std::int64_t bytes);
  ~ReservedMemory();
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }
  // Whether any of it was read or written: what was read where nothing was written is zeros.
  [[nodiscard]] bool touched() const;
  // Whatever was written is gone, and its memory given back.
  void forget();
  // The same of a part of it, but for pages that it shares with others.
  void forget(std::size_t offset, std::size_t bytes);
  // Whether its bytes are what they stand for.
  void set_filled(bool filled) { filled_ = filled; }
  // Whether this is memory of one that is not filled: whoever wants the numbers there has none.
  [[nodiscard]] static bool is_empty(const std::byte* at);

 private:
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::atomic<bool> filled_ = false;
};

}  // namespace fairlead
