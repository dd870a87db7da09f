// Takes initializers apart into what lies in files.
#include "fairlead/onnx/references.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "fairlead/onnx/tensor_stream.h"

namespace fairlead::onnx {
namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t product(const Sizes& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

// The axes from the slowest to the fastest in memory, where the elements lie side by side in that
// order: (1, 0) for a transposed matrix.
std::optional<Sizes> order_in_memory(const TensorData& data) {
  Sizes axes(data.dims.size());
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  if (data.strides.empty()) return axes;
  const auto stride = [&](std::int64_t axis) {
    return data.strides[static_cast<std::size_t>(axis)];
  };
  const auto size = [&](std::int64_t axis) { return data.dims[static_cast<std::size_t>(axis)]; };
  // Where an axis of one element lies says nothing: those come first.
  const auto behind = std::stable_partition(axes.begin(), axes.end(),
                                            [&](std::int64_t axis) { return size(axis) == 1; });
  const auto outer = [&](std::int64_t a, std::int64_t b) { return stride(a) > stride(b); };
  const bool as_given = std::is_sorted(behind, axes.end(), outer);
  std::stable_sort(behind, axes.end(), outer);
  std::int64_t step = 1;
  for (auto it = axes.end(); it != behind;) {
    --it;
    if (stride(*it) != step) return std::nullopt;
    step *= size(*it);
  }
  if (as_given) std::ranges::sort(axes);
  return axes;
}

TensorData whole_numbers(const Sizes& values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(std::int64_t));
  std::memcpy(bytes->data(), values.data(), bytes->size());
  TensorData data;
  data.dtype = Dtype::kInt64;
  data.dims = {static_cast<std::int64_t>(values.size())};
  data.data = bytes->data();
  data.owned = std::move(bytes);
  return data;
}

class References {
 public:
  References(Model& model, const FileRegions& files) : model_(model), files_(files) {}

  void run() {
    std::vector<Initializer> all = std::exchange(model_.graph.initializers, {});
    for (Initializer& each : all) take(std::move(each));
    auto& nodes = model_.graph.nodes;
    nodes.insert(nodes.begin(), std::make_move_iterator(nodes_.begin()),
                 std::make_move_iterator(nodes_.end()));
  }

 private:
  void keep(TensorId tensor, TensorData data) {
    model_.graph.initializers.push_back({tensor, std::move(data)});
  }

  [[nodiscard]] const std::string& name_of(TensorId id) const {
    return model_.tensors[static_cast<std::size_t>(id)].name;
  }

  TensorId add_tensor(std::string name, Dtype dtype) {
    model_.tensors.push_back({std::move(name), dtype, {}});
    return static_cast<TensorId>(model_.tensors.size() - 1);
  }

  void add_node(const std::string& op, std::vector<TensorId> inputs, TensorId output,
                std::vector<Attribute> attributes) {
    Node node;
    node.op = op;
    node.name = "/" + name_of(output) + "/" + op;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    node.attributes = std::move(attributes);
    nodes_.push_back(std::move(node));
  }

  void take(Initializer initializer) {
    TensorData& data = initializer.data;
    const bool plain = !data.owned && data.four_bits == FourBits::kNo && product(data.dims) > 0;
    const std::optional<Sizes> order =
        plain && files_.holds(first_byte(data)) ? order_in_memory(data) : std::nullopt;
    if (!order) return keep(initializer.tensor, std::move(data));
    const std::vector<FilePart> parts = files_.find(first_byte(data), stored_bytes(data));
    if (parts.empty()) return keep(initializer.tensor, std::move(data));
    TensorId made = initializer.tensor;
    Node transpose;
    const bool turned = !std::ranges::is_sorted(*order);
    if (turned) {
      // The node comes after those that make what it turns.
      Sizes permutation(order->size()), dims;
      for (std::size_t k = 0; k < order->size(); ++k) {
        permutation[static_cast<std::size_t>((*order)[k])] = static_cast<std::int64_t>(k);
        dims.push_back(data.dims[static_cast<std::size_t>((*order)[k])]);
      }
      std::string name = std::exchange(model_.tensors[static_cast<std::size_t>(made)].name,
                                       name_of(made) + "/transposed");
      made = add_tensor(std::move(name), data.dtype);
      add_node("Transpose", {made}, initializer.tensor, {{"perm", std::move(permutation)}});
      transpose = std::move(nodes_.back());
      nodes_.pop_back();
      data.dims = std::move(dims);
    }
    data.strides.clear();
    parts.size() == 1 ? keep(made, std::move(data)) : join(made, data, parts);
    if (turned) nodes_.push_back(std::move(transpose));
  }

  // The last dims that every part has whole.
  [[nodiscard]] static std::size_t first_whole(const TensorData& data,
                                               const std::vector<FilePart>& parts) {
    auto bytes = static_cast<std::int64_t>(dtype_size(data.dtype));
    std::size_t axis = data.dims.size();
    while (axis > 1) {
      const std::int64_t more = bytes * data.dims[axis - 1];
      if (std::ranges::any_of(parts, [&](const FilePart& p) { return p.bytes % more != 0; })) break;
      bytes = more;
      --axis;
    }
    return axis;
  }

  void join(TensorId made, const TensorData& data, const std::vector<FilePart>& parts) {
    const auto element = static_cast<std::int64_t>(dtype_size(data.dtype));
    if (std::ranges::any_of(parts, [&](const FilePart& p) { return p.bytes % element != 0; })) {
      return keep(made, data);
    }
    const auto axis = static_cast<std::ptrdiff_t>(first_whole(data, parts));
    const Sizes rest(data.dims.begin() + axis, data.dims.end());
    const std::int64_t row = product(rest) * element;
    const std::string name = name_of(made);
    TensorData whole;
    whole.dtype = data.dtype;
    whole.dims = {stored_bytes(data) / row};
    whole.dims.insert(whole.dims.end(), rest.begin(), rest.end());
    whole.data = first_byte(data);
    const TensorId pieces = add_tensor(name, data.dtype);
    model_.graph.initializers.push_back(
        {pieces, std::move(whole), static_cast<std::int64_t>(parts.size())});
    const bool shaped = axis == 1;
    const TensorId joined = shaped ? made : add_tensor(name + "/joined", data.dtype);
    add_node("Concat", {pieces}, joined, {{"axis", std::int64_t{0}}});
    if (shaped) return;
    const TensorId sizes = add_tensor(name + "/shape", Dtype::kInt64);
    keep(sizes, whole_numbers(data.dims));
    add_node("Reshape", {joined, sizes}, made, {});
  }

  Model& model_;
  const FileRegions& files_;
  std::vector<Node> nodes_;
};

}  // namespace

void refer_to_files(Model& model, const FileRegions& files) {
  if (!files.empty()) References(model, files).run();
}

}  // namespace fairlead::onnx
