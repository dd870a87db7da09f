// Addresses for tensors that are made up of parts of files and lie nowhere in one piece: no memory
// stands behind them until somebody looks, and whether somebody did is known.
#pragma once

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

 private:
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fairlead
