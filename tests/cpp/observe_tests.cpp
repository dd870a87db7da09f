// Tests of the store of calls and of what is inferred from them.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/observe/calls.h"
#include "fairlead/observe/infer.h"

using fairlead::Calls;
using fairlead::Dtype;
using fairlead::Error;
using fairlead::Inference;
using fairlead::kMissing;
using fairlead::Tree;
using fairlead::TreeBuilder;

namespace {

using Keys = std::vector<std::string>;
using Shape = std::vector<std::int64_t>;

struct Arg {
  std::string name;
  Shape shape;
};

void add(Calls& calls, const std::vector<Arg>& args, Dtype dtype = Dtype::kFloat32) {
  TreeBuilder b;
  Keys keys;
  for (const Arg& arg : args) {
    calls.add_tensor(dtype, arg.shape, {}, "cpu");
    b.tensor();
    keys.push_back(arg.name);
  }
  b.dict(keys);
  calls.add_call(b.finish());
}

void add_constant(Calls& calls, std::int64_t value) {
  TreeBuilder b;
  calls.add_tensor(Dtype::kFloat32, Shape{2}, {}, "cpu");
  b.tensor();
  b.integer(value);
  b.dict(Keys{"x", "n"});
  calls.add_call(b.finish());
}

std::string dim_name(const Inference& inference, std::uint32_t dim) {
  const auto& d = inference.dims[dim];
  return inference.slots[d.slot].path + "." + std::to_string(d.axis);
}

Keys groups(const Inference& inference) {
  Keys result;
  for (const auto& group : inference.groups) {
    std::string text;
    for (const std::uint32_t dim : group.dims) {
      if (!text.empty()) text += ' ';
      text += dim_name(inference, dim);
    }
    result.push_back(text);
  }
  return result;
}

Keys sums(const Inference& inference) {
  Keys result;
  for (const auto& sum : inference.sums) {
    const auto name = [&](std::uint32_t g) {
      return dim_name(inference, inference.groups[g].dims.front());
    };
    result.push_back(name(sum.total) + " = " + name(sum.first) + " + " + name(sum.second));
  }
  return result;
}

}  // namespace

TEST_CASE("dims that differ between calls vary") {
  Calls calls;
  add(calls, {{"x", {2, 6}}, {"y", {1, 6}}});
  add(calls, {{"x", {3, 7}}, {"y", {1, 7}}});
  const Inference inference = infer(calls);
  REQUIRE(inference.dims.size() == 4);
  CHECK(inference.dims[0].varies);
  CHECK(inference.dims[1].varies);
  CHECK_FALSE(inference.dims[2].varies);
  CHECK(groups(inference) == Keys{"x.0", "x.1 y.1"});
  CHECK(calls.structure_count() == 1);
}

TEST_CASE("prefill and decode: the past is missing at first, and the mask is a sum") {
  Calls calls({"input_ids", "attention_mask", "past"});
  add(calls, {{"input_ids", {2, 20}}, {"attention_mask", {2, 20}}});
  add(calls, {{"input_ids", {2, 1}}, {"attention_mask", {2, 21}}, {"past", {2, 4, 20, 8}}});
  add(calls, {{"attention_mask", {2, 22}}, {"input_ids", {2, 1}}, {"past", {2, 4, 21, 8}}});
  const Inference inference = infer(calls);
  CHECK(to_text(inference.tree) == "dict(input_ids: T0, attention_mask: T1, past: T2)");
  CHECK(groups(inference) == Keys{"input_ids.1", "attention_mask.1", "past.2"});
  CHECK(sums(inference) == Keys{"attention_mask.1 = input_ids.1 + past.2"});
  CHECK(inference.fullest == 1);
  const auto filled = fill(calls, inference, sizes_of(calls, inference, 0));
  CHECK_FALSE(filled[0].has_value());
  REQUIRE(filled[2].has_value());
  CHECK(*filled[2] == Shape{2, 4, 0, 8});
}

TEST_CASE("dims that were equal once are told apart by another call") {
  Calls calls;
  add(calls, {{"x", {5, 5}}, {"y", {5, 5}}});
  add(calls, {{"x", {6, 6}}, {"y", {6, 7}}});
  CHECK(groups(infer(calls)) == Keys{"x.0 x.1 y.0", "y.1"});
  add(calls, {{"x", {6, 8}}, {"y", {6, 8}}});
  CHECK(groups(infer(calls)) == Keys{"x.0 y.0", "x.1", "y.1"});
}

TEST_CASE("a dim seen in few calls joins a group only on two sizes") {
  Calls calls;
  add(calls, {{"x", {2, 3}}, {"y", {2}}});
  add(calls, {{"x", {3, 3}}});
  add(calls, {{"x", {4, 5}}, {"y", {4}}});
  CHECK(groups(infer(calls)) == Keys{"x.0 y.0", "x.1"});
}

TEST_CASE("a missing tensor that never varied fits the batch of the call") {
  Calls calls;
  add(calls, {{"ids", {2, 7}}, {"image", {2, 3, 8, 8}}});
  add(calls, {{"ids", {3, 9}}});
  const Inference inference = infer(calls);
  const auto filled = fill(calls, inference, sizes_of(calls, inference, 1));
  REQUIRE(filled[1].has_value());
  CHECK(*filled[1] == Shape{3, 3, 8, 8});
}

TEST_CASE("a missing tensor follows the one whose shape it had") {
  Calls calls;
  add(calls, {{"ids", {2, 7}}, {"types", {2, 7}}, {"image", {2, 7, 5}}});
  add(calls, {{"ids", {3, 9}}, {"image", {3, 7, 5}}});
  const Inference inference = infer(calls);
  const auto filled = fill(calls, inference, sizes_of(calls, inference, 1));
  CHECK(*filled[1] == Shape{3, 9});
}

TEST_CASE("arguments that never came together are all inferred") {
  Calls calls;
  add(calls, {{"a", {2}}});
  add(calls, {{"b", {3}}});
  const Inference inference = infer(calls);
  CHECK(inference.slots.size() == 2);
  const auto filled = fill(calls, inference, sizes_of(calls, inference, 0));
  CHECK(*filled[1] == Shape{3});
}

TEST_CASE("what cannot be one structure is said with call and path") {
  Calls none;
  CHECK_THROWS_WITH_AS(
      (void)infer(none),
      "[infer] No inputs were captured. Run the model inside the observer's block first.", Error);
  Calls constants;
  add_constant(constants, 3);
  add_constant(constants, 3);
  add_constant(constants, 4);
  CHECK_THROWS_WITH_AS(
      (void)infer(constants),
      "[infer] Two calls were made with different constant values for n: 3 in call 0, 4 in call 2. "
      "Observe them apart, make the value a tensor, or leave it out with remove_inputs.",
      Error);
  Calls ranks;
  add(ranks, {{"x", {2}}});
  add(ranks, {{"x", {2, 3}}});
  CHECK_THROWS_WITH_AS(
      (void)infer(ranks),
      "[infer] Expected one number of dimensions for x, got (2) in call 0 and (2, 3) in call 1.",
      Error);
  Calls dtypes;
  add(dtypes, {{"x", {2}}});
  add(dtypes, {{"x", {2}}}, Dtype::kFloat16);
  CHECK_THROWS_WITH_AS(
      (void)infer(dtypes),
      "[infer] Expected one dtype for x, got float32 in call 0 and float16 in call 1.", Error);
}

TEST_CASE("a discarded call counts no more") {
  Calls calls;
  add(calls, {{"x", {2}}});
  add_constant(calls, 4);
  add(calls, {{"x", {3}}});
  calls.discard(1);
  const Inference inference = infer(calls);
  CHECK(inference.dims[0].varies);
  CHECK(to_text(inference.tree) == "dict(x: T0)");
}

TEST_CASE("strides are kept where they say more than the shape") {
  Calls calls;
  calls.add_tensor(Dtype::kFloat32, Shape{2, 3}, Shape{1, 2}, "cuda:0");
  calls.add_tensor(Dtype::kFloat32, Shape{2, 3}, Shape{3, 1}, "cpu");
  TreeBuilder b;
  b.tensor();
  b.tensor();
  b.dict(Keys{"x", "y"});
  calls.add_call(b.finish());
  CHECK(calls.strides(calls.tensors(0)[0]) == Shape{1, 2});
  CHECK(calls.strides(calls.tensors(0)[1]) == Shape{3, 1});
  CHECK(calls.device(calls.tensors(0)[0]) == "cuda:0");
  TreeBuilder other;
  other.tensor();
  other.dict(Keys{"x"});
  CHECK_THROWS_WITH_AS(calls.add_call(other.finish()),
                       "[observe] Expected 1 tensors for a call, got 0.", Error);
}

TEST_CASE("a user's own arguments are aligned with the calls") {
  Calls calls;
  add(calls, {{"a", {2}}, {"b", {3}}});
  const Inference inference = infer(calls);
  TreeBuilder b;
  b.tensor();
  b.dict(Keys{"b"});
  CHECK(align(inference, b.finish()) == std::vector<std::int32_t>{1});
  TreeBuilder c;
  c.tensor();
  c.dict(Keys{"c"});
  CHECK_THROWS_WITH_AS((void)align(inference, c.finish()),
                       "[infer_arguments] Expected tensors that a call had, got c.", Error);
}

TEST_CASE("ten thousand calls of 200 tensors are inferred in under a second") {
  Calls calls;
  for (std::int64_t i = 0; i < 10000; ++i) {
    std::vector<Arg> args;
    args.push_back({"input_ids", {2, 1 + i % 7}});
    for (int t = 1; t < 200; ++t) args.push_back({std::to_string(t), {2, 4, i + t % 3, 8}});
    add(calls, args);
  }
  const auto start = std::chrono::steady_clock::now();
  const Inference inference = infer(calls);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE("inferred in " << seconds << " s");
  CHECK(inference.slots.size() == 200);
  CHECK(inference.groups.size() == 4);
#ifdef NDEBUG
  CHECK(seconds < 1.0);
#endif
}
