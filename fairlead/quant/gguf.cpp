// Formats of GGUF files, as ggml defines them: groups of 32 or 256 columns that lie one after the
// other. Those whose levels come from a table (IQ..., MXFP4, ...) are no multiples of a scale.
#include <algorithm>
#include <cstring>

#include "fairlead/base/error.h"
#include "fairlead/base/half.h"
#include "fairlead/quant/stored.h"

namespace fairlead::quant {
namespace {

// Where one group goes: its columns, and its first block.
struct Group {
  std::uint8_t* integers;
  std::uint8_t* zeros;
  float* scales;
  float* minima;
};

float half_at(const std::uint8_t* in) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, in, sizeof(bits));
  return float16_to_float(bits);
}

// The low halves of the bytes first, then the high ones.
void halves(const std::uint8_t* in, int bytes, std::uint8_t* out) {
  for (int k = 0; k < bytes; ++k) {
    out[k] = in[k] & 15;
    out[bytes + k] = in[k] >> 4;
  }
}

// The fifth bits of 32 columns.
void fifth_bits(const std::uint8_t* in, std::uint8_t* out) {
  for (int k = 0; k < 32; ++k) {
    out[k] = static_cast<std::uint8_t>(out[k] | (((in[k / 8] >> (k % 8)) & 1) << 4));
  }
}

// d, 32 halves: d * (q - 8)
void q4_0(const std::uint8_t* in, const Group& out) {
  out.scales[0] = half_at(in);
  out.zeros[0] = 8;
  halves(in + 2, 16, out.integers);
}

// d, m, 32 halves: d * q + m
void q4_1(const std::uint8_t* in, const Group& out) {
  out.scales[0] = half_at(in);
  out.minima[0] = half_at(in + 2);
  halves(in + 4, 16, out.integers);
}

// d, 32 high bits, 32 halves: d * (q - 16)
void q5_0(const std::uint8_t* in, const Group& out) {
  out.scales[0] = half_at(in);
  out.zeros[0] = 16;
  halves(in + 6, 16, out.integers);
  fifth_bits(in + 2, out.integers);
}

// d, m, 32 high bits, 32 halves: d * q + m
void q5_1(const std::uint8_t* in, const Group& out) {
  out.scales[0] = half_at(in);
  out.minima[0] = half_at(in + 2);
  halves(in + 8, 16, out.integers);
  fifth_bits(in + 4, out.integers);
}

// d, 32 signed bytes: d * q
void q8_0(const std::uint8_t* in, const Group& out) {
  out.scales[0] = half_at(in);
  out.zeros[0] = 128;
  for (int k = 0; k < 32; ++k) out.integers[k] = in[2 + k] ^ 0x80;
}

// 16 bytes of scales and minima, 256 pairs of bits, d, dmin: d * scale * q - dmin * minimum
void q2_k(const std::uint8_t* in, const Group& out) {
  const float d = half_at(in + 80), least = half_at(in + 82);
  for (int b = 0; b < 16; ++b) {
    out.scales[b] = d * static_cast<float>(in[b] & 15);
    out.minima[b] = -(least * static_cast<float>(in[b] >> 4));
  }
  for (int k = 0; k < 256; ++k) {
    out.integers[k] = (in[16 + k / 128 * 32 + k % 32] >> (2 * (k / 32 % 4))) & 3;
  }
}

// 256 high bits, 256 pairs of bits, 16 scales of 6 bits, d: d * (scale - 32) * (q - 4)
void q3_k(const std::uint8_t* in, const Group& out) {
  const float d = half_at(in + 108);
  const std::uint8_t* scales = in + 96;
  for (int b = 0; b < 16; ++b) {
    const int low = (scales[b % 8] >> (b < 8 ? 0 : 4)) & 15;
    const int high = (scales[8 + b % 4] >> (2 * (b / 4))) & 3;
    out.scales[b] = d * static_cast<float>((low | (high << 4)) - 32);
    out.zeros[b] = 4;
  }
  for (int k = 0; k < 256; ++k) {
    const int low = (in[32 + k / 128 * 32 + k % 32] >> (2 * (k / 32 % 4))) & 3;
    const int high = (in[k % 32] >> (k / 32)) & 1;
    out.integers[k] = static_cast<std::uint8_t>(low | (high << 2));
  }
}

// 8 scales and 8 minima of 6 bits each in 12 bytes.
void six_bits(const std::uint8_t* in, const Group& out) {
  const float d = half_at(in), least = half_at(in + 2);
  const std::uint8_t* packed = in + 4;
  for (int b = 0; b < 8; ++b) {
    const int k = b % 4;
    const int scale = b < 4 ? packed[k] & 63 : (packed[8 + k] & 15) | ((packed[k] >> 2) & 48);
    const int minimum =
        b < 4 ? packed[4 + k] & 63 : (packed[8 + k] >> 4) | ((packed[4 + k] >> 2) & 48);
    out.scales[b] = d * static_cast<float>(scale);
    out.minima[b] = -(least * static_cast<float>(minimum));
  }
}

// d, dmin, scales and minima, 256 halves: d * scale * q - dmin * minimum
void q4_k(const std::uint8_t* in, const Group& out) {
  six_bits(in, out);
  for (int k = 0; k < 4; ++k) halves(in + 16 + 32 * k, 32, out.integers + 64 * k);
}

// The same with 256 high bits before the halves.
void q5_k(const std::uint8_t* in, const Group& out) {
  six_bits(in, out);
  for (int k = 0; k < 4; ++k) halves(in + 48 + 32 * k, 32, out.integers + 64 * k);
  for (int k = 0; k < 256; ++k) {
    const int high = (in[16 + k % 32] >> (k / 32)) & 1;
    out.integers[k] = static_cast<std::uint8_t>(out.integers[k] | (high << 4));
  }
}

// 256 halves, 256 high pairs of bits, 16 signed scales, d: d * scale * (q - 32)
void q6_k(const std::uint8_t* in, const Group& out) {
  const float d = half_at(in + 208);
  for (int b = 0; b < 16; ++b) {
    out.scales[b] = d * static_cast<float>(static_cast<std::int8_t>(in[192 + b]));
    out.zeros[b] = 32;
  }
  for (int k = 0; k < 256; ++k) {
    const int low = (in[k / 128 * 64 + k % 64] >> (k / 64 % 2 == 0 ? 0 : 4)) & 15;
    const int high = (in[128 + k / 128 * 32 + k % 32] >> (2 * (k / 32 % 4))) & 3;
    out.integers[k] = static_cast<std::uint8_t>(low | (high << 4));
  }
}

template <auto kGroup>
void take(const StoredMatrix& matrix, std::int64_t row, StoredRow& out) {
  const StoredFormat& format = *matrix.format;
  const std::int64_t groups = matrix.columns / format.columns;
  const auto* in =
      reinterpret_cast<const std::uint8_t*>(matrix.data.data()) + row * groups * format.bytes;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t block = g * format.columns / format.block;
    kGroup(in + g * format.bytes,
           {out.integers.data() + g * format.columns, out.zeros.data() + block,
            out.scales.data() + block, out.minima.data() + block});
  }
}

// clang-format off
constexpr StoredFormat kFormats[] = {
    // name, bits, most, block, minimum, columns, bytes
    {"Q4_0", 4,  15, 32, false,  32,  18, take<q4_0>},
    {"Q4_1", 4,  15, 32, true,   32,  20, take<q4_1>},
    {"Q5_0", 8,  31, 32, false,  32,  22, take<q5_0>},
    {"Q5_1", 8,  31, 32, true,   32,  24, take<q5_1>},
    {"Q8_0", 8, 255, 32, false,  32,  34, take<q8_0>},
    {"Q2_K", 4,   3, 16, true,  256,  84, take<q2_k>},
    {"Q3_K", 4,   7, 16, false, 256, 110, take<q3_k>},
    {"Q4_K", 4,  15, 32, true,  256, 144, take<q4_k>},
    {"Q5_K", 8,  31, 32, true,  256, 176, take<q5_k>},
    {"Q6_K", 8,  63, 16, false, 256, 210, take<q6_k>},
};
// clang-format on

}  // namespace

std::span<const StoredFormat> gguf_formats() { return kFormats; }

StoredMatrix gguf_matrix(std::string name, std::string_view type, std::int64_t rows,
                         std::int64_t columns, std::span<const std::byte> data) {
  const auto* format = std::ranges::find(kFormats, type, &StoredFormat::name);
  if (format == std::end(kFormats)) {
    std::string names;
    for (const StoredFormat& each : kFormats) {
      names += (names.empty() ? "" : ", ") + std::string(each.name);
    }
    throw Error(ErrorCode::kInvalidInput,
                "[keep] Expected weights in " + names + ", got " + std::string(type) + " in " +
                    name + ", which no kernel of ONNX Runtime holds without loss. Export it " +
                    "without keep, as floats or with quantize.");
  }
  std::int64_t bytes = 0;
  const bool whole = rows > 0 && columns > 0 && columns % format->columns == 0 &&
                     !__builtin_mul_overflow(rows, columns / format->columns, &bytes) &&
                     !__builtin_mul_overflow(bytes, format->bytes, &bytes);
  if (!whole || static_cast<std::size_t>(bytes) != data.size()) {
    throw Error(ErrorCode::kInvalidInput,
                "[keep] Expected " + (whole ? std::to_string(bytes) + " bytes" : "whole blocks") +
                    " for [" + std::to_string(rows) + ", " + std::to_string(columns) + "] of " +
                    std::string(type) + " in " + name + ", got " + std::to_string(data.size()) +
                    " bytes. Check that the file is complete.");
  }
  return {std::move(name),        format, rows, columns, format->block, data, format->block, {}, {},
          columns / format->block};
}

}  // namespace fairlead::quant
