// Reads an ONNX file into a summary: what `fairlead inspect` shows. Weights are not loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fairlead::onnx {

struct DimSummary {
  std::optional<std::int64_t> value;
  std::string name;  // "batch"; empty beside no value: unknown
};

struct ValueSummary {
  std::string name;
  int elem_type =
      0;  // the TensorProto code; 0 where the value is no tensor or its type is not said
  std::string dtype;  // "float32"; empty for code 0
  std::optional<std::vector<DimSummary>> shape;
};

struct InitializerSummary {
  std::string name;
  int elem_type = 0;
  std::string dtype;
  std::vector<std::int64_t> dims;
  std::int64_t bytes = 0;  // of the elements, wherever they are
  bool external = false;
  std::string location;     // the external file, relative to the model's folder
  std::int64_t offset = 0;  // of raw data in the model file, or of the elements in the external one
  std::int64_t length = 0;  // as the file says; 0 where an external tensor does not
  int depth = 0;            // 0: the main graph
};

struct NodeSummary {
  std::string name;
  std::string op;
  std::string domain;
  std::vector<std::string> inputs;  // "" is an optional one left out
  std::vector<std::string> outputs;
  std::vector<std::pair<std::string, std::string>> attributes;  // name, text: {"perm", "[0, 2, 1]"}
  std::string module;
  std::string source;
  int depth = 0;  // nodes of a subgraph follow the node that holds it
};

struct ModelSummary {
  std::int64_t ir_version = 0;
  std::string producer_name;
  std::string producer_version;
  std::vector<std::pair<std::string, std::int64_t>> opset_imports;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::string graph_name;
  std::vector<ValueSummary> inputs;  // of the main graph, as are outputs and value_info
  std::vector<ValueSummary> outputs;
  std::vector<ValueSummary> value_info;
  std::vector<NodeSummary> nodes;
  std::map<std::string, std::int64_t> op_counts;  // "MatMul", "com.microsoft.Gelu"; subgraphs too
  std::vector<InitializerSummary> initializers;
  std::int64_t file_bytes = 0;
};

// Throws Error(kIo) where the file cannot be read and Error(kParse) where it is not an ONNX model.
[[nodiscard]] ModelSummary read_model_summary(const std::string& path);

// The same from memory; `name` stands for the file in messages.
[[nodiscard]] ModelSummary parse_model_summary(std::span<const std::byte> bytes,
                                               const std::string& name = "bytes");

// The initializers of the file alone, one after the other, those of subgraphs too: nothing of it is
// kept. Throws as read_model_summary does.
void visit_initializers(const std::string& path,
                        const std::function<void(const InitializerSummary&)>& visit);

// Throws Error(kParse) where functions in the file call each other so often that whoever puts their
// bodies in place of the calls, as ONNX Runtime does, does not come to an end.
void check_functions(const std::string& path);
void check_functions(std::span<const std::byte> bytes, const std::string& name = "bytes");

}  // namespace fairlead::onnx
