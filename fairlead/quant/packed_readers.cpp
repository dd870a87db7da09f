// How products and lookups take packed numbers: as one operator of ONNX Runtime, as two of 4 bits
// each, with offsets that a second product adds, or by DequantizeLinear.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fairlead/base/half.h"
#include "fairlead/quant/matrices.h"

namespace fairlead::quant {
namespace {

using onnx::TensorId;

constexpr std::string_view kContrib = "com.microsoft";

using Bytes = std::shared_ptr<std::vector<std::byte>>;

// [rows, columns] of elements of `size` bytes, as [columns, rows].
Bytes transposed(const std::vector<std::byte>& from, std::int64_t rows, std::int64_t columns,
                 std::size_t size) {
  auto to = std::make_shared<std::vector<std::byte>>(from.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      std::copy_n(from.data() + static_cast<std::size_t>(r * columns + c) * size, size,
                  to->data() + static_cast<std::size_t>(c * rows + r) * size);
    }
  }
  return to;
}

// Halves of bytes [rows, columns], `stride` of them to a row, as [columns, rows], changed by
// `flip`.
Bytes transposed_halves(const std::vector<std::byte>& from, std::int64_t rows, std::int64_t columns,
                        std::int64_t stride, int flip) {
  auto to =
      std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(rows * columns + 1) / 2);
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t k = r * stride + c;
      const int byte = std::to_integer<int>(from[static_cast<std::size_t>(k / 2)]);
      const int half = (k % 2 == 0 ? byte & 15 : byte >> 4) ^ flip;
      put_integer(to->data(), static_cast<std::size_t>(c * rows + r), half, 4);
    }
  }
  return to;
}

Bytes as_halves(const std::vector<std::byte>& floats) {
  auto made = std::make_shared<std::vector<std::byte>>(floats.size() / 2);
  for (std::size_t k = 0; k < floats.size() / sizeof(float); ++k) {
    float value = 0;
    std::memcpy(&value, floats.data() + k * sizeof(float), sizeof(float));
    const std::uint16_t half = half_from_float(value);
    std::memcpy(made->data() + k * sizeof(half), &half, sizeof(half));
  }
  return made;
}

// Halves of the bytes of each row, those above `shift` bits, two to a byte; the last may be alone.
Bytes half_bytes(const std::vector<std::byte>& from, std::int64_t rows, int shift) {
  const std::size_t columns = from.size() / static_cast<std::size_t>(rows);
  const std::size_t row_bytes = (columns + 1) / 2;
  auto made = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(rows) * row_bytes);
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
    for (std::size_t k = 0; k < columns; ++k) {
      const int half = (std::to_integer<int>(from[r * columns + k]) >> shift) & 15;
      put_integer(made->data() + r * row_bytes, k, half, 4);
    }
  }
  return made;
}

}  // namespace

void Matrices::pack_for_onnxruntime(TensorId id, Weight& weight, const Packed& packed,
                                    const Format& format, bool int8_activations) {
  model_.uses_contrib_ops = true;
  const std::string name = this->name(id);
  const std::vector<Part> parts = parts_of(name, packed, format, int8_activations);
  TensorId offsets = onnx::kAbsent, turned = onnx::kAbsent;
  if (packed.offsets && !weight.lookups.empty()) {
    offsets = add(name + ".offsets", Dtype::kFloat32, {packed.rows, packed.blocks}, packed.offsets);
  }
  if (packed.offsets && !weight.products.empty()) {
    if (offsets == onnx::kAbsent) {
      turned = add(name + ".offsets", Dtype::kFloat32, {packed.blocks, packed.rows},
                   transposed(*packed.offsets, packed.rows, packed.blocks, sizeof(float)));
    } else {
      turned = made_by(before_, "Transpose", name + ".offsets.columns", {offsets},
                       {{"perm", std::vector<std::int64_t>{1, 0}}});
    }
  }
  for (const onnx::Node* node : weight.products) {
    Replacement made = {{}, node->inputs[0], packed.blocks, format.block};
    std::vector<TensorId> terms;
    for (const Part& part : parts) {
      terms.push_back(made_by(made.nodes, "MatMulNBits", node->name + part.suffix,
                              part.with({node->inputs[0], part.values}),
                              {{"K", packed.columns},
                               {"N", packed.rows},
                               {"bits", std::int64_t{part.bits}},
                               {"block_size", std::int64_t{format.block}},
                               {"accuracy_level", std::int64_t{int8_activations ? 4 : 0}}}));
    }
    if (turned != onnx::kAbsent) {
      terms.push_back(made_by(made.nodes, "MatMul", node->name + ".offset", {kBlockSums, turned}));
    }
    sum_of(terms, node->name, made.nodes);
    replace(*node, std::move(made));
  }
  std::vector<TensorId> looked_up;  // one reshaped table of each part, whoever looks rows up
  for (const Part& part : parts) {
    if (weight.lookups.empty()) break;
    looked_up.push_back(reshaped(name + part.suffix + ".rows", part.values, Dtype::kUint8,
                                 {packed.rows, packed.blocks * format.block * part.bits / 8},
                                 before_));
  }
  for (const onnx::Node* node : weight.lookups) {
    Replacement made;
    std::vector<TensorId> terms;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const Part& part = parts[k];
      terms.push_back(made_by(made.nodes, "GatherBlockQuantized", node->name + part.suffix,
                              part.with({looked_up[k], node->inputs[1]}),
                              {{"gather_axis", std::int64_t{0}},
                               {"quantize_axis", std::int64_t{1}},
                               {"block_size", std::int64_t{format.block}},
                               {"bits", std::int64_t{part.bits}}}));
    }
    const TensorId sum = sum_of(terms, node->name, made.nodes);
    if (offsets != onnx::kAbsent) {
      const TensorId found =
          made_by(made.nodes, "Gather", node->name + ".offsets", {offsets, node->inputs[1]});
      add_by_block(node->name, sum, found, packed.blocks, format.block, made.nodes);
    }
    replace(*node, std::move(made));
  }
}

// The kernel of 8 bits is slow where activations stay floats, twenty times as slow as that of 4:
// s * (q - z) = 16 s * (high half of q - that of z) + s * (low half of q - that of z).
std::vector<Matrices::Part> Matrices::parts_of(const std::string& name, const Packed& packed,
                                               const Format& format, bool int8_activations) {
  const std::vector<std::int64_t> by_block = {packed.rows, packed.blocks};
  TensorId scales = onnx::kAbsent;
  if (packed.scales_fit_half) {
    scales = add(name + ".scales", Dtype::kFloat16, by_block, as_halves(*packed.scales));
    scales = made_by(before_, "Cast", name + ".scales.floats", {scales}, {{"to", std::int64_t{1}}});
  } else {
    scales = add(name + ".scales", Dtype::kFloat32, by_block, packed.scales);
  }
  const auto part = [&](const char* suffix, int bits, const Bytes& values, const Bytes& zeros,
                        TensorId with) {
    Part made = {suffix, bits, onnx::kAbsent, with, onnx::kAbsent};
    made.values = add(name + suffix, Dtype::kUint8,
                      {packed.rows, packed.blocks, format.block * bits / 8}, values);
    if (zeros) {
      made.zeros = add(name + suffix + ".zero_points", Dtype::kUint8,
                       {packed.rows, (packed.blocks * bits + 7) / 8}, zeros);
    }
    return made;
  };
  if (format.bits == 4 || int8_activations) {
    return {part(".packed", format.bits, packed.values, packed.zero_points, scales)};
  }
  const TensorId large = made_by(before_, "Mul", name + ".scales.high",
                                 {scales, constant(name + ".scales.sixteen", 16.0F)});
  // Without zero points that of q is 128: the kernel's own in the high half, none in the low one.
  const Bytes& zeros = packed.zero_points;
  const std::int64_t row_bytes = (packed.blocks + 1) / 2;
  const Bytes low_zeros = zeros ? half_bytes(*zeros, packed.rows, 0)
                                : std::make_shared<std::vector<std::byte>>(
                                      static_cast<std::size_t>(packed.rows * row_bytes));
  const std::int64_t rows = packed.rows * packed.blocks;
  return {part(".high", 4, half_bytes(*packed.values, rows, 4),
               zeros ? half_bytes(*zeros, packed.rows, 4) : nullptr, large),
          part(".low", 4, half_bytes(*packed.values, rows, 0), low_zeros, scales)};
}

// A lookup gives [..., columns]; its offsets are [..., blocks].
void Matrices::add_by_block(const std::string& name, TensorId rows, TensorId offsets,
                            std::int64_t blocks, std::int64_t block,
                            std::vector<onnx::Node>& nodes) {
  const TensorId shape = made_by(nodes, "Shape", name + ".shape", {rows}, {}, Dtype::kInt64);
  const TensorId by_block =
      reshaped(name + ".blocks", rows, Dtype::kFloat32, {-1, blocks, block}, nodes);
  const TensorId flat =
      reshaped(name + ".block_offsets", offsets, Dtype::kFloat32, {-1, blocks, 1}, nodes);
  const TensorId sum = made_by(nodes, "Add", name + ".with_offsets", {by_block, flat});
  made_by(nodes, "Reshape", name + ".values", {sum, shape});
}

TensorId Matrices::sum_of(const std::vector<TensorId>& terms, const std::string& name,
                          std::vector<onnx::Node>& nodes) {
  TensorId sum = terms[0];
  for (std::size_t k = 1; k < terms.size(); ++k) {
    sum = made_by(nodes, "Add", name + ".sum" + std::to_string(k), {sum, terms[k]});
  }
  return sum;
}

// The last of the nodes gives what this one gave.
void Matrices::replace(const onnx::Node& node, Replacement made) {
  for (onnx::Node& each : made.nodes) {
    each.module = node.module;
    each.source = node.source;
  }
  made.nodes.back().outputs = node.outputs;
  replaced_.emplace(node.outputs[0], std::move(made));
}

// Integers [columns, rows] with blocks along the columns, and a scale for each.
void Matrices::pack_in_standard_operators(TensorId id, Weight& weight, const Packed& packed,
                                          const Format& format) {
  const std::string name = this->name(id);
  const std::vector<std::int64_t> by_block = {packed.blocks, packed.rows};
  const std::vector<std::int64_t> by_column = {packed.columns, packed.rows};
  const TensorId scales =
      add(name + ".scales", Dtype::kFloat32, by_block,
          transposed(*packed.scales, packed.rows, packed.blocks, sizeof(float)));
  std::vector<TensorId> inputs = {onnx::kAbsent, scales};
  if (format.bits == 4) {
    // Without zero points integers are signed, and zero is zero.
    const bool is_signed = !packed.zero_points;
    const onnx::FourBits kind = is_signed ? onnx::FourBits::kInt4 : onnx::FourBits::kUint4;
    inputs[0] = add(name + ".packed", Dtype::kUint8, by_column,
                    transposed_halves(*packed.values, packed.rows, packed.columns,
                                      packed.blocks * format.block, is_signed ? 8 : 0),
                    kind);
    if (!is_signed) {
      inputs.push_back(add(name + ".zero_points", Dtype::kUint8, by_block,
                           transposed_halves(*packed.zero_points, packed.rows, packed.blocks,
                                             (packed.blocks + 1) / 2 * 2, 0),
                           kind));
    }
  } else {
    inputs[0] = add(name + ".packed", Dtype::kUint8, by_column,
                    transposed(*packed.values, packed.rows, packed.columns, 1));
    auto zero = packed.zero_points
                    ? transposed(*packed.zero_points, packed.rows, packed.blocks, 1)
                    : std::make_shared<std::vector<std::byte>>(
                          static_cast<std::size_t>(packed.rows * packed.blocks), std::byte{128});
    inputs.push_back(add(name + ".zero_points", Dtype::kUint8, by_block, zero));
  }
  const TensorId floats =
      made_by(before_, "DequantizeLinear", name + ".floats", inputs,
              {{"axis", std::int64_t{0}}, {"block_size", std::int64_t{format.block}}});
  for (onnx::Node* product : weight.products) product->inputs[1] = floats;
}

TensorId Matrices::reshaped(const std::string& name, TensorId from, Dtype dtype,
                            const std::vector<std::int64_t>& shape,
                            std::vector<onnx::Node>& nodes) {
  return made_by(nodes, "Reshape", name, {from, numbers(name + ".shape", shape)}, {}, dtype);
}

TensorId Matrices::numbers(const std::string& name, const std::vector<std::int64_t>& values) {
  TensorId& id = numbers_.try_emplace(values, onnx::kAbsent).first->second;
  if (id == onnx::kAbsent) {
    auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(values[0]));
    std::memcpy(bytes->data(), values.data(), bytes->size());
    id = add(name, Dtype::kInt64, {static_cast<std::int64_t>(values.size())}, bytes);
  }
  return id;
}

TensorId Matrices::constant(const std::string& name, float value) {
  auto bytes = std::make_shared<std::vector<std::byte>>(sizeof(value));
  std::memcpy(bytes->data(), &value, sizeof(value));
  TensorId& id = constants_.try_emplace(value, onnx::kAbsent).first->second;
  if (id == onnx::kAbsent) id = add(name, Dtype::kFloat32, {}, bytes);
  return id;
}

TensorId Matrices::made_by(std::vector<onnx::Node>& nodes, std::string op, const std::string& name,
                           std::vector<TensorId> inputs, std::vector<onnx::Attribute> attributes,
                           Dtype dtype) {
  onnx::Node node;
  if (op == "MatMulNBits" || op == "GatherBlockQuantized") node.domain = kContrib;
  node.op = std::move(op);
  node.name = name;
  node.inputs = std::move(inputs);
  node.outputs = {new_tensor(name, dtype)};
  node.attributes = std::move(attributes);
  nodes.push_back(std::move(node));
  return nodes.back().outputs[0];
}

TensorId Matrices::new_tensor(const std::string& name, Dtype dtype) {
  model_.tensors.push_back({name, dtype, std::nullopt});
  return static_cast<TensorId>(model_.tensors.size() - 1);
}

TensorId Matrices::add(const std::string& name, Dtype dtype, std::vector<std::int64_t> dims,
                       const Bytes& bytes, onnx::FourBits four_bits) {
  const TensorId id = new_tensor(name, dtype);
  added_.push_back({id, {dtype, std::move(dims), {}, bytes->data(), bytes, four_bits}});
  return id;
}

}  // namespace fairlead::quant
