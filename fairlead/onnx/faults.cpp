// Faults by provider and version, each seen with the versions that the tests run.
#include "fairlead/onnx/faults.h"

#include <algorithm>

namespace fairlead::onnx {
namespace {

constexpr Provider kCpu = Provider::kOnnxRuntimeCpu;

// clang-format off
constexpr FaultRow kRows[] = {
    {Fault::kClipLosesNan,          kCpu, 0, 0, "Clip with one bound takes NaN for a number"},
    {Fault::kDftLosesDigits,        kCpu, 0, 0, "DFT of float32 loses three digits at lengths that are not powers of two"},
    {Fault::kDoubleNormFused,       kCpu, 0, 0, "a norm of float64 that is spelt out is fused, with 1e-5 for whatever epsilon there is"},
    {Fault::kEinsumOfNothing,       kCpu, 0, 0, "Einsum ends the process where a dimension is empty"},
    {Fault::kFmodThroughDouble,     kCpu, 0, 0, "Mod with fmod rounds integers to double"},
    {Fault::kHalfRecurrence,        kCpu, 0, 0, "a recurrent layer in float16 crashes while it is optimised"},
    {Fault::kIntegersThroughDouble, kCpu, 0, 0, "ReduceSum and ReduceProd round integers to double"},
    {Fault::kMatrixOfNothing,       kCpu, 0, 0, "MatMul refuses an empty matrix times a vector"},
    {Fault::kMovedMatrixOfNothing,  kCpu, 0, 0, "MatMul takes the Transpose before it in, and ends the process where what it moves is empty"},
    {Fault::kNoDeformConv,          kCpu, 0, 0, "DeformConv has a kernel in the newest releases alone"},
    {Fault::kPadIntoMaxPool,        kCpu, 0, 0, "a Pad is taken into the MaxPool behind it, whatever it pads with"},
    {Fault::kRangeAsSlice,          kCpu, 0, 0, "Gather by a Range becomes a Slice, whose ends below 0 count from the end"},
    {Fault::kRecurrenceOfNothing,   kCpu, 0, 0, "a recurrent layer ends the process where there is no step"},
    {Fault::kScanMovesNothing,      kCpu, 0, 0, "Scan along another axis than the first ends the process where a dimension is empty"},
    {Fault::kScanOfNothing,         kCpu, 0, 0, "Scan refuses a sequence without a step"},
    {Fault::kSigmoidTails,          kCpu, 0, 0, "Sigmoid of float32 is right to 1e-7 of 1 alone: at -10 three digits are left, at -18 none"},
    {Fault::kWideComparisons,       kCpu, 0, 0, "Max, Min, Clip, Sign, ReduceMax and ReduceMin take int64 beyond 32 bits for others"},
};
// clang-format on
static_assert(std::size(kRows) == static_cast<std::size_t>(Fault::kCount));

}  // namespace

std::span<const FaultRow> fault_rows() { return kRows; }

bool has_fault(const RuntimeProfile& runtime, Fault fault) {
  return std::any_of(std::begin(kRows), std::end(kRows), [&](const FaultRow& row) {
    const bool begun = runtime.version == 0 || runtime.version >= row.since;
    const bool ended = row.fixed != 0 && (runtime.version == 0 || runtime.version >= row.fixed);
    return row.fault == fault && row.provider == runtime.provider && begun && !ended;
  });
}

}  // namespace fairlead::onnx
