// An ONNX model as plain structs: what lowering fills and the writer streams. Knows no protobuf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fairlead/base/dtype.h"
#include "fairlead/symbol/expr.h"

namespace fairlead::onnx {

// A tensor of the model, by position in Model::tensors. kAbsent is an optional input left out.
using TensorId = std::int32_t;
inline constexpr TensorId kAbsent = -1;

struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::kFloat32;
  std::optional<std::vector<Expr>> shape;  // written as value_info, inputs and outputs
};

// Bytes that become an initializer or a tensor attribute. `strides` in elements; empty: contiguous.
// The bytes are borrowed unless `owned` is set; the writer streams them, transposing as it goes.
// Elements of 4 bits lie two to a byte, the low half first, and are contiguous.
enum class FourBits : std::uint8_t {
  kNo = 0,
  kUint4 = 21,  // codes of ONNX
  kInt4 = 22,
};

struct TensorData {
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;
  const std::byte* data = nullptr;
  std::shared_ptr<const std::vector<std::byte>> owned;
  FourBits four_bits = FourBits::kNo;  // otherwise `dtype` is kUint8, of the bytes
};

struct Graph;
using AttributeValue =
    std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>,
                 std::vector<std::string>, TensorData, std::shared_ptr<Graph>>;

struct Attribute {
  std::string name;
  AttributeValue value;
};

struct Node {
  std::string op;
  std::string domain;  // empty: the default domain
  std::string name;    // "/model/layers.0/self_attn/q_proj/MatMul"
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  std::vector<Attribute> attributes;
  std::string module;  // written as node metadata
  std::string source;
};

// Of several `pieces` it stands for as many tensors that follow each other along the first axis, each
// a part of a file: where it is an input of a node, all of them are. A checkpoint of experts has tens
// of thousands.
struct Initializer {
  TensorId tensor = kAbsent;
  TensorData data;
  std::int64_t pieces = 1;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  std::vector<Initializer> initializers;
};

struct Model {
  std::shared_ptr<ExprPool> pool;   // for the shapes
  std::vector<TensorInfo> tensors;  // of the graph and of every subgraph
  Graph graph;
  int opset = 20;
  bool uses_contrib_ops = false;  // imports com.microsoft
  int plain_orders = 0;           // sorts with equal elements as the kernel puts them
  std::string producer_version;
  std::vector<std::pair<std::string, std::string>> metadata;  // model-level key, value
};

}  // namespace fairlead::onnx
