// Walks the head of a GGUF file: magic, version, counts, settings, the table of tensors.
#include "fairlead/quant/gguf_header.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "fairlead/base/error.h"

namespace fairlead::quant {
namespace {

constexpr std::uint32_t kText = 8, kList = 9;
// Bytes of a setting by its type; 0: its own.
constexpr std::array<std::uint64_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr int kMostNested = 8;
constexpr std::uint32_t kMostAxes = 8;

class Walk {
 public:
  Walk(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  void run() {
    take(4, "its first four letters");
    const std::uint32_t version = number<std::uint32_t>("a version");
    swapped_ = (version & 0xFFFF) == 0;  // of the other byte order
    const std::uint64_t tensors = number<std::uint64_t>("a count of tensors");
    const std::uint64_t settings = number<std::uint64_t>("a count of settings");
    for (std::uint64_t k = 0; k < settings; ++k) {  // each takes bytes, or is refused
      const std::string what = "setting " + std::to_string(k);
      text(what);
      value(number<std::uint32_t>(what), what, 0);
    }
    for (std::uint64_t k = 0; k < tensors; ++k) {
      const std::string what = "tensor " + std::to_string(k);
      text(what);
      const std::uint32_t axes = number<std::uint32_t>(what);
      if (axes > kMostAxes) refuse(what + " of " + std::to_string(axes) + " axes");
      take(8 * std::uint64_t{axes} + 4 + 8, what);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::kInvalidInput,
                "[export] Expected a GGUF file that holds what it names, got " + what + " in '" +
                    name_ + "', a file of " + std::to_string(bytes_.size()) +
                    " bytes. Check that the file is complete.");
  }

  void take(std::uint64_t count, const std::string& what) {
    if (count > bytes_.size() - at_) refuse(what + " beyond its end");
    at_ += static_cast<std::size_t>(count);
  }

  template <typename T>
  T number(const std::string& what) {
    take(sizeof(T), what);
    std::array<std::byte, sizeof(T)> raw;
    std::memcpy(raw.data(), bytes_.data() + at_ - sizeof(T), sizeof(T));
    if (swapped_) std::reverse(raw.begin(), raw.end());
    T value;
    std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

  void text(const std::string& what) { take(number<std::uint64_t>(what), what); }

  void value(std::uint32_t type, const std::string& what, int depth) {
    if (type >= kSizes.size()) refuse(what + " of type " + std::to_string(type));
    if (type == kText) return text(what);
    if (type != kList) return take(kSizes[type], what);
    if (depth >= kMostNested) refuse(what + " of lists in lists");
    const std::uint32_t of = number<std::uint32_t>(what);
    const std::uint64_t count = number<std::uint64_t>(what);
    if (of < kSizes.size() && kSizes[of] > 0) {
      if (count > bytes_.size() / kSizes[of]) refuse(what + " beyond its end");
      return take(count * kSizes[of], what);
    }
    for (std::uint64_t k = 0; k < count; ++k) value(of, what, depth + 1);
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
  bool swapped_ = false;
};

}  // namespace

void check_gguf_header(std::span<const std::byte> bytes, const std::string& name) {
  Walk(bytes, name).run();
}

}  // namespace fairlead::quant
