// Constant matrices of an ONNX model: who reads them, and how those who do take packed ones.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "fairlead/onnx/model.h"
#include "fairlead/quant/blocks.h"

namespace fairlead::quant {

// A constant [rows, columns] as products and lookups see it.
struct Weight {
  std::size_t initializer = 0;
  bool product_columns = false;       // products take it as [columns, rows]: as it is stored
  std::vector<onnx::Node*> products;  // x @ w^T
  std::vector<onnx::Node*> lookups;   // rows by number
  bool otherwise = false;             // somebody reads it in another way
  bool gives_output = false;

  // Products and lookups that can take it packed, and nobody else.
  [[nodiscard]] bool can_be_packed() const {
    return !otherwise && !(product_columns && !lookups.empty());
  }
};

// Weights point into the model: until finish() nothing else may change it.
class Matrices {
 public:
  explicit Matrices(onnx::Model& model);

  [[nodiscard]] std::map<onnx::TensorId, Weight>& weights() { return weights_; }
  [[nodiscard]] const std::string& name(onnx::TensorId id) const;
  [[nodiscard]] Matrix floats(const Weight& weight) const;

  // Readers take the packed numbers instead, by MatMulNBits and GatherBlockQuantized.
  // `int8_activations`: what is multiplied is rounded to 8 bits.
  void pack_for_onnxruntime(onnx::TensorId id, Weight& weight, const Packed& packed,
                            const Format& format, bool int8_activations);
  // Products take them by DequantizeLinear.
  void pack_in_standard_operators(onnx::TensorId id, Weight& weight, const Packed& packed,
                                  const Format& format);
  [[nodiscard]] std::int64_t bytes_added() const;  // of what is packed
  // Constants and transpositions that nobody reads any more go.
  void finish();

 private:
  static constexpr onnx::TensorId kBlockSums = -2;  // stands for sums that are not made yet

  // Integers that one operator takes; a matrix may be a sum of them.
  struct Part {
    const char* suffix = "";
    int bits = 4;
    onnx::TensorId values = onnx::kAbsent, scales = onnx::kAbsent, zeros = onnx::kAbsent;

    [[nodiscard]] std::vector<onnx::TensorId> with(std::vector<onnx::TensorId> inputs) const {
      inputs.push_back(scales);
      if (zeros != onnx::kAbsent) inputs.push_back(zeros);
      return inputs;
    }
  };
  // What stands in the place of a node. Where blocks have offsets a product is
  // x @ packed^T + sums of the blocks of x @ offsets.
  struct Replacement {
    std::vector<onnx::Node> nodes;
    onnx::TensorId x = onnx::kAbsent;
    std::int64_t blocks = 0, block = 0;
  };

  void find();
  void read(onnx::Node& node, std::size_t k);
  Weight& weight_of(onnx::TensorId id);
  std::vector<Part> parts_of(const std::string& name, const Packed& packed, const Format& format,
                             bool int8_activations);
  void add_by_block(const std::string& name, onnx::TensorId rows, onnx::TensorId offsets,
                    std::int64_t blocks, std::int64_t block, std::vector<onnx::Node>& nodes);
  onnx::TensorId sum_of(const std::vector<onnx::TensorId>& terms, const std::string& name,
                        std::vector<onnx::Node>& nodes);
  void replace(const onnx::Node& node, Replacement made);
  void put_replacements(onnx::Graph& graph);
  onnx::TensorId block_sums(const onnx::Node& reader, const Replacement& made,
                            std::vector<onnx::Node>& nodes);
  // A node after the others, and what it makes.
  onnx::TensorId made_by(std::vector<onnx::Node>& nodes, std::string op, const std::string& name,
                         std::vector<onnx::TensorId> inputs,
                         std::vector<onnx::Attribute> attributes = {},
                         Dtype dtype = Dtype::kFloat32);
  onnx::TensorId reshaped(const std::string& name, onnx::TensorId from, Dtype dtype,
                          const std::vector<std::int64_t>& shape, std::vector<onnx::Node>& nodes);
  onnx::TensorId numbers(const std::string& name, const std::vector<std::int64_t>& values);
  onnx::TensorId constant(const std::string& name, float value);
  onnx::TensorId new_tensor(const std::string& name, Dtype dtype);
  onnx::TensorId add(const std::string& name, Dtype dtype, std::vector<std::int64_t> dims,
                     const std::shared_ptr<std::vector<std::byte>>& bytes,
                     onnx::FourBits four_bits = onnx::FourBits::kNo);

  onnx::Model& model_;
  std::unordered_map<onnx::TensorId, std::size_t> matrices_;   // constants [n, m] of float32
  std::unordered_map<onnx::TensorId, onnx::TensorId> turned_;  // their transpositions
  std::map<onnx::TensorId, Weight> weights_;                   // in the order of the file
  std::unordered_map<onnx::TensorId, Replacement> replaced_;   // by the node's output
  std::map<std::vector<std::int64_t>, onnx::TensorId> numbers_;
  std::map<float, onnx::TensorId> constants_;
  std::vector<onnx::Initializer> added_;
  std::vector<onnx::Node> before_;  // what makes tensors of constants
};

// Those of bodies too.
void for_each_node(onnx::Graph& graph, const std::function<void(onnx::Node&)>& visit);

// Why weights stay as they are, seen from what they would become; nothing where they do not.
[[nodiscard]] std::string reason(const Packed& packed);

// Throws Error(kInvalidInput) for a model that is quantised already.
void refuse_quantized(onnx::Model& model);

}  // namespace fairlead::quant
