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

}  // namespace fairlead
