// The head of a GGUF file: whole, cut anywhere, and with any bytes changed.
#include "fairlead/quant/gguf_header.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "fairlead/base/error.h"

using namespace fairlead;

namespace {

struct Bytes {
  std::vector<std::byte> all;

  template <typename T>
  Bytes& add(T value) {
    // Grown before it is written: GCC 12 warns of insert() here, which it takes for an overflow.
    const std::size_t at = all.size();
    all.resize(at + sizeof(T));
    std::memcpy(all.data() + at, &value, sizeof(T));
    return *this;
  }
  Bytes& text(const std::string& words) {
    add<std::uint64_t>(words.size());
    for (const char c : words) add(c);
    return *this;
  }
};

Bytes head() {
  Bytes made;
  for (const char c : std::string("GGUF")) made.add(c);
  made.add<std::uint32_t>(3).add<std::uint64_t>(1).add<std::uint64_t>(4);
  made.text("general.architecture").add<std::uint32_t>(8).text("llama");
  made.text("count").add<std::uint32_t>(4).add<std::uint32_t>(7);
  made.text("tokens").add<std::uint32_t>(9).add<std::uint32_t>(8).add<std::uint64_t>(2);
  made.text("a").text("b");
  made.text("lists").add<std::uint32_t>(9).add<std::uint32_t>(9).add<std::uint64_t>(1);
  made.add<std::uint32_t>(6).add<std::uint64_t>(2).add(1.0F).add(2.0F);
  made.text("t").add<std::uint32_t>(2).add<std::uint64_t>(4).add<std::uint64_t>(4);
  made.add<std::uint32_t>(0).add<std::uint64_t>(0);
  return made;
}

bool accepted(const std::vector<std::byte>& bytes) {
  try {
    quant::check_gguf_header(bytes, "x.gguf");
    return true;
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidInput);
    return false;
  }
}

}  // namespace

TEST_CASE("a GGUF file that holds what it names is accepted, and no part of it") {
  const std::vector<std::byte> whole = head().all;
  CHECK(accepted(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(accepted({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}));
  }
}

TEST_CASE("any bytes in the head of a GGUF file are read or refused") {
  std::mt19937 draw(0);
  const std::vector<std::byte> whole = head().all;
  int refused = 0;
  for (int k = 0; k < 20'000; ++k) {
    std::vector<std::byte> changed = whole;
    for (std::uint32_t n = draw() % 4 + 1; n > 0; --n) {
      const std::uint32_t value = draw() % 3 == 0 ? 0xFF : draw() % 256;
      changed[4 + draw() % (changed.size() - 4)] = static_cast<std::byte>(value);
    }
    refused += accepted(changed) ? 0 : 1;
  }
  CHECK(refused > 1'000);
}
