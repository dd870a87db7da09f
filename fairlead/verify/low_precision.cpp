// Tables of the four 8-bit floats.
#include "fairlead/verify/low_precision.h"

#include <array>
#include <cmath>
#include <limits>

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

// A float8 format: sign, exponent and mantissa bits, and what its top codes mean.
struct Format {
  int mantissa_bits;
  int bias;
  bool has_infinity;   // the top exponent is infinity and NaN, as in IEEE
  bool unsigned_zero;  // "uz": 0x80 is the only NaN, and every other code is a number
};

// E4M3FN has no infinity: of the top exponent only mantissa 7 is NaN.
constexpr Format kE4m3fn{3, 7, false, false};
constexpr Format kE4m3fnuz{3, 8, false, true};
constexpr Format kE5m2{2, 15, true, false};
constexpr Format kE5m2fnuz{2, 16, false, true};

float decode(const Format& format, int code) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const int magnitude = code & 0x7f;
  const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
  const int exponent = magnitude >> format.mantissa_bits;
  const int top_exponent = 0x7f >> format.mantissa_bits;
  const float sign = (code & 0x80) != 0 ? -1.0f : 1.0f;
  if (format.unsigned_zero && code == 0x80) return kNan;
  if (format.has_infinity && exponent == top_exponent) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity() : kNan;
  }
  if (!format.has_infinity && !format.unsigned_zero && magnitude == 0x7f) return kNan;
  const int hidden = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  const int power = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
  return sign * std::ldexp(static_cast<float>(hidden + mantissa), power);
}

std::array<float, 256> make_table(const Format& format) {
  std::array<float, 256> table{};
  for (int code = 0; code < 256; ++code) table[code] = decode(format, code);
  return table;
}

}  // namespace

std::span<const float, 256> float8_values(Dtype dtype) {
  static const std::array<float, 256> e4m3fn = make_table(kE4m3fn);
  static const std::array<float, 256> e4m3fnuz = make_table(kE4m3fnuz);
  static const std::array<float, 256> e5m2 = make_table(kE5m2);
  static const std::array<float, 256> e5m2fnuz = make_table(kE5m2fnuz);
  switch (dtype) {
    case Dtype::kFloat8E4m3fn:
      return e4m3fn;
    case Dtype::kFloat8E4m3fnuz:
      return e4m3fnuz;
    case Dtype::kFloat8E5m2:
      return e5m2;
    case Dtype::kFloat8E5m2fnuz:
      return e5m2fnuz;
    default:
      FAIRLEAD_CHECK(false, std::string(dtype_name(dtype)) + " is no float8");
  }
}

}  // namespace fairlead
