// A 64-bit hash of bytes that come in pieces: what the name of a data file is made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace fairlead {

[[nodiscard]] std::string hash_text(std::uint64_t hash);  // 16 digits

// XXH64 with seed 0: several GB a second, so that it costs nothing beside the disk. It tells
// contents apart; it does not withstand somebody who looks for two with one hash.
class ContentHash {
 public:
  void update(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t value() const;
  [[nodiscard]] std::string hex() const { return hash_text(value()); }

 private:
  static constexpr std::size_t kStripe = 32;
  void stripe(const std::byte* bytes);

  std::array<std::uint64_t, 4> lanes_ = initial();
  std::array<std::byte, kStripe> rest_{};  // what does not fill a stripe yet
  std::size_t held_ = 0;
  std::uint64_t total_ = 0;

  static std::array<std::uint64_t, 4> initial();
};

}  // namespace fairlead
