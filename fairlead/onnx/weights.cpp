// Turns initializers into inputs.
#include "fairlead/onnx/weights.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace fairlead::onnx {
namespace {

using Axes = std::vector<std::int64_t>;

// The order of axes in which the bytes lie as its owner has them; none where they do not.
std::optional<Axes> order_in_memory(const TensorData& data, const Axes& owner_dims) {
  Axes axes(data.dims.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (data.strides.empty()) {
    return data.dims == owner_dims ? std::optional(axes) : std::nullopt;
  }
  const auto at = [](const Axes& values, std::int64_t k) {
    return values[static_cast<std::size_t>(k)];
  };
  const auto lies_so = [&](const Axes& order) {
    std::int64_t step = 1;
    for (std::size_t k = order.size(); k-- > 0;) {
      const std::int64_t size = at(data.dims, order[k]);
      if (k >= owner_dims.size() || size != owner_dims[k]) return false;
      if (size != 1 && at(data.strides, order[k]) != step) return false;
      step *= size;
    }
    return order.size() == owner_dims.size();
  };
  if (lies_so(axes)) return axes;
  std::ranges::stable_sort(axes, [&](std::int64_t a, std::int64_t b) {
    return at(data.strides, a) > at(data.strides, b);
  });
  return lies_so(axes) ? std::optional(axes) : std::nullopt;
}

}  // namespace

Model weights_as_inputs(Model model, std::span<const Weight> weights, bool keep_values) {
  std::unordered_map<std::string_view, const Weight*> by_name;
  for (const Weight& weight : weights) by_name.emplace(weight.name, &weight);
  if (model.pool == nullptr) model.pool = std::make_shared<ExprPool>();

  std::vector<Initializer> kept;
  std::vector<Node> transposes;
  for (Initializer& initializer : model.graph.initializers) {
    const auto found =
        by_name.find(model.tensors[static_cast<std::size_t>(initializer.tensor)].name);
    const std::optional<Axes> order = found == by_name.end() || initializer.pieces > 1
                                          ? std::nullopt
                                          : order_in_memory(initializer.data, found->second->dims);
    if (!order) {
      kept.push_back(std::move(initializer));
      continue;
    }
    const Weight& weight = *found->second;
    if (!std::ranges::is_sorted(*order)) {
      const TensorId transposed = initializer.tensor;
      initializer.tensor = static_cast<TensorId>(model.tensors.size());
      model.tensors.push_back({weight.name, initializer.data.dtype, {}});
      model.tensors[static_cast<std::size_t>(transposed)].name += "/transposed";
      Axes permutation(order->size());
      for (std::size_t k = 0; k < order->size(); ++k) {
        permutation[static_cast<std::size_t>((*order)[k])] = static_cast<std::int64_t>(k);
      }
      Node node;
      node.op = "Transpose";
      node.name = "/" + weight.name + "/Transpose";
      node.inputs = {initializer.tensor};
      node.outputs = {transposed};
      node.attributes = {{"perm", std::move(permutation)}};
      transposes.push_back(std::move(node));
      initializer.data.dims = weight.dims;
      initializer.data.strides.clear();
    }
    std::vector<Expr> shape;
    for (const std::int64_t dim : weight.dims) shape.push_back(model.pool->constant(dim));
    model.tensors[static_cast<std::size_t>(initializer.tensor)].shape = std::move(shape);
    model.graph.inputs.push_back(initializer.tensor);
    if (keep_values) kept.push_back(std::move(initializer));
  }
  model.graph.initializers = std::move(kept);
  model.graph.nodes.insert(model.graph.nodes.begin(), std::make_move_iterator(transposes.begin()),
                           std::make_move_iterator(transposes.end()));
  return model;
}

}  // namespace fairlead::onnx
