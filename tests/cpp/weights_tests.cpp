// Tests of weights as inputs: which initializers become inputs, in which shape, and what stays.
#include "fairlead/onnx/weights.h"

#include <doctest/doctest.h>

#include <variant>

#include "onnx_models.h"

using namespace fairlead;
using namespace fairlead::onnx;
using fairlead::test::owned_tensor;

namespace {

// Three initializers over one memory of 2 x 3: as it is, transposed, and its last two columns; and
// a constant.
Model model() {
  Model model;
  model.pool = std::make_shared<ExprPool>();
  const TensorData whole = owned_tensor<float>(Dtype::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6});
  TensorData transposed = whole;
  transposed.dims = {3, 2};
  transposed.strides = {1, 3};
  TensorData part = whole;
  part.dims = {2, 2};
  part.strides = {3, 1};
  const std::vector<std::pair<std::string, TensorData>> rows = {{"plain.weight", whole},
                                                                {"linear.weight", transposed},
                                                                {"part.weight", part},
                                                                {"one", whole}};
  for (const auto& [name, data] : rows) {
    model.graph.initializers.push_back({static_cast<TensorId>(model.tensors.size()), data});
    model.tensors.push_back({name, Dtype::kFloat32, {}});
  }
  return model;
}

const std::vector<Weight> kWeights = {
    {"plain.weight", {2, 3}}, {"linear.weight", {2, 3}}, {"part.weight", {2, 3}}, {"absent", {1}}};

std::vector<std::string> names(const Model& model, const std::vector<TensorId>& ids) {
  std::vector<std::string> found;
  for (const TensorId id : ids) found.push_back(model.tensors[static_cast<std::size_t>(id)].name);
  return found;
}

}  // namespace

TEST_CASE("weights become inputs in their owner's shape, and a transposed one gets a Transpose") {
  const Model given = weights_as_inputs(model(), kWeights, false);
  CHECK(names(given, given.graph.inputs) ==
        std::vector<std::string>{"plain.weight", "linear.weight"});
  REQUIRE(given.graph.initializers.size() == 2);  // the part of a weight, and what is no weight
  CHECK(given.tensors[static_cast<std::size_t>(given.graph.initializers[0].tensor)].name ==
        "part.weight");
  REQUIRE(given.graph.nodes.size() == 1);
  const Node& node = given.graph.nodes[0];
  CHECK(node.op == "Transpose");
  CHECK(names(given, node.inputs) == std::vector<std::string>{"linear.weight"});
  CHECK(names(given, node.outputs) == std::vector<std::string>{"linear.weight/transposed"});
  CHECK(node.outputs[0] == 1);  // the tensor that the other nodes use
  CHECK(std::get<std::vector<std::int64_t>>(node.attributes[0].value) ==
        std::vector<std::int64_t>{1, 0});
  for (const TensorId id : given.graph.inputs) {
    const auto& shape = given.tensors[static_cast<std::size_t>(id)].shape;
    REQUIRE(shape.has_value());
    CHECK((*shape)[0]->value == 2);
    CHECK((*shape)[1]->value == 3);
  }
}

TEST_CASE("kept values stay initializers, in the order of their owner") {
  const Model kept = weights_as_inputs(model(), kWeights, true);
  CHECK(kept.graph.inputs.size() == 2);
  REQUIRE(kept.graph.initializers.size() == 4);
  const TensorData& linear = kept.graph.initializers[1].data;
  CHECK(linear.dims == std::vector<std::int64_t>{2, 3});
  CHECK(linear.strides.empty());
  CHECK(kept.graph.initializers[1].tensor == kept.graph.inputs[1]);
}
