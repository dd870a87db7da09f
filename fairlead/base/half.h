// Conversions from float to the 16-bit floating types, with round to nearest even, and back.
#pragma once

#include <bit>
#include <cstdint>

namespace fairlead {

[[nodiscard]] inline std::uint16_t bfloat16_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

[[nodiscard]] inline std::uint16_t half_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal or zero: align the mantissa to 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;
    auto rounded = static_cast<std::uint32_t>(scaled);
    const float rest = scaled - static_cast<float>(rounded);
    if (rest > 0.5f || (rest == 0.5f && (rounded & 1u) != 0)) ++rounded;
    return static_cast<std::uint16_t>(sign | rounded);
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

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

}  // namespace fairlead
