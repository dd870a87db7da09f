// Tensors that a checkpoint keeps as small numbers with scales: what their elements are is computed
// when they are read, a bounded piece at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fairlead/base/dtype.h"

namespace fairlead {

// Rows and columns of a matrix.
struct Rectangle {
  std::int64_t row = 0, rows = 0;  // from `row` on
  std::int64_t column = 0, columns = 0;
};

// `count` rows of `width` bytes each, `pitch` apart.
struct ByteRows {
  std::span<const std::byte> of = {};
  std::int64_t first = 0, pitch = 0, width = 0, count = 0;
};
// Copies them side by side, from where they are: of a file that is mapped not through the mapping,
// whose pages would stay.
using ReadRows = std::function<void(const ByteRows& rows, std::span<std::byte> into)>;
[[nodiscard]] std::vector<std::byte> read_rows(const ByteRows& rows, const ReadRows& read);

class DecodedTensor {
 public:
  DecodedTensor() = default;
  DecodedTensor(const DecodedTensor&) = delete;
  DecodedTensor& operator=(const DecodedTensor&) = delete;
  virtual ~DecodedTensor() = default;

  // It is a matrix, whose rows follow each other.
  [[nodiscard]] virtual std::int64_t rows() const = 0;
  [[nodiscard]] virtual std::int64_t columns() const = 0;
  [[nodiscard]] std::int64_t count() const { return rows() * columns(); }
  // Elements `first` ... `first + out.size()` in their order; several threads at once.
  virtual void decode(std::int64_t first, std::span<float> out) const = 0;
  // The smallest rectangle around this one that can be taken out.
  [[nodiscard]] virtual Rectangle around(const Rectangle& wanted) const = 0;
  // Such a rectangle as a tensor of its own, which holds a copy of what it is made of: as many bytes
  // as its elements ask for, wherever those are in the whole.
  [[nodiscard]] virtual std::unique_ptr<DecodedTensor> taken_out(const Rectangle& wanted,
                                                                 const ReadRows& read) const = 0;
};

// Scales as a checkpoint has them.
struct CodeScales {
  std::span<const std::byte> data = {};
  Dtype dtype = Dtype::kFloat32;  // or kFloat16, kBfloat16; kUint8: exponents of two, above -127
  [[nodiscard]] std::int64_t count() const;
  [[nodiscard]] float at(std::int64_t k) const;
};

// Rows of codes of 4 or 8 bits, the lower half of a byte first; each stands for a number of a table,
// times the scale of its block of `block_rows` by `block_columns`.
struct CodeBlocks {
  std::span<const std::byte> codes = {};
  int bits = 8;
  std::vector<float> table = {};  // by code
  std::int64_t rows = 0, columns = 0;
  CodeScales scales = {};  // one row of blocks after the other
  std::int64_t block_rows = 1, block_columns = 1;
  std::int64_t skipped_rows = 0, skipped_columns = 0;  // of the first blocks, which are not there
};

// Throws Error(kInvalidInput) where sizes and bytes do not fit together.
class TableTensor : public DecodedTensor {
 public:
  // `held` is what the blocks borrow from, where nobody else keeps it.
  explicit TableTensor(CodeBlocks blocks, std::vector<std::vector<std::byte>> held = {});
  [[nodiscard]] std::int64_t rows() const override { return blocks_.rows; }
  [[nodiscard]] std::int64_t columns() const override { return blocks_.columns; }
  void decode(std::int64_t first, std::span<float> out) const override;
  [[nodiscard]] Rectangle around(const Rectangle& wanted) const override;
  [[nodiscard]] std::unique_ptr<DecodedTensor> taken_out(const Rectangle& wanted,
                                                         const ReadRows& read) const override;

 private:
  std::vector<std::vector<std::byte>> held_;
  CodeBlocks blocks_;
  std::int64_t across_ = 0;  // blocks beside each other
};

}  // namespace fairlead
