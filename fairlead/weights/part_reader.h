// The elements of a part of a checkpoint in their order, of which a bounded number is in memory.
//
// 1. Elements that lie side by side are read as they are, from the file.
// 2. Where the part is turned (its last axis is not the one whose elements are neighbours), a slab
//    of it is read: some places along the axis of neighbours, with all of the axes behind it. So
//    each byte is read about once, and never the whole for a few rows.
// 3. Of a tensor that is decoded the small numbers of a rectangle are copied, which is decoded
//    then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fairlead/weights/stored_blocks.h"
#include "fairlead/weights/weight_folder.h"

namespace fairlead {

class PartReader {
 public:
  PartReader(const WeightFolder& folder, const StoredPart& part, unsigned threads);

  [[nodiscard]] std::int64_t count() const { return count_; }
  // Reads what elements from `from` on ask for; those up to the number that it gives can be had
  // then. `from` is 0, or the end of those before.
  [[nodiscard]] std::int64_t prepare(std::int64_t from);
  // `some` elements, side by side, of those that were prepared; several threads at once.
  void gather(std::int64_t from, std::int64_t some, std::vector<std::byte>& into) const;

 private:
  // Neighbours along an axis, `step` elements apart.
  struct Run {
    std::int64_t place = 0, count = 0, step = 1;
  };
  [[nodiscard]] std::int64_t place_of(std::int64_t row) const;  // by the axes before the last
  void prepare_slab(std::int64_t from);
  void prepare_rows(std::int64_t from);
  void take_out(const Rectangle& wanted);
  void read(const Run& run, std::byte* into) const;
  void read_decoded(const Run& run, std::byte* into) const;

  const WeightFolder& folder_;
  StoredPart part_;  // axes that are one are one
  unsigned threads_;
  std::int64_t size_ = 0, count_ = 0;
  std::int64_t first_ = 0;  // element of the tensor that is decoded
  std::size_t turned_ = 0;  // the axis of neighbours, where that is not the last
  bool is_turned_ = false;
  // What is prepared: elements begin_ ... end_. Of a slab all neighbours of each place behind.
  std::int64_t begin_ = 0, end_ = 0, wide_ = 0;
  std::vector<std::byte> slab_;
  std::unique_ptr<DecodedTensor> taken_;
  Rectangle rectangle_;
};

}  // namespace fairlead
