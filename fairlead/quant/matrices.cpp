// 1. Who reads a constant matrix: products, as it is or transposed, and lookups of rows.
// 2. What stands in their place, where they read it packed (packed_readers.cpp).
// 3. Constants and transpositions that nobody reads any more go.
#include "fairlead/quant/matrices.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/onnx/tensor_stream.h"

namespace fairlead::quant {
namespace {

using onnx::TensorId;

bool is_plain(const onnx::Node& node, std::string_view op) {
  return node.domain.empty() && node.op == op;
}

std::int64_t int_attribute(const onnx::Node& node, std::string_view name, std::int64_t otherwise) {
  for (const onnx::Attribute& a : node.attributes) {
    const auto* value = std::get_if<std::int64_t>(&a.value);
    if (a.name == name && value != nullptr) return *value;
  }
  return otherwise;
}

}  // namespace

void for_each_node(onnx::Graph& graph, const std::function<void(onnx::Node&)>& visit) {
  for (onnx::Node& node : graph.nodes) {
    visit(node);
    for (onnx::Attribute& a : node.attributes) {
      auto* inner = std::get_if<std::shared_ptr<onnx::Graph>>(&a.value);
      if (inner != nullptr && *inner) for_each_node(**inner, visit);
    }
  }
}

Matrices::Matrices(onnx::Model& model) : model_(model) { find(); }

const std::string& Matrices::name(TensorId id) const {
  return model_.tensors[static_cast<std::size_t>(id)].name;
}

Matrix Matrices::floats(const Weight& weight) const {
  const onnx::TensorData& data = model_.graph.initializers[weight.initializer].data;
  const std::int64_t strides[] = {data.strides.empty() ? data.dims[1] : data.strides[0],
                                  data.strides.empty() ? 1 : data.strides[1]};
  const std::size_t rows = weight.product_columns ? 1 : 0;
  Matrix matrix;
  matrix.data = reinterpret_cast<const float*>(onnx::first_byte(data));
  matrix.rows = data.dims[rows];
  matrix.columns = data.dims[1 - rows];
  matrix.row_stride = strides[rows];
  matrix.column_stride = strides[1 - rows];
  return matrix;
}

void Matrices::find() {
  for (std::size_t k = 0; k < model_.graph.initializers.size(); ++k) {
    const onnx::Initializer& each = model_.graph.initializers[k];
    if (each.data.dtype == Dtype::kFloat32 && each.data.dims.size() == 2) {
      matrices_.emplace(each.tensor, k);
    }
  }
  // Transpositions come before the products that read them.
  for_each_node(model_.graph, [&](onnx::Node& node) {
    if (is_plain(node, "Transpose") && matrices_.contains(node.inputs[0])) {
      turned_.emplace(node.outputs[0], node.inputs[0]);
    }
  });
  for_each_node(model_.graph, [&](onnx::Node& node) {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) read(node, k);
  });
  const std::unordered_set<TensorId> outputs(model_.graph.outputs.begin(),
                                             model_.graph.outputs.end());
  for (auto& [id, weight] : weights_) {
    weight.otherwise = weight.otherwise || outputs.contains(id);
    for (const onnx::Node* node : weight.products) {
      weight.gives_output = weight.gives_output || outputs.contains(node->outputs[0]);
    }
  }
}

void Matrices::read(onnx::Node& node, std::size_t k) {
  const TensorId id = node.inputs[k];
  const auto turned = turned_.find(id);
  const bool product = is_plain(node, "MatMul") && k == 1;
  if (turned != turned_.end()) {
    Weight& weight = weight_of(turned->second);
    if (product) {
      weight.products.push_back(&node);
    } else {
      weight.otherwise = true;
    }
    return;
  }
  if (!matrices_.contains(id)) return;
  Weight& weight = weight_of(id);
  if (product) {
    weight.product_columns = true;
    weight.products.push_back(&node);
  } else if (is_plain(node, "Gather") && k == 0 && int_attribute(node, "axis", 0) == 0) {
    weight.lookups.push_back(&node);
  } else if (!is_plain(node, "Transpose")) {
    weight.otherwise = true;
  }
}

Weight& Matrices::weight_of(TensorId id) {
  auto [it, fresh] = weights_.try_emplace(id);
  if (fresh) it->second.initializer = matrices_.at(id);
  return it->second;
}

// Sums of the blocks of one tensor are made once in a graph.
void Matrices::put_replacements(onnx::Graph& graph) {
  std::vector<onnx::Node> nodes;
  std::map<std::pair<TensorId, std::int64_t>, TensorId> sums;
  for (onnx::Node& node : graph.nodes) {
    for (onnx::Attribute& a : node.attributes) {
      auto* inner = std::get_if<std::shared_ptr<onnx::Graph>>(&a.value);
      if (inner != nullptr && *inner) put_replacements(**inner);
    }
    const auto found = node.outputs.empty() ? replaced_.end() : replaced_.find(node.outputs[0]);
    if (found == replaced_.end()) {
      nodes.push_back(std::move(node));
      continue;
    }
    for (onnx::Node& each : found->second.nodes) {
      for (TensorId& input : each.inputs) {
        if (input != kBlockSums) continue;
        TensorId& sum =
            sums.try_emplace({found->second.x, found->second.block}, onnx::kAbsent).first->second;
        if (sum == onnx::kAbsent) sum = block_sums(each, found->second, nodes);
        input = sum;
      }
      nodes.push_back(std::move(each));
    }
  }
  graph.nodes = std::move(nodes);
}

TensorId Matrices::block_sums(const onnx::Node& reader, const Replacement& made,
                              std::vector<onnx::Node>& nodes) {
  const auto& shape = model_.tensors[static_cast<std::size_t>(made.x)].shape;
  FAIRLEAD_CHECK(shape.has_value(), "a product of " + name(made.x) + ", whose rank is not known");
  std::vector<std::int64_t> dims(shape->size() - 1, 0);  // 0: as they are
  dims.insert(dims.end(), {made.blocks, made.block});
  const std::size_t first = nodes.size();
  const TensorId blocks = reshaped(reader.name + ".blocks", made.x, Dtype::kFloat32, dims, nodes);
  const TensorId sum =
      made_by(nodes, "ReduceSum", reader.name + ".block_sums",
              {blocks, numbers(reader.name + ".last_axis", {-1})}, {{"keepdims", std::int64_t{0}}});
  for (std::size_t k = first; k < nodes.size(); ++k) {
    nodes[k].module = reader.module;
    nodes[k].source = reader.source;
  }
  return sum;
}

std::int64_t Matrices::bytes_added() const {
  std::int64_t total = 0;
  for (const onnx::Initializer& each : added_) total += onnx::stored_bytes(each.data);
  return total;
}

void Matrices::finish() {
  if (!replaced_.empty()) put_replacements(model_.graph);
  auto& initializers = model_.graph.initializers;
  initializers.insert(initializers.end(), added_.begin(), added_.end());
  std::unordered_set<TensorId> read(model_.graph.outputs.begin(), model_.graph.outputs.end());
  const auto look = [&](const onnx::Node& node) {
    read.insert(node.inputs.begin(), node.inputs.end());
  };
  for_each_node(model_.graph, look);
  std::erase_if(model_.graph.nodes, [&](const onnx::Node& node) {
    return turned_.contains(node.outputs[0]) && !read.contains(node.outputs[0]);
  });
  model_.graph.nodes.insert(model_.graph.nodes.begin(), before_.begin(), before_.end());
  read = {model_.graph.outputs.begin(), model_.graph.outputs.end()};
  for_each_node(model_.graph, look);
  std::erase_if(initializers, [&](const onnx::Initializer& i) {
    return matrices_.contains(i.tensor) && !read.contains(i.tensor);
  });
}

void refuse_quantized(onnx::Model& model) {
  for_each_node(model.graph, [](const onnx::Node& node) {
    if (node.op == "DequantizeLinear" || node.op == "MatMulNBits" || node.op == "QMoE" ||
        node.op == "MatMulInteger" || node.op == "QLinearMatMul") {
      throw Error(ErrorCode::kInvalidInput,
                  "[quantize] Expected a model of floats, got one that is quantised already (" +
                      node.op + " in " + (node.module.empty() ? "the model" : node.module) +
                      "). Export it without quantize.");
    }
  });
}

}  // namespace fairlead::quant
