// Streams the elements of a tensor to a file in row-major order, whatever its strides.
#pragma once

#include <cstdint>
#include <vector>

#include "fairlead/files/output_file.h"
#include "fairlead/onnx/model.h"
#include "fairlead/weights/fetched_weights.h"

namespace fairlead::onnx {

// Where the elements start: `data`, or the owned bytes where `data` was left null.
[[nodiscard]] const std::byte* first_byte(const TensorData& tensor);

// Bytes of the tensor once stored, strides apart. Checks that dims, strides and data fit together.
[[nodiscard]] std::int64_t stored_bytes(const TensorData& tensor);

// The fewest dims that address the same elements in the same order: sizes 1 are dropped and
// neighbours that follow each other in memory are joined. Contiguous data has at most one dim.
//   dims (2, 3, 4) strides (12, 4, 1) -> (24) (1);  dims (4, 2, 3) strides (1, 12, 4) -> (4, 6) (1,
//   4)
struct Layout {
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;
  [[nodiscard]] bool contiguous() const {
    return dims.empty() || (dims.size() == 1 && strides[0] == 1);
  }
  bool operator==(const Layout&) const = default;
};
[[nodiscard]] Layout reduced_layout(const TensorData& tensor);

// For a weight whose bytes are neither here nor known to the writer.
[[noreturn]] void fail_elsewhere();

// `fetched`: where some have their bytes.
void stream_tensor(const TensorData& tensor, OutputFile& file, FetchedWeights* fetched = nullptr);

}  // namespace fairlead::onnx
