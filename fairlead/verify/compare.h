// How far two buffers of one element type are apart: a runtime's result and eager's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fairlead/base/dtype.h"

namespace fairlead {

// NaN equals NaN and an infinity equals the same infinity. A NaN or infinity that the other side
// does not have is counted as a mismatch and kept out of the maxima and the sum.
struct Comparison {
  std::int64_t count = 0;         // elements; a complex number is one
  double max_abs = 0;             // |got - expected|
  double scale = 0;               // what differences of floats are measured by; see below
  double max_scaled = 0;          // |got - expected| / max(scale, |expected|)
  double max_rel = 0;             // |got - expected| / (|expected| + 1e-3)
  double sum_abs = 0;             // of |got - expected|
  std::int64_t nan_mismatch = 0;  // NaN on one side only
  std::int64_t inf_mismatch = 0;  // infinite on one side only, or infinities of both signs
  std::int64_t differing = 0;     // integers and bools that are not equal; 0 for other types
  std::int64_t worst_index = -1;  // the first mismatch, else the largest difference; -1: all equal
  std::vector<std::int64_t>
      over;  // per threshold: elements with |difference| above it or mismatched
};

// The scale of floats is the largest finite |expected|: rounding is in proportion to the terms of a
// sum, so small values beside large ones carry the error of the large ones, and an output that is
// small as a whole is judged as strictly as one that is large. What fills a mask (negative values
// of one power of two, beyond a thousand and 32 times all others) sets no scale; 1 is the least
// then. Where all is zero it is the smallest normal number; integers have 1.
//
// Both buffers hold elements of `dtype`, contiguous, of any alignment. Complex numbers are compared
// part by part, low-precision floats as float32, bools as zero or not. Throws Error(kInvalidInput)
// where the sizes differ or are no whole number of elements. Needs no lock; keeps nothing.
//   compare_buffers(Dtype::kFloat32, eager, runtime, {{0.1, 0.01}}).over[1]
[[nodiscard]] Comparison compare_buffers(Dtype dtype, std::span<const std::byte> expected,
                                         std::span<const std::byte> got,
                                         std::span<const double> thresholds = {});

// Where a result is apart from eager's, and how far eager is apart from itself there.
struct TiedElements {
  std::int64_t count = 0;  // elements in all; a complex number is two
  std::int64_t apart = 0;  // those further than the limit
  double ratio = 0;        // the largest distance of one in terms of eager's own; infinite: none
  double moved = 0;        // the largest of eager's own
};

// `others` are further results of eager's, of inputs that were moved a little: an element that lies
// on a tie or a threshold jumps in some of them, and all others stay. Of more elements apart than
// `most` nothing but their number is found out. Buffers are as those of compare_buffers.
[[nodiscard]] TiedElements tied_elements(Dtype dtype, std::span<const std::byte> expected,
                                         std::span<const std::byte> got,
                                         std::span<const std::span<const std::byte>> others,
                                         double limit, std::int64_t most);

}  // namespace fairlead
