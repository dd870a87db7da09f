// Matrices as quantised checkpoints store them, row by row: small integers in blocks, each with a
// scale.
//
//   value = scale * (integer - zero) + minimum, rounded to float32
//
// A format is a row of a table and a function that takes a row of a matrix apart: gguf.cpp has
// those of GGUF, group_formats.cpp those that keep integers and scales in tensors of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/dtype.h"
#include "fairlead/weights/decoded.h"

namespace fairlead::quant {

struct StoredMatrix;

// A row, taken apart: an integer for each column; the rest for each block.
struct StoredRow {
  std::vector<std::uint8_t> integers;
  std::vector<std::uint8_t> zeros;
  std::vector<float> scales;
  std::vector<float> minima;  // zeros in formats without

  explicit StoredRow(const StoredMatrix& matrix);
  // What the numbers stand for, by the definition of the format.
  void values(const StoredMatrix& matrix, float* out) const;
};

// How the elements of a matrix lie in its bytes.
enum class Layout : std::uint8_t {
  kRows,         // row after row, and zero points in words of several rows; scales by row
  kWordsAcross,  // words of some columns, one of each row beside each other; scales by column
  kAcross,       // words of some rows, column after column; scales by column
  kHalves,       // groups, of which the first half are the high bits of bytes; scales by row
  kWhole,        // rows with everything in them
};

struct StoredFormat {
  std::string_view name;   // as its checkpoints call it
  int bits = 4;            // that hold its integers: 4 or 8
  int most = 15;           // the largest integer
  int block = 32;          // columns that share a scale
  bool minimum = false;    // blocks have one
  int columns = 32;        // what is stored together
  std::int64_t bytes = 0;  // of so many columns
  void (*take)(const StoredMatrix& matrix, std::int64_t row, StoredRow& out) = nullptr;
  Layout layout = Layout::kWhole;
};

// Scales as a checkpoint has them.
struct StoredScales {
  std::span<const std::byte> data = {};
  Dtype dtype = Dtype::kFloat16;  // or kBfloat16, kFloat32
  [[nodiscard]] float at(std::int64_t k) const;
};

struct StoredMatrix {
  std::string name;  // in the checkpoint
  const StoredFormat* format = nullptr;
  std::int64_t rows = 0, columns = 0;
  int block = 0;                         // that a kernel has: a part of a group, or all of it
  std::span<const std::byte> data = {};  // borrowed, as are the others
  // Of formats of groups.
  std::int64_t group = 0;  // columns that share a scale
  StoredScales scales = {};
  std::span<const std::byte> zeros = {};
  std::int64_t groups = 0;   // of a row
  std::int64_t skipped = 0;  // columns of the first group that are not there
};

// The floats of a matrix, read a few rows at a time.
class DecodedMatrix : public DecodedTensor {
 public:
  // `held` is what the matrix borrows from, where nobody else keeps it.
  explicit DecodedMatrix(StoredMatrix matrix, std::vector<std::vector<std::byte>> held = {})
      : held_(std::move(held)), matrix_(std::move(matrix)) {}
  [[nodiscard]] std::int64_t rows() const override { return matrix_.rows; }
  [[nodiscard]] std::int64_t columns() const override { return matrix_.columns; }
  void decode(std::int64_t first, std::span<float> out) const override;
  [[nodiscard]] Rectangle around(const Rectangle& wanted) const override;
  [[nodiscard]] std::unique_ptr<DecodedTensor> taken_out(const Rectangle& wanted,
                                                         const ReadRows& read) const override;

 private:
  std::vector<std::vector<std::byte>> held_;
  StoredMatrix matrix_;
};

// A tensor of a GGUF file. Throws Error(kInvalidInput) for a type that cannot be kept without loss,
// and where sizes and bytes do not fit together.
[[nodiscard]] StoredMatrix gguf_matrix(std::string name, std::string_view type, std::int64_t rows,
                                       std::int64_t columns, std::span<const std::byte> data);

[[nodiscard]] std::span<const StoredFormat> gguf_formats();

// A matrix whose integers, scales and zero points are tensors of their own; columns in groups of
// `group`. Zero points may be missing where a format allows it. Throws as above, and for groups
// that no block of a kernel divides.
[[nodiscard]] StoredMatrix grouped_matrix(std::string name, std::string_view format,
                                          std::int64_t rows, std::int64_t columns,
                                          std::int64_t group, std::span<const std::byte> integers,
                                          StoredScales scales, std::span<const std::byte> zeros);

[[nodiscard]] std::span<const StoredFormat> group_formats();

}  // namespace fairlead::quant
