// Tests of caches that are one buffer: where the length of the past is read, and who prevents it.
#include "fairlead/onnx/shared_cache.h"

#include <doctest/doctest.h>

using namespace fairlead;
using namespace fairlead::onnx;

namespace {

// One layer: x [batch, new], mask [batch, new + past], a cache [batch, 2, past, 8], whose length is
// read once.
struct Decoder {
  Model model;
  Expr batch, fresh, past;
  TensorId x, mask, key, value;

  Decoder() {
    model.pool = std::make_shared<ExprPool>();
    batch = model.pool->symbol("batch");
    fresh = model.pool->symbol("new");
    past = model.pool->symbol("past");
    const Expr heads = model.pool->constant(2), size = model.pool->constant(8);
    x = tensor("x", {{batch, fresh}});
    mask = tensor("mask", {{batch, model.pool->add(fresh, past)}});
    key = tensor("past.key", {{batch, heads, past, size}});
    value = tensor("past.value", {{batch, heads, past, size}});
    model.graph.inputs = {x, mask, key, value};
    const TensorId length = tensor("length"), y = tensor("y");
    const TensorId new_key = tensor("present.key"), new_value = tensor("present.value");
    add("Shape", {key}, {length}, {{"start", std::int64_t{2}}, {"end", std::int64_t{3}}});
    add("GroupQueryAttention", {x, kAbsent, kAbsent, key, value, length}, {y, new_key, new_value});
    model.graph.outputs = {y, new_key, new_value};
  }

  TensorId tensor(const std::string& name, std::optional<std::vector<Expr>> shape = std::nullopt) {
    model.tensors.push_back({name, Dtype::kFloat32, std::move(shape)});
    return static_cast<TensorId>(model.tensors.size() - 1);
  }

  void add(std::string op, std::vector<TensorId> inputs, std::vector<TensorId> outputs,
           std::vector<Attribute> attributes = {}) {
    Node node;
    node.op = std::move(op);
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.attributes = std::move(attributes);
    model.graph.nodes.push_back(std::move(node));
  }
};

}  // namespace

TEST_CASE("the length of a shared past is that of the mask less the new tokens") {
  Decoder decoder;
  const SharedCache found = share_cache(decoder.model);
  CHECK(found.why.empty());
  CHECK(found.layers == 1);
  const auto& nodes = decoder.model.graph.nodes;
  REQUIRE(nodes.size() == 4);
  CHECK(nodes[0].inputs == std::vector<TensorId>{decoder.mask});
  CHECK(nodes[1].inputs == std::vector<TensorId>{decoder.x});
  CHECK(nodes[2].op == "Sub");
  CHECK(nodes[2].inputs == std::vector<TensorId>{nodes[0].outputs[0], nodes[1].outputs[0]});
}

TEST_CASE("a past that others read, or whose length is nowhere else, is not shared") {
  Decoder read;
  read.add("Neg", {read.key}, {read.tensor("negative")});
  CHECK(share_cache(read.model).why == "past.key is read by Neg too");
  Decoder alone;
  alone.model.tensors[static_cast<std::size_t>(alone.mask)].shape = {alone.batch, alone.fresh};
  CHECK(share_cache(alone.model).why == "no input is as long as the cache with the new tokens");
  Decoder other;
  other.model.tensors[static_cast<std::size_t>(other.mask)].shape = {other.batch, other.past};
  CHECK(share_cache(other.model).why ==
        "mask is as long as the cache, and is none that GroupQueryAttention reads");
  Decoder hidden;
  hidden.model.graph.outputs.pop_back();
  CHECK(share_cache(hidden.model).why.starts_with("what  takes as past is no input"));
  Decoder none;
  none.model.graph.nodes.pop_back();
  CHECK(share_cache(none.model).why == "no GroupQueryAttention reads a cache");
}

TEST_CASE("a cache in int8 has scales of its own for keys and values") {
  Decoder decoder;
  CHECK(share_cache(decoder.model).why.empty());
  const auto pairs = cache_pairs(decoder.model);
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].first == decoder.key);
  const std::vector<float> keys(16, 0.5F), values(16, 0.25F);
  int8_cache(decoder.model, {{"past.key", keys}, {"past.value", values}});
  const Node& node = decoder.model.graph.nodes.back();
  REQUIRE(node.inputs.size() == 14);
  CHECK(decoder.model.tensors[static_cast<std::size_t>(decoder.key)].dtype == Dtype::kInt8);
  CHECK(decoder.model.tensors[static_cast<std::size_t>(pairs[1].second)].dtype == Dtype::kInt8);
  REQUIRE(decoder.model.graph.initializers.size() == 2);
  CHECK(decoder.model.graph.initializers[1].tensor == node.inputs[13]);
  CHECK(decoder.model.graph.initializers[1].data.dims == std::vector<std::int64_t>{16});
}

TEST_CASE("a static cache is written by TensorScatter, and its mask hides the rest") {
  Decoder decoder;
  Model& model = decoder.model;
  model.graph.nodes.clear();
  model.graph.outputs.clear();
  const TensorId new_key = decoder.tensor("new.key"), new_value = decoder.tensor("new.value");
  const TensorId keys = decoder.tensor("present.0"), values = decoder.tensor("present.1");
  const TensorId hides = decoder.tensor("hides", model.tensors[2].shape), y = decoder.tensor("out");
  decoder.add("Concat", {decoder.key, new_key}, {keys}, {{"axis", std::int64_t{2}}});
  decoder.add("Concat", {decoder.value, new_value}, {values}, {{"axis", std::int64_t{-2}}});
  decoder.add("Attention", {decoder.x, keys, values, hides}, {y});
  model.graph.outputs = {y, keys, values};
  Model causal = model;
  causal.graph.nodes[2].attributes = {{"is_causal", std::int64_t{1}}};
  CHECK(static_cache(causal).why == "present.1 is read by Attention");
  CHECK(causal.graph.nodes[0].op == "Concat");
  const SharedCache found = static_cache(model);
  CHECK(found.why.empty());
  CHECK(found.layers == 1);
  CHECK(found.mask == "mask");
  CHECK(found.mask_axis == 1);
  const Node& attention = model.graph.nodes.back();
  CHECK(attention.inputs[3] != hides);
  CHECK(cache_pairs(model).size() == 2);
}
