// Tests of buffer comparison: each dtype, each way to differ, and the vectorised path against
// plain.
#include "fairlead/verify/compare.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "fairlead/base/error.h"
#include "fairlead/verify/low_precision.h"

using namespace fairlead;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <typename T>
Comparison compare(Dtype dtype, const std::vector<T>& expected, const std::vector<T>& got,
                   const std::vector<double>& thresholds = {}) {
  return compare_buffers(dtype, std::as_bytes(std::span(expected)), std::as_bytes(std::span(got)),
                         thresholds);
}

}  // namespace

TEST_CASE("Floats are compared absolutely, scaled and relatively") {
  const Comparison result =
      compare<float>(Dtype::kFloat32, {0, 100, -2, 1}, {0.25f, 101, -2, 1}, {0.1, 0.5, 2});
  CHECK(result.count == 4);
  CHECK(result.max_abs == doctest::Approx(1));
  CHECK(result.scale == 100);
  CHECK(result.max_scaled == doctest::Approx(0.01));
  CHECK(result.max_rel == doctest::Approx(250));
  CHECK(result.sum_abs == doctest::Approx(1.25));
  CHECK(result.worst_index == 1);
  CHECK(result.over == std::vector<std::int64_t>{2, 1, 0});
  CHECK(result.differing == 0);
}

TEST_CASE("Equal buffers differ in nothing, empty ones too") {
  const Comparison result = compare<float>(Dtype::kFloat32, {kNan, kInf, -kInf, 1, -0.0f},
                                           {kNan, kInf, -kInf, 1, 0.0f}, {0});
  CHECK(result.count == 5);
  CHECK(result.max_abs == 0);
  CHECK(result.nan_mismatch == 0);
  CHECK(result.inf_mismatch == 0);
  CHECK(result.worst_index == -1);
  CHECK(result.over == std::vector<std::int64_t>{0});
  CHECK(compare<float>(Dtype::kFloat32, {}, {}).count == 0);
}

TEST_CASE("NaN and infinity on one side are mismatches, and the worst") {
  const Comparison result =
      compare<float>(Dtype::kFloat32, {1, kNan, 1, kInf, kInf, 5}, {3, 1, kNan, -kInf, 2, 5}, {9});
  CHECK(result.nan_mismatch == 2);
  CHECK(result.inf_mismatch == 2);
  CHECK(result.max_abs == 2);
  CHECK(result.worst_index == 1);
  CHECK(result.over == std::vector<std::int64_t>{4});
}

TEST_CASE("A difference that overflows float32 is a number") {
  const float large = std::numeric_limits<float>::max();
  const Comparison result = compare<float>(Dtype::kFloat32, {large}, {-large});
  CHECK(result.max_abs == doctest::Approx(2.0 * static_cast<double>(large)));
  CHECK(result.inf_mismatch == 0);
}

TEST_CASE("Chunks of many sizes give what a plain loop gives") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const std::size_t size : {1u, 15u, 16u, 17u, 1023u, 1024u, 1025u, 5000u}) {
    std::vector<float> expected(size), got(size);
    for (std::size_t i = 0; i < size; ++i) {
      expected[i] = normal(random) * 10;
      got[i] = expected[i] + normal(random) * 1e-3f;
    }
    double max_abs = 0, largest = 0, max_rel = 0, sum = 0;
    std::int64_t worst = -1, over = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const double d = std::fabs(static_cast<double>(got[i]) - expected[i]);
      const double a = std::fabs(static_cast<double>(expected[i]));
      if (d > max_abs) worst = static_cast<std::int64_t>(i);
      max_abs = std::max(max_abs, d);
      largest = std::max(largest, a);
      max_rel = std::max(max_rel, d / (a + 1e-3));
      sum += d;
      over += d > 1e-3 ? 1 : 0;
    }
    const Comparison result = compare(Dtype::kFloat32, expected, got, {1e-3});
    CAPTURE(size);
    CHECK(result.max_abs == doctest::Approx(max_abs));
    CHECK(result.scale == doctest::Approx(largest));
    CHECK(result.max_scaled == doctest::Approx(max_abs / largest));
    CHECK(result.max_rel == doctest::Approx(max_rel));
    CHECK(result.sum_abs == doctest::Approx(sum));
    CHECK(result.worst_index == worst);
    CHECK(result.over[0] == over);
  }
}

TEST_CASE("An output is judged by its own largest value") {
  const auto scaled = [](const std::vector<float>& expected, const std::vector<float>& got) {
    return compare<float>(Dtype::kFloat32, expected, got).max_scaled;
  };
  CHECK(scaled({1e-6f, 5e-7f}, {1e-6f, 4e-7f}) == doctest::Approx(0.1));
  CHECK(scaled({1e9f, 5e8f, 0}, {1e9f, 5e8f, 100}) == doctest::Approx(1e-7));
  CHECK(scaled({0, 0}, {0, 0}) == 0);
  CHECK(scaled({0, 0}, {0, 1e-3f}) > 1e30);
  CHECK(scaled({kInf, 2, kNan}, {kInf, 3, kNan}) == doctest::Approx(0.5));
}

TEST_CASE("What fills a mask sets no scale") {
  const float lowest = std::numeric_limits<float>::lowest();
  const auto scale = [](const std::vector<float>& expected) {
    return compare<float>(Dtype::kFloat32, expected, expected).scale;
  };
  CHECK(scale({lowest, 4, 2, lowest}) == 4);
  CHECK(scale({-1e4f, lowest, 4, 2}) == 4);
  CHECK(scale({-1e9f, 0, 0}) == 1);
  CHECK(scale({-1e9f, 1e-6f}) == 1);
  CHECK(scale({1e9f, 1e-6f}) == 1e9f);  // saturated, not masked
  CHECK(scale({-5000, -5000}) == 5000);
  CHECK(scale({-4000, -1500, 100}) == 4000);  // a power of two beside it
  CHECK(scale({1, 1e-12f, 1e-30f}) == 1);     // probabilities
  CHECK(compare<float>(Dtype::kFloat32, {lowest, 4}, {lowest, 5}).max_scaled == 0.25);
}

TEST_CASE("Integers are exact to the last bit of 64") {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const Comparison far = compare<std::int64_t>(Dtype::kInt64, {kMin, 7}, {kMax, 7});
  CHECK(far.differing == 1);
  CHECK(far.max_abs == doctest::Approx(18446744073709551615.0));
  const Comparison near = compare<std::int64_t>(Dtype::kInt64, {1, kMax}, {1, kMax - 1});
  CHECK(near.differing == 1);  // equal as doubles
  CHECK(near.max_abs == 1);
  CHECK(near.worst_index == 1);
  CHECK(compare<std::uint8_t>(Dtype::kUint8, {0}, {255}).max_abs == 255);
  CHECK(compare<std::int8_t>(Dtype::kInt8, {-128}, {127}).max_abs == 255);
  CHECK(compare<std::int16_t>(Dtype::kInt16, {3}, {1}).differing == 1);
  CHECK(compare<std::uint16_t>(Dtype::kUint16, {3}, {1}).differing == 1);
  CHECK(compare<std::int32_t>(Dtype::kInt32, {3}, {1}, {1.5}).over[0] == 1);
  CHECK(compare<std::uint32_t>(Dtype::kUint32, {3}, {1}).differing == 1);
  CHECK(compare<std::uint64_t>(Dtype::kUint64, {3}, {1}).differing == 1);
}

TEST_CASE("Bools are zero or not") {
  const Comparison result = compare<std::uint8_t>(Dtype::kBool, {1, 0, 1}, {255, 0, 0});
  CHECK(result.differing == 1);
  CHECK(result.worst_index == 2);
  CHECK(result.max_abs == 1);
}

TEST_CASE("Doubles and complex numbers") {
  CHECK(compare<double>(Dtype::kFloat64, {1e300}, {2e300}).max_abs == doctest::Approx(1e300));
  using C = std::complex<float>;
  const Comparison result =
      compare<C>(Dtype::kComplex64, {{1, 2}, {3, 4}}, {{1, 2}, {3, 4.5f}}, {0.1});
  CHECK(result.count == 2);
  CHECK(result.worst_index == 1);
  CHECK(result.max_abs == 0.5);
  using D = std::complex<double>;
  CHECK(compare<D>(Dtype::kComplex128, {{1, 2}}, {{1, 3}}).max_abs == 1);
}

TEST_CASE("16-bit floats are compared by value") {
  const Comparison half =
      compare<std::uint16_t>(Dtype::kFloat16, {0x3c00, 0x7c00, 0x7e00}, {0x3c01, 0x7c00, 0x7e01});
  CHECK(half.max_abs == std::ldexp(1.0, -10));
  CHECK(half.nan_mismatch == 0);
  CHECK(half.inf_mismatch == 0);
  const Comparison brain = compare<std::uint16_t>(Dtype::kBfloat16, {0x3f80}, {0x3f81});
  CHECK(brain.max_abs == std::ldexp(1.0, -7));
}

TEST_CASE("Every float16 has its value") {
  for (int code = 0; code < 0x10000; ++code) {
    const int exponent = (code >> 10) & 31, mantissa = code & 1023;
    const double sign = (code & 0x8000) != 0 ? -1 : 1;
    const float value = float16_to_float(static_cast<std::uint16_t>(code));
    if (exponent == 31 && mantissa != 0) {
      REQUIRE(std::isnan(value));
    } else if (exponent == 31) {
      REQUIRE(static_cast<double>(value) == sign * static_cast<double>(kInf));
    } else {
      const int scale = (exponent == 0 ? 1 : exponent) - 25;
      REQUIRE(static_cast<double>(value) ==
              sign * std::ldexp(mantissa + (exponent == 0 ? 0 : 1024), scale));
      REQUIRE(std::signbit(value) == (sign < 0));
    }
  }
}

TEST_CASE("The four float8 have the values of their formats") {
  const auto value = [](Dtype dtype, int code) { return float8_values(dtype)[code]; };
  CHECK(value(Dtype::kFloat8E4m3fn, 0x38) == 1);
  CHECK(value(Dtype::kFloat8E4m3fn, 0x7e) == 448);
  CHECK(std::isnan(value(Dtype::kFloat8E4m3fn, 0xff)));
  CHECK(value(Dtype::kFloat8E4m3fn, 0x01) == std::ldexp(1.0f, -9));
  CHECK(value(Dtype::kFloat8E4m3fnuz, 0x40) == 1);
  CHECK(value(Dtype::kFloat8E4m3fnuz, 0x7f) == 240);
  CHECK(std::isnan(value(Dtype::kFloat8E4m3fnuz, 0x80)));
  CHECK(value(Dtype::kFloat8E5m2, 0x3c) == 1);
  CHECK(value(Dtype::kFloat8E5m2, 0x7b) == 57344);
  CHECK(value(Dtype::kFloat8E5m2, 0xfc) == -kInf);
  CHECK(std::isnan(value(Dtype::kFloat8E5m2, 0x7d)));
  CHECK(value(Dtype::kFloat8E5m2fnuz, 0x40) == 1);
  CHECK(value(Dtype::kFloat8E5m2fnuz, 0x7f) == 57344);
  const Comparison result = compare<std::uint8_t>(Dtype::kFloat8E4m3fn, {0x38, 0x7f}, {0x39, 0x7f});
  CHECK(result.max_abs == 0.125);
  CHECK(result.nan_mismatch == 0);
}

TEST_CASE("Elements that eager itself moves are told from those that it does not") {
  const auto tied = [](const std::vector<std::int64_t>& got,
                       const std::vector<std::vector<std::int64_t>>& own, std::int64_t most = 9) {
    const std::vector<std::int64_t> expected = {1, 2, 3, 4};
    std::vector<std::span<const std::byte>> others;
    for (const auto& other : own) others.push_back(std::as_bytes(std::span(other)));
    return tied_elements(Dtype::kInt64, std::as_bytes(std::span(expected)),
                         std::as_bytes(std::span(got)), others, 0, most);
  };
  const TiedElements swapped = tied({2, 1, 3, 4}, {{1, 2, 4, 3}, {2, 1, 3, 4}});
  CHECK(swapped.count == 4);
  CHECK(swapped.apart == 2);
  CHECK(swapped.ratio == 1);
  CHECK(swapped.moved == 1);
  CHECK(tied({2, 1, 3, 9}, {{2, 1, 3, 4}}).ratio == std::numeric_limits<double>::infinity());
  CHECK(tied({2, 1, 3, 9}, {{2, 1, 3, 5}}).ratio == 5);
  CHECK(tied({2, 1, 3, 9}, {{2, 1, 3, 5}}, 2).apart == 3);
  CHECK(tied({1, 2, 3, 4}, {}).apart == 0);
  // Floats within the limit are none; NaN on one side is beyond every limit.
  const std::vector<float> expected = {1, 2, 3}, got = {1.01f, 5, kNan};
  const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
  const std::span<const std::byte> own[] = {bytes(got)};
  const TiedElements found =
      tied_elements(Dtype::kFloat32, bytes(expected), bytes(got), own, 0.1, 9);
  CHECK(found.apart == 2);
  CHECK(found.ratio == std::numeric_limits<double>::infinity());
  const std::vector<float> fewer = {1};
  CHECK_THROWS_AS((void)tied_elements(Dtype::kFloat32, bytes(expected), bytes(fewer), {}, 0, 1),
                  Error);
}

TEST_CASE("Buffers of different sizes are refused") {
  const std::vector<float> two{1, 2}, three{1, 2, 3};
  CHECK_THROWS_WITH_AS((void)compare(Dtype::kFloat32, two, three),
                       "[compare_buffers] Expected two buffers of the same whole number of float32 "
                       "elements, got 8 and 12 bytes.",
                       Error);
  CHECK_THROWS_AS((void)compare(Dtype::kComplex64, three, three), Error);
}
