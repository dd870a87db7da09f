// Fuzz target: no bytes may crash the reader of safetensors headers, and what it accepts lies in
// the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "fairlead/weights/safetensors.h"
#include "fuzz/fuzz_impl.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fairlead;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  return fuzz::no_fault([&] {
    std::int64_t at = 0;
    for (const StoredTensor& each : read_safetensors(file, "fuzzed")) {
      if (each.begin < at || each.bytes < 0) std::abort();
      at = each.begin + each.bytes;
      if (at > static_cast<std::int64_t>(size)) std::abort();
    }
  });
}
