// Formats with integers, scales and zero points in tensors of their own, columns in groups: GPTQ,
// AWQ, compressed-tensors, HQQ. Integers are packed into words of 32 bits, the lowest bits first;
// those of HQQ into bytes.
#include <algorithm>
#include <cstring>

#include "fairlead/base/error.h"
#include "fairlead/base/half.h"
#include "fairlead/quant/stored.h"

namespace fairlead::quant {
namespace {

// The k-th integer of `bits` bits in words.
int integer_at(std::span<const std::byte> words, std::int64_t k, int bits) {
  const std::int64_t bit = k * bits;
  const int byte = std::to_integer<int>(words[static_cast<std::size_t>(bit / 8)]);
  return (byte >> (bit % 8)) & ((1 << bits) - 1);
}

// The integer at place k of a row of words, `stride` words apart: word k / n, place k % n in it.
int strided(std::span<const std::byte> words, std::int64_t first, std::int64_t k,
            std::int64_t stride, int bits) {
  const std::int64_t in_word = 32 / bits;
  return integer_at(words, (first + k / in_word * stride) * in_word + k % in_word, bits);
}

// Fills zeros, scales and minima of the blocks of a row by group.
template <typename Zero, typename Scale>
void by_group(const StoredMatrix& m, StoredRow& out, const Zero& zero, const Scale& scale) {
  for (std::size_t b = 0; b < out.scales.size(); ++b) {
    const std::int64_t g = (static_cast<std::int64_t>(b) * m.block + m.skipped) / m.group;
    out.zeros[b] = static_cast<std::uint8_t>(zero(g));
    out.scales[b] = m.scales.at(scale(g));
    out.minima[b] = 0;
  }
}

// Integers [columns / 8, rows], zero points less `kLess` [groups, rows / 8], scales [groups, rows].
template <int kBits, int kLess>
void gptq(const StoredMatrix& m, std::int64_t row, StoredRow& out) {
  constexpr std::int64_t kInWord = 32 / kBits;
  const std::byte* word = m.data.data() + row * 4;
  for (std::int64_t k = 0; k < m.columns; k += kInWord, word += m.rows * 4) {
    for (std::int64_t bit = 0; bit < 32; bit += kBits) {
      out.integers[static_cast<std::size_t>(k + bit / kBits)] = static_cast<std::uint8_t>(
          std::to_integer<int>(word[bit / 8]) >> (bit % 8) & ((1 << kBits) - 1));
    }
  }
  by_group(
      m, out,
      [&](std::int64_t g) {
        return (integer_at(m.zeros, g * m.rows + row, kBits) + kLess) & ((1 << kBits) - 1);
      },
      [&](std::int64_t g) { return g * m.rows + row; });
}

// Integers [columns, rows / 8] and zero points [groups, rows / 8], both with the rows of a word in
// the order 0 2 4 6 1 3 5 7; scales [groups, rows].
void awq(const StoredMatrix& m, std::int64_t row, StoredRow& out) {
  constexpr std::int64_t kPlace[] = {0, 4, 1, 5, 2, 6, 3, 7};
  const std::int64_t place = row / 8 * 8 + kPlace[row % 8];
  const std::byte* at = m.data.data() + place / 2;
  const auto shift = static_cast<int>(place % 2 * 4);
  for (std::uint8_t& each : out.integers) {
    each = static_cast<std::uint8_t>(std::to_integer<int>(*at) >> shift & 15);
    at += m.rows / 2;
  }
  by_group(
      m, out, [&](std::int64_t g) { return integer_at(m.zeros, g * m.rows + place, 4); },
      [&](std::int64_t g) { return g * m.rows + row; });
}

// Integers [rows, columns / 8] above the lowest one, scales [rows, groups], zero points, where
// there are any, [rows / 8, groups] above it too.
template <int kBits>
void pack_quantized(const StoredMatrix& m, std::int64_t row, StoredRow& out) {
  const std::int64_t groups = m.groups;
  for (std::int64_t k = 0; k < m.columns; ++k) {
    out.integers[static_cast<std::size_t>(k)] =
        static_cast<std::uint8_t>(integer_at(m.data, row * m.columns + k, kBits));
  }
  by_group(
      m, out,
      [&](std::int64_t g) {
        return m.zeros.empty() ? 1 << (kBits - 1) : strided(m.zeros, g, row, groups, kBits);
      },
      [&](std::int64_t g) { return row * groups + g; });
}

// Signed bytes [rows, columns], scales [rows, groups].
void int_quantized(const StoredMatrix& m, std::int64_t row, StoredRow& out) {
  for (std::int64_t k = 0; k < m.columns; ++k) {
    out.integers[static_cast<std::size_t>(k)] = std::to_integer<std::uint8_t>(
        m.data[static_cast<std::size_t>(row * m.columns + k)] ^ std::byte{0x80});
  }
  const std::int64_t groups = m.groups;
  by_group(
      m, out, [](std::int64_t) { return 128; }, [&](std::int64_t g) { return row * groups + g; });
}

// Groups [rows * groups, group], those of the first half in the high bits of bytes and those of the
// second in the low ones; scales and zero points, which are floats of 16 bits, [rows * groups]. A
// scale times its zero point is a float32, and so the minimum is exact.
template <int kBits>
void hqq(const StoredMatrix& m, std::int64_t row, StoredRow& out) {
  const std::int64_t groups = m.groups, half = m.rows * groups / 2;
  for (std::int64_t k = 0; k < m.columns; ++k) {
    const std::int64_t g = row * groups + (k + m.skipped) / m.group;
    const std::int64_t place = (k + m.skipped) % m.group;
    const bool high = kBits == 4 && g < half;
    const std::int64_t at = kBits == 8 || high ? g : g - half;
    const auto byte =
        std::to_integer<std::uint8_t>(m.data[static_cast<std::size_t>(at * m.group + place)]);
    out.integers[static_cast<std::size_t>(k)] =
        kBits == 8 ? byte : static_cast<std::uint8_t>(high ? byte >> 4 : byte & 15);
  }
  const StoredScales zeros = {m.zeros, m.scales.dtype};
  by_group(
      m, out, [](std::int64_t) { return 0; }, [&](std::int64_t g) { return row * groups + g; });
  for (std::size_t b = 0; b < out.scales.size(); ++b) {
    const std::int64_t g =
        row * groups + (static_cast<std::int64_t>(b) * m.block + m.skipped) / m.group;
    out.minima[b] = -out.scales[b] * zeros.at(g);
  }
}

constexpr StoredFormat row_of(std::string_view name, int bits, Layout layout,
                              void (*take)(const StoredMatrix&, std::int64_t, StoredRow&)) {
  return {name, bits, (1 << bits) - 1, 0, false, 32 / bits, 4, take, layout};
}

// clang-format off
constexpr StoredFormat kFormats[] = {
    row_of("GPTQ 4 bits",                4, Layout::kWordsAcross, gptq<4, 1>),
    row_of("GPTQ 8 bits",                8, Layout::kWordsAcross, gptq<8, 1>),
    row_of("GPTQ v2 4 bits",             4, Layout::kWordsAcross, gptq<4, 0>),
    row_of("GPTQ v2 8 bits",             8, Layout::kWordsAcross, gptq<8, 0>),
    row_of("AWQ",                        4, Layout::kAcross,      awq),
    row_of("compressed-tensors 4 bits",  4, Layout::kRows,        pack_quantized<4>),
    row_of("compressed-tensors 8 bits",  8, Layout::kRows,        pack_quantized<8>),
    row_of("compressed-tensors int8",    8, Layout::kRows,        int_quantized),
    {"HQQ 4 bits", 4,  15, 0, true, 8, 4, hqq<4>, Layout::kHalves},
    {"HQQ 8 bits", 8, 255, 0, true, 4, 4, hqq<8>, Layout::kHalves},
};
// clang-format on

std::int64_t size_of(Dtype dtype) { return dtype == Dtype::kFloat32 ? 4 : 2; }

}  // namespace

float StoredScales::at(std::int64_t k) const {
  const std::byte* place = data.data() + k * size_of(dtype);
  if (dtype == Dtype::kFloat32) {
    float value = 0;
    std::memcpy(&value, place, sizeof(value));
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, place, sizeof(bits));
  return dtype == Dtype::kFloat16 ? float16_to_float(bits) : bfloat16_to_float(bits);
}

std::span<const StoredFormat> group_formats() { return kFormats; }

StoredMatrix grouped_matrix(std::string name, std::string_view format, std::int64_t rows,
                            std::int64_t columns, std::int64_t group,
                            std::span<const std::byte> integers, StoredScales scales,
                            std::span<const std::byte> zeros) {
  const auto* found = std::ranges::find(kFormats, format, &StoredFormat::name);
  FAIRLEAD_CHECK(found != std::end(kFormats), "a format " + std::string(format));
  const auto refuse = [&](const std::string& expected, const std::string& got) {
    throw Error(ErrorCode::kInvalidInput,
                "[keep] Expected " + expected + " for [" + std::to_string(rows) + ", " +
                    std::to_string(columns) + "] of " + std::string(format) + " in " + name +
                    ", got " + got + ". Check that the files are complete.");
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (rows <= 0 || columns <= 0 || rows > kMost || columns > kMost || group <= 0 ||
      columns % group != 0) {
    refuse("whole groups", "groups of " + std::to_string(group) + " columns");
  }
  // The largest block of a kernel that divides a group.
  const std::int64_t block = std::min<std::int64_t>(group & -group, 256);
  if (block < 16) {
    throw Error(ErrorCode::kInvalidInput,
                "[keep] Expected groups that a block of 16 to 256 columns divides, got " +
                    std::to_string(group) + " columns in " + name +
                    ". Export it without keep, as floats or with quantize.");
  }
  const std::int64_t groups = columns / group, in_word = 32 / found->bits;
  const bool floats = found->minimum;  // zero points
  const bool by_row = floats || format.starts_with("compressed");
  const std::int64_t zero_words =
      by_row ? (rows + in_word - 1) / in_word * groups : groups * (rows / in_word);
  const bool has_zeros = !zeros.empty() || !by_row || floats;
  if (floats && (scales.dtype == Dtype::kFloat32 || rows * groups % 2 != 0)) {
    refuse("scales of 16 bits, of groups in pairs", "others");
  }
  if ((by_row            ? columns
       : format == "AWQ" ? rows
                         : columns) %
              in_word !=
          0 ||
      (!by_row && rows % in_word != 0)) {
    refuse("whole words of " + std::to_string(in_word) + " integers", "a part of one");
  }
  const auto check = [&](const char* what, std::size_t bytes, std::int64_t expected) {
    if (static_cast<std::int64_t>(bytes) != expected) {
      refuse(std::to_string(expected) + " bytes of " + what, std::to_string(bytes));
    }
  };
  check("integers", integers.size(), rows * columns / in_word * 4);
  check("scales", scales.data.size(), rows * groups * size_of(scales.dtype));
  if (has_zeros) {
    check("zero points", zeros.size(),
          floats ? rows * groups * size_of(scales.dtype) : zero_words * 4);
  }
  return {std::move(name), found, rows,   columns, static_cast<int>(block),
          integers,        group, scales, zeros,   groups};
}

}  // namespace fairlead::quant
