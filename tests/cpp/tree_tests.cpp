// Tests of trees: building, text, paths, equality, and merging with its mismatches.
#include "fairlead/tree/tree.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/tree/merge.h"

using fairlead::Error;
using fairlead::Merge;
using fairlead::NodeKind;
using fairlead::Tree;
using fairlead::TreeBuilder;

namespace {

using Keys = std::vector<std::string>;

// {"x": T, "y": [T, None], "n": 3}
Tree sample(std::int64_t n = 3) {
  TreeBuilder b;
  b.tensor();
  b.tensor();
  b.none();
  b.list(2);
  b.integer(n);
  b.dict(Keys{"x", "y", "n"});
  return b.finish();
}

// {name: tensor, ...}
Tree flat(const Keys& keys) {
  TreeBuilder b;
  for (std::size_t i = 0; i < keys.size(); ++i) b.tensor();
  b.dict(keys);
  return b.finish();
}

}  // namespace

TEST_CASE("a tree prints and knows its paths") {
  const Tree tree = sample();
  CHECK(to_text(tree) == "dict(x: T0, y: [T1, None], n: 3)");
  CHECK(tensor_paths(tree) == Keys{"x", "y.0"});
  CHECK(tree.tensor_count() == 2);
  CHECK(tree.tensors_in(tree.root()) == 2);
  const auto children = tree.children(tree.root());
  REQUIRE(children.size() == 3);
  CHECK(tree.at(children[1]).kind == NodeKind::kList);
  CHECK(tree.key(tree.root(), 2) == "n");
  CHECK(tree.key(children[1], 1) == "1");
}

TEST_CASE("every kind of node has a text") {
  TreeBuilder b;
  b.none();
  b.boolean(true);
  b.number(0.5);
  b.text("a");
  b.opaque("torch.float32");
  b.tensor();
  b.record("Pair", Keys{"first"});
  b.tensor();
  b.custom("DynamicCache", Keys{"0.key"});
  b.tensor();
  b.tuple(1);
  b.tuple(8);
  CHECK(to_text(b.finish()) ==
        "(None, True, 0.5, 'a', torch.float32, Pair(first: T0), DynamicCache(0.key: T1), (T2,))");
}

TEST_CASE("keys that start with @ take no part in paths") {
  TreeBuilder b;
  b.tensor();
  b.custom("DynamicCache", Keys{"0.decoder.key"});
  b.custom("EncoderDecoderCache", Keys{"@self_attention_cache"});
  b.dict(Keys{"past"});
  CHECK(tensor_paths(b.finish()) == Keys{"past.0.decoder.key"});
}

TEST_CASE("equality and hash look at kinds, keys and constants") {
  CHECK(sample() == sample());
  CHECK(sample().hash() == sample().hash());
  CHECK_FALSE(sample(3) == sample(4));
  CHECK_FALSE(flat({"a", "b"}) == flat({"b", "a"}));
  CHECK(flat({"a", "b"}).hash() != flat({"b", "a"}).hash());
}

TEST_CASE("a builder refuses what is no tree") {
  TreeBuilder b;
  b.tensor();
  CHECK_THROWS_WITH_AS(b.list(2), "[tree] Expected 2 children before a list, got 1.", Error);
  b.tensor();
  CHECK_THROWS_WITH_AS((void)b.finish(), "[tree] Expected one root, got 2 subtrees.", Error);
}

TEST_CASE("merging aligns dicts by key") {
  const Merge merged = merge(flat({"a", "b"}), flat({"b", "a", "c"}));
  CHECK(merged.mismatches.empty());
  CHECK(to_text(merged.tree) == "dict(a: T0, b: T1, c: T2)");
  CHECK(merged.left == std::vector<std::int32_t>{0, 1});
  CHECK(merged.right == std::vector<std::int32_t>{1, 0, 2});
}

TEST_CASE("the order of the root is given") {
  CHECK(to_text(merge(flat({"b"}), flat({"x", "a"}), {"a", "b"}).tree) ==
        "dict(a: T0, b: T1, x: T2)");
}

TEST_CASE("None and empty containers are missing") {
  TreeBuilder b;
  b.none();
  b.list(0);
  b.integer(3);
  b.dict(Keys{"x", "y", "n"});
  const Tree holes = b.finish();
  for (const bool swapped : {false, true}) {
    const Merge merged = swapped ? merge(sample(), holes) : merge(holes, sample());
    CHECK(merged.mismatches.empty());
    CHECK(to_text(merged.tree) == "dict(x: T0, y: [T1, None], n: 3)");
    CHECK((swapped ? merged.left : merged.right) == std::vector<std::int32_t>{0, 1});
  }
}

TEST_CASE("a None inside a list shifts nothing") {
  const auto list_of = [](std::array<bool, 3> present) {
    TreeBuilder b;
    for (const bool p : present) p ? b.tensor() : b.none();
    b.list(3);
    b.dict(Keys{"x"});
    return b.finish();
  };
  const Merge merged = merge(list_of({true, false, true}), list_of({false, true, true}));
  CHECK(to_text(merged.tree) == "dict(x: [T0, T1, T2])");
  CHECK(merged.left == std::vector<std::int32_t>{0, 2});
  CHECK(merged.right == std::vector<std::int32_t>{1, 2});
}

TEST_CASE("mismatches are all reported, with paths") {
  TreeBuilder b;
  b.integer(1);
  b.tensor();
  b.tensor();
  b.tensor();
  b.list(3);
  b.boolean(true);
  b.dict(Keys{"x", "y", "n"});
  const Merge merged = merge(sample(1), b.finish());
  REQUIRE(merged.mismatches.size() == 3);
  CHECK(merged.mismatches[0].path == "x");
  CHECK(merged.mismatches[0].left == "tensor");
  CHECK(merged.mismatches[0].right == "1");
  CHECK_FALSE(merged.mismatches[0].constants);
  CHECK(merged.mismatches[1].path == "y");
  CHECK(merged.mismatches[1].right == "list of 3");
  CHECK(merged.mismatches[2].path == "n");
  CHECK(merged.mismatches[2].left == "1");
  CHECK(merged.mismatches[2].right == "True");
  CHECK(merged.mismatches[2].constants);
}

TEST_CASE("a constant beside nothing is a mismatch") {
  TreeBuilder b;
  b.tensor();
  b.dict(Keys{"x"});
  const Merge merged = merge(sample(), b.finish());
  REQUIRE(merged.mismatches.size() == 1);
  CHECK(merged.mismatches[0].path == "n");
  CHECK(merged.mismatches[0].right == "absent");
}
