// Values of the 16-bit and 8-bit floats, as float32. All of them are exact.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "fairlead/base/dtype.h"

namespace fairlead {

[[nodiscard]] inline float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Without branches, so that loops over it are vectorised. The magnitude is moved to float32's
// place, where its exponent is 112 too small: a product with 2^112 corrects it, for subnormals as
// well.
[[nodiscard]] inline float float16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  // Infinity and NaN come out as 65536 and above; the exponent of all ones makes them themselves.
  const std::uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

// By code; throws Error(kInternal) for a type that is not one of the four float8.
[[nodiscard]] std::span<const float, 256> float8_values(Dtype dtype);

}  // namespace fairlead
