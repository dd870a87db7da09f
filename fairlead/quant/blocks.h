// Matrices in blocks of small integers: each block of a row has a scale, and where the format is
// not symmetric a zero point. Stored as MatMulNBits of ONNX Runtime takes it.
//
//   value = scale * (integer - zero point) + offset
//
// Integers of `bits` bits from 0; symmetric: the zero point is 2^(bits - 1). pack() makes no
// offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fairlead::quant {

struct Format {
  int bits = 4;           // 4 or 8
  int block = 32;         // elements that share a scale: a power of two, 16 to 256
  bool symmetric = true;  // false: with a zero point in each block
  bool search = true;     // tries scales around the largest value for the one of the least error
};

// Throws Error(kInvalidInput) for bits or a block that MatMulNBits does not have.
void check_format(const Format& format);

// A matrix [rows, columns] of floats in memory.
struct Matrix {
  const float* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_stride = 0, column_stride = 1;  // in elements
};

struct Packed {
  std::int64_t rows = 0, columns = 0, blocks = 0;       // blocks of a row; the last may be short
  std::shared_ptr<std::vector<std::byte>> values;       // [rows, blocks, block * bits / 8]
  std::shared_ptr<std::vector<std::byte>> scales;       // float32 [rows, blocks]
  std::shared_ptr<std::vector<std::byte>> zero_points;  // [rows, bytes of blocks * bits]; null
  std::shared_ptr<std::vector<std::byte>> offsets;      // float32 [rows, blocks], added; null: none
  bool scales_fit_half = false;                         // every scale is a float16 too
  double squared_error = 0, squared_size = 0;           // sums over the elements

  // |w - packed w| / |w|
  [[nodiscard]] double relative_error() const;
};

// The k-th integer of those packed at `out`, which was zero. Halves of bytes: the low one first.
inline void put_integer(std::byte* out, std::size_t k, int q, int bits) {
  if (bits == 8) {
    out[k] = static_cast<std::byte>(q);
  } else {
    out[k / 2] |= static_cast<std::byte>(k % 2 == 0 ? q : q << 4);
  }
}

// Rows are shared out among threads.
[[nodiscard]] Packed pack(const Matrix& matrix, const Format& format, unsigned threads);
// The numbers that the packed ones stand for, row by row.
[[nodiscard]] std::vector<float> unpack(const Packed& packed, const Format& format);

}  // namespace fairlead::quant
