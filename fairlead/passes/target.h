// For what a program is made, and what runs it there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

// Which kernels there are.
enum class Provider : std::uint8_t {
  kOnnxRuntimeCpu,  // those of ONNX Runtime on a CPU: what has none computes in another type
  kPortable,        // every type that the ONNX standard has for an operator
};

// What is known of the runtime that executes the file.
struct RuntimeProfile {
  Provider provider = Provider::kOnnxRuntimeCpu;
  int version = 0;  // of ONNX Runtime: 22 is 1.22; 0 is the newest that is known

  // An unknown version is taken for the one before it.
  [[nodiscard]] int newest_opset() const;
};

// "onnxruntime-cpu" or "portable". Throws Error(kInvalidInput) for another name.
[[nodiscard]] Provider parse_provider(std::string_view name);

enum class TargetKind : std::uint8_t {
  kTorch,  // operators of PyTorch: .pt2, ExecuTorch
  kOnnx,   // an ONNX file
};

struct Target {
  TargetKind kind = TargetKind::kOnnx;
  RuntimeProfile runtime = {};
  bool optimize = true;  // false: only what a program needs to be written at all
  bool fuse = false;     // with operators that only this runtime has (fusion.h)
  bool padding = false;  // also for prompts whose rows begin at different positions
  std::vector<std::string> left_out = {};  // fusions that are not done, by their kinds
  int opset = 20;                          // of an ONNX file
};

}  // namespace fairlead
