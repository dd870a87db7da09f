// XXH64, as https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md describes it.
#include "fairlead/files/content_hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace fairlead {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87ull;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Full;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9ull;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63ull;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5ull;

template <typename T>
T little(const std::byte* bytes) {
  static_assert(std::endian::native == std::endian::little, "the files are little-endian too");
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

std::uint64_t rounded(std::uint64_t lane, std::uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

}  // namespace

std::array<std::uint64_t, 4> ContentHash::initial() {
  return {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
}

void ContentHash::stripe(const std::byte* bytes) {
  for (std::size_t k = 0; k < lanes_.size(); ++k) {
    lanes_[k] = rounded(lanes_[k], little<std::uint64_t>(bytes + 8 * k));
  }
}

void ContentHash::update(std::span<const std::byte> bytes) {
  total_ += bytes.size();
  if (held_ > 0) {
    const std::size_t taken = std::min(kStripe - held_, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(held_));
    held_ += taken;
    bytes = bytes.subspan(taken);
    if (held_ < kStripe) return;
    stripe(rest_.data());
    held_ = 0;
  }
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) stripe(bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  held_ = bytes.size();
}

std::uint64_t ContentHash::value() const {
  std::uint64_t hash = kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) {
      hash = (hash ^ rounded(0, lane)) * kPrime1 + kPrime4;
    }
  }
  hash += total_;
  const std::byte* at = rest_.data();
  const std::byte* const end = at + held_;
  for (; end - at >= 8; at += 8) {
    hash = std::rotl(hash ^ rounded(0, little<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  for (; end - at >= 4; at += 4) {
    hash = std::rotl(hash ^ (little<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
  }
  for (; at < end; ++at) {
    hash = std::rotl(hash ^ (std::to_integer<std::uint64_t>(*at) * kPrime5), 11) * kPrime1;
  }
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

std::string hash_text(std::uint64_t hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t k = text.size(); k-- > 0; hash >>= 4) text[k] = kDigits[hash & 15];
  return text;
}

}  // namespace fairlead
