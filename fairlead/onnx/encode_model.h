// Encodes a model as protobuf bytes with holes where tensors are streamed in later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/files/output_file.h"
#include "fairlead/onnx/external_plan.h"
#include "fairlead/onnx/functions.h"
#include "fairlead/onnx/model.h"

namespace fairlead::onnx {

// A message whose tensors are not copied: `bytes` is everything else, and the stored form of a
// hole's tensor belongs before bytes[at]. Lengths inside `bytes` already count the holes.
struct EncodedMessage {
  struct Hole {
    std::size_t at;
    const TensorData* tensor;
  };
  std::string bytes;
  std::vector<Hole> holes;
  std::int64_t hole_bytes = 0;

  [[nodiscard]] std::int64_t size() const {
    return static_cast<std::int64_t>(bytes.size()) + hole_bytes;
  }
};

// The ModelProto, whose size stands before its content: a node after the other is encoded, first to be
// counted and then to be written, and none of them is kept. Borrows what it is given.
class ModelEncoder {
 public:
  ModelEncoder(const Model& model, const ExternalPlan& plan,
               const std::vector<Function>* functions = nullptr);

  [[nodiscard]] std::int64_t size() const { return head_.size() + graph_size_; }
  // `fetched`: where some tensors have their bytes.
  void write(OutputFile& file, FetchedWeights* fetched) const;

 private:
  const Model& model_;
  const ExternalPlan& plan_;
  EncodedMessage head_;  // what stands before the graph
  std::int64_t graph_size_ = 0;
};

// One more pair for a ModelProto that is already written: appended to its bytes, it is merged in.
[[nodiscard]] EncodedMessage encode_metadata(std::string_view key, std::string_view value);

void write_message(const EncodedMessage& message, OutputFile& file,
                   FetchedWeights* fetched = nullptr);

// The oldest IR version that has this opset, as ONNX's own table of releases gives it.
[[nodiscard]] int ir_version_of_opset(int opset);

}  // namespace fairlead::onnx
