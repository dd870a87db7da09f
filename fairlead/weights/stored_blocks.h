// A tensor that consists of parts of a checkpoint's tensors: where its elements are is known, and none
// of them is read. What a loader does with tensors (split, stack, transpose) makes another one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fairlead/weights/weight_folder.h"

namespace fairlead {

// Elements of a checkpoint's file: element (i, j) lies at `offset` + (i*strides[0] + j*strides[1]) *
// its size. Of a tensor that is decoded, offsets count in it as if it were there as float32.
struct StoredPart {
  std::size_t file = 0;
  std::int64_t offset = 0;
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;       // in elements
  const DecodedTensor* decoded = nullptr;  // instead of a file
};

// Rectangles that do not overlap and fill the tensor. A checkpoint has tens of thousands: their
// numbers stand in one list.
class StoredBlocks {
 public:
  using Dims = std::vector<std::int64_t>;

  // Tensor `number` of the folder as it is. Its type is one that tensors here have.
  static StoredBlocks of(const WeightFolder& folder, std::size_t number);
  // Tensors one after the other along an axis.
  static StoredBlocks joined(std::span<const StoredBlocks* const> tensors, std::size_t axis);

  [[nodiscard]] const Dims& dims() const { return dims_; }
  [[nodiscard]] std::size_t count() const { return heads_.size(); }
  [[nodiscard]] std::size_t tensor(std::size_t block) const { return heads_.at(block).tensor; }
  [[nodiscard]] Dims start(std::size_t block) const;  // of a block in the tensor

  // Where the elements of a block are.
  [[nodiscard]] StoredPart part(const WeightFolder& folder, std::size_t block) const;
  // Whether they lie side by side, in the order of the tensor.
  [[nodiscard]] bool is_dense(std::size_t block) const;

  [[nodiscard]] StoredBlocks cut(std::size_t axis, std::int64_t low, std::int64_t high) const;
  [[nodiscard]] StoredBlocks without(std::size_t axis) const;  // an axis of one element
  [[nodiscard]] StoredBlocks with(std::size_t axis) const;     // one more of those
  [[nodiscard]] StoredBlocks permuted(std::span<const std::size_t> order) const;
  // Other sizes for the same elements in the same order; none where they cannot be counted so.
  [[nodiscard]] std::optional<StoredBlocks> viewed(const Dims& dims) const;
  // The blocks in the order of the elements, where need be smaller ones; none where there would be
  // more than `most`.
  [[nodiscard]] std::optional<StoredBlocks> in_order(std::size_t most) const;

 private:
  struct Head {
    std::uint32_t tensor = 0;  // of the folder
    std::int64_t first = 0;    // element of that tensor
  };
  explicit StoredBlocks(Dims dims) : dims_(std::move(dims)) {}
  [[nodiscard]] std::size_t rank() const { return dims_.size(); }
  [[nodiscard]] const std::int64_t* numbers(std::size_t block) const {
    return numbers_.data() + 3 * rank() * block;
  }
  std::int64_t* add(Head head);
  void add_in_order(StoredBlocks& made, std::size_t axis, std::size_t most) const;
  template <typename Change>
  [[nodiscard]] StoredBlocks changed(Dims dims, const Change& change) const;

  Dims dims_;
  std::vector<Head> heads_;
  std::vector<std::int64_t> numbers_;  // of each block its start, its sizes and its strides
};

}  // namespace fairlead
