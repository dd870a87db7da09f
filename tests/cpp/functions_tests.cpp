// Tests of repeated modules as functions: what is one, what stays outside, what is none.
#include "fairlead/onnx/functions.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace fairlead;
using namespace fairlead::onnx;

namespace {

struct Layers {
  Model model;

  TensorId tensor(const std::string& name, Dtype dtype = Dtype::kFloat32) {
    model.tensors.push_back({name, dtype, std::nullopt});
    return static_cast<TensorId>(model.tensors.size() - 1);
  }

  TensorId weight(const std::string& name, std::vector<std::int64_t> dims) {
    std::size_t count = 1;
    for (const std::int64_t dim : dims) count *= static_cast<std::size_t>(dim);
    TensorData data;
    data.dims = std::move(dims);
    data.owned = std::make_shared<std::vector<std::byte>>(4 * count);
    data.data = data.owned->data();
    model.graph.initializers.push_back({tensor(name), std::move(data)});
    return model.graph.initializers.back().tensor;
  }

  TensorId add(const std::string& module, std::string op, std::vector<TensorId> inputs,
               std::vector<Attribute> attributes = {}) {
    Node node;
    node.op = std::move(op);
    node.module = module;
    node.inputs = std::move(inputs);
    node.outputs = {tensor(module + "/" + std::to_string(model.tensors.size()))};
    node.attributes = std::move(attributes);
    model.graph.nodes.push_back(node);
    return node.outputs[0];
  }
};

}  // namespace

TEST_CASE("layers that compute the same are calls of one function") {
  Layers made;
  TensorId x = made.tensor("x");
  made.model.graph.inputs = {x};
  const TensorId one = made.weight("one", {1});
  TensorId sizes = kAbsent;
  for (int k = 0; k < 4; ++k) {
    const std::string path = "model.layers." + std::to_string(k);
    // What the first computes for all stays outside.
    if (k == 0) sizes = made.add(path, "Shape", {made.add(path, "Neg", {x})});
    const TensorId y = made.add(path + ".up", "MatMul", {x, made.weight(path + ".up.w", {8, 8})});
    x = made.add(path, "Reshape", {made.add(path, "Add", {y, one}), sizes});
  }
  made.model.graph.outputs = {x};
  const std::vector<Function> functions = fold_functions(made.model, {{"model.layers.1", "Layer"}});
  REQUIRE(functions.size() == 1);
  CHECK(functions[0].name == "Layer");
  CHECK(functions[0].modules == "model.layers.*");
  CHECK(functions[0].calls == 4);
  CHECK(functions[0].inputs.size() == 3);  // x, the weight, the sizes; not the small constant
  CHECK(functions[0].outputs.size() == 1);
  CHECK(functions[0].nodes.size() == 4);
  CHECK(functions[0].nodes[0].op == "Constant");
  const auto& nodes = made.model.graph.nodes;
  REQUIRE(nodes.size() == 6);
  CHECK(nodes[0].op == "Neg");
  CHECK(nodes[1].op == "Shape");
  for (std::size_t k = 2; k < 6; ++k) CHECK(nodes[k].op == "Layer");
  CHECK(nodes[5].outputs[0] == made.model.graph.outputs[0]);
  CHECK(made.model.graph.initializers.size() == 4);
}

TEST_CASE("layers that differ are none") {
  Layers made;
  TensorId x = made.tensor("x");
  made.model.graph.inputs = {x};
  for (int k = 0; k < 3; ++k) {
    const std::string path = "layers." + std::to_string(k);
    x = made.add(path, "Neg", {made.add(path, "Abs", {x})});
    // Another attribute, another weight, another operator.
    if (k == 0) x = made.add(path, "Softmax", {x}, {{"axis", std::int64_t{0}}});
    if (k == 1) x = made.add(path, "Softmax", {x}, {{"axis", std::int64_t{1}}});
    if (k == 2) x = made.add(path, "Relu", {x});
  }
  made.model.graph.outputs = {x};
  CHECK(fold_functions(made.model, {}).empty());
  CHECK(made.model.graph.nodes.size() == 9);
}

TEST_CASE("a value that leaves a layer and comes back keeps the layer as it is") {
  Layers made;
  TensorId x = made.tensor("x");
  made.model.graph.inputs = {x};
  for (int k = 0; k < 2; ++k) {
    const std::string path = "layers." + std::to_string(k);
    const TensorId y = made.add(path, "Neg", {made.add(path, "Abs", {x})});
    x = made.add(path, "Add", {y, made.add("", "Relu", {y})});
  }
  made.model.graph.outputs = {x};
  CHECK(fold_functions(made.model, {}).empty());
}
