// Tensors that a checkpoint keeps as small numbers with scales: what their elements are is computed
// when they are read, a bounded piece at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fairlead/base/dtype.h"

namespace fairlead {

class DecodedTensor {
 public:
  DecodedTensor() = default;
  DecodedTensor(const DecodedTensor&) = delete;
  DecodedTensor& operator=(const DecodedTensor&) = delete;
  virtual ~DecodedTensor() = default;

  [[nodiscard]] virtual std::int64_t count() const = 0;
  // Elements `first` ... `first + out.size()` in their order; several threads at once.
  virtual void decode(std::int64_t first, std::span<float> out) const = 0;
  // What it reads.
  [[nodiscard]] virtual std::vector<std::span<const std::byte>> sources() const = 0;
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
};

// Throws Error(kInvalidInput) where sizes and bytes do not fit together.
class TableTensor : public DecodedTensor {
 public:
  explicit TableTensor(CodeBlocks blocks);
  [[nodiscard]] std::int64_t count() const override { return blocks_.rows * blocks_.columns; }
  void decode(std::int64_t first, std::span<float> out) const override;
  [[nodiscard]] std::vector<std::span<const std::byte>> sources() const override {
    return {blocks_.codes, blocks_.scales.data};
  }

 private:
  CodeBlocks blocks_;
  std::int64_t across_ = 0;  // blocks beside each other
};

}  // namespace fairlead
