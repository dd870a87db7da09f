// Packed sequences, for the layers that go through them.
#pragma once

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

struct Packing {
  Val sequences;  // how many, int64 [1]
  Val steps;      // of the longest, int64 [1]
  Val places;     // (step, sequence) of each row, int64 [rows, 2]
  Val lengths;    // of each sequence, int64 [sequences]
};

// From how many sequences each step has, int64 [steps].
[[nodiscard]] Packing packing_of(Lowering& b, Val batch_sizes);

// rows [rows, ...] as [steps, sequences, ...], and back.
[[nodiscard]] Val unpack(Lowering& b, const Packing& p, Val rows, Val steps, double padding);
[[nodiscard]] Val pack(Lowering& b, const Packing& p, Val padded);

}  // namespace fairlead::onnx
