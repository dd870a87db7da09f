// What a runtime does wrong, or not at all, although the ONNX standard says how: lowerings that
// write something else for its sake ask for it by name. Kernels that it lacks for a type are in
// kernels.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fairlead/passes/target.h"

namespace fairlead::onnx {

enum class Fault : std::uint8_t {
  kClipLosesNan,
  kDftLosesDigits,
  kDoubleNormFused,
  kEinsumOfNothing,
  kFmodThroughDouble,
  kHalfRecurrence,
  kIntegersThroughDouble,
  kMatrixOfNothing,
  kMovedMatrixOfNothing,
  kNoDeformConv,
  kPadIntoMaxPool,
  kRangeAsSlice,
  kRecurrenceOfNothing,
  kScanMovesNothing,
  kScanOfNothing,
  kSigmoidTails,
  kWideComparisons,
  kCount,
};

struct FaultRow {
  Fault fault;
  Provider provider;
  int since;  // the version of ONNX Runtime (RuntimeProfile::version) that has it first; 0: all
  int fixed;  // the one that has it no longer; 0: none that is known
  std::string_view words;
};

[[nodiscard]] std::span<const FaultRow> fault_rows();
[[nodiscard]] bool has_fault(const RuntimeProfile& runtime, Fault fault);

}  // namespace fairlead::onnx
