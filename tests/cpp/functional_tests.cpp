// Tests of views and writes: how each view is written through, and how other views follow.
#include "fairlead/trace/functional.h"

#include <doctest/doctest.h>

#include "graphs.h"

using namespace fairlead;
using namespace fairlead::test;

namespace {

const std::string kHead =
    "symbol b: size = %0[0]\n"
    "input %0 \"x\": float32[b, 4, 8]\n";

// The lines that a write of %1 through the view on the third line adds.
std::string written_through(const std::string& updated, const std::string& view,
                            std::size_t position = 0) {
  Graph g = parse_graph(kHead + "input %1 \"u\": " + updated + "\n" + view + "\n");
  Functional f(g, 10);
  f.define_root(0, 0);
  f.define_view(1, 0, 0, position);
  const std::size_t before = node_lines(g).size();
  CHECK_FALSE(f.written(0));
  f.write(1, 1);
  CHECK(f.written(0));
  CHECK(f.written(1));
  CHECK(f.read(1) == 1);
  CHECK(f.read(0) != 0);
  check(g);
  CHECK(g.values[f.read(0)].shape == g.values[0].shape);
  return node_lines(g).substr(before);
}

}  // namespace

TEST_CASE("a root is what was written to it last") {
  Graph g = parse_graph(kHead + "input %1: float32[b, 4, 8]\n");
  Functional f(g, 2);
  CHECK_FALSE(f.defined(0));
  f.define_root(0, 0);
  CHECK(f.defined(0));
  CHECK(f.read(0) == 0);
  f.write(0, 1);
  CHECK(f.read(0) == 1);
  CHECK(f.written(0));
  CHECK(g.nodes.empty());
}

TEST_CASE("a write through a view is undone by the view's inverse") {
  struct Row {
    const char* updated;
    const char* view;
    const char* adds;
  };
  const Row rows[] = {
      {"float32[b, 4, 3]",
       "%2: float32[b, 4, 3] = aten.slice.Tensor(%0, 2, 1, 7, 2) in \"m\" at \"s:1\"",
       "%3: float32[b, 4, 8] = aten.slice_scatter.default(%0, %1, 2, 1, 7, 2) in \"m\" at "
       "\"s:1\"\n"},
      {"float32[b, 8]", "%2: float32[b, 8] = aten.select.int(%0, 1, -1)",
       "%3: float32[b, 4, 8] = aten.select_scatter.default(%0, %1, 1, -1)\n"},
      {"float32[b, 8, 4]", "%2: float32[b, 8, 4] = aten.transpose.int(%0, 1, -1)",
       "%3: float32[b, 4, 8] = aten.transpose.int(%1, 1, -1)\n"},
      {"float32[8, b, 4]", "%2: float32[8, b, 4] = aten.permute.default(%0, [-1, 0, 1])",
       "%3: float32[b, 4, 8] = aten.permute.default(%1, [1, 2, 0])\n"},
      {"float32[4*b, 8]", "%2: float32[4*b, 8] = aten.view.default(%0, [4*b, 8])",
       "%3: float32[b, 4, 8] = aten.reshape.default(%1, [b, 4, 8])\n"},
      {"float32[b, 1, 4, 8]", "%2: float32[b, 1, 4, 8] = aten.unsqueeze.default(%0, 1)",
       "%3: float32[b, 4, 8] = aten.reshape.default(%1, [b, 4, 8])\n"},
      {"float32[b, 4]", "%2: float32[b, 4] = aten.diagonal.default(%0, 0, 1, 2)",
       "%3: float32[b, 4, 8] = aten.diagonal_scatter.default(%0, %1, 0, 1, 2)\n"},
      {"float32[2, 2]", "%2: float32[2, 2] = aten.as_strided.default(%0, [2, 2], [8, 1], 3)",
       "%3: float32[b, 4, 8] = aten.as_strided_scatter.default(%0, %1, [2, 2], [8, 1], 3)\n"},
      {"complex64[b, 4]", "%2: complex64[b, 4] = aten.view_as_complex.default(%0)",
       "%3: float32[b, 4, 8] = aten.view_as_real.default(%1)\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.view);
    CHECK(written_through(row.updated, row.view) == row.adds);
  }
}

TEST_CASE("a write through a part of a split goes after the parts before it") {
  const char* split =
      "%2: float32[b, 4, 3], %3: float32[b, 4, 3], %4: float32[b, 4, 2] = "
      "aten.split.Tensor(%0, 3, -1)";
  CHECK(written_through("float32[b, 4, 3]", split, 0) ==
        "%5: float32[b, 4, 8] = aten.slice_scatter.default(%0, %1, 2, 0, 3, 1)\n");
  CHECK(written_through("float32[b, 4, 2]", split, 2) ==
        "%5: float32[b, 4, 8] = aten.slice_scatter.default(%0, %1, 2, 6, 8, 1)\n");
  CHECK(written_through("float32[b, 8]",
                        "%2: float32[b, 8], %3: float32[b, 8] = aten.unbind.int(%0, 1)",
                        1) == "%4: float32[b, 4, 8] = aten.select_scatter.default(%0, %1, 1, 1)\n");
}

TEST_CASE("a write to all of a tensor replaces it") {
  CHECK(written_through("float32[b, 4, 8]", "%2: float32[b, 4, 8] = aten.alias.default(%0)") == "");
  CHECK(written_through(
            "float32[b, 4, 8]",
            "%2: float32[b, 4, 8] = aten.slice.Tensor(%0, 1, 0, 9223372036854775807, 1)") == "");
  CHECK(written_through("float32[b, 4, 8]",
                        "%2: float32[b, 4, 8] = aten.expand.default(%0, [b, 4, 8])") == "");
}

TEST_CASE("other views see a write, once each") {
  Graph g = parse_graph(kHead +
                        "input %1 \"u\": float32[4, 8]\n"
                        "%2: float32[4, 8] = aten.select.int(%0, 0, 0)\n"
                        "%3: float32[b, 8, 4] = aten.transpose.int(%0, 1, 2)\n"
                        "%4: float32[b, 8] = aten.select.int(%3, 2, 1) in \"m\" at \"s:2\"\n");
  Functional f(g, 4);
  f.define_root(0, 0);
  f.define_view(1, 0, 0, 0);
  f.define_view(2, 0, 1, 0);
  f.define_view(3, 2, 2, 0);
  CHECK(f.read(3) == 4);
  f.write(1, 1);
  // The view of a view is made again from its parent, which is made again from the root.
  const ValueId again = f.read(3);
  CHECK(f.read(3) == again);
  CHECK(node_lines(g).substr(node_lines(g).find("%5")) ==
        "%5: float32[b, 4, 8] = aten.select_scatter.default(%0, %1, 0, 0)\n"
        "%6: float32[b, 8, 4] = aten.transpose.int(%5, 1, 2)\n"
        "%7: float32[b, 8] = aten.select.int(%6, 2, 1) in \"m\" at \"s:2\"\n");
  CHECK(again == 7);
  CHECK(f.read(2) == 6);
  CHECK(g.nodes.size() == 6);
  check(g);
}

TEST_CASE("a write through a view of a view reaches the root") {
  Graph g = parse_graph(kHead +
                        "input %1 \"u\": float32[b]\n"
                        "%2: float32[b, 8] = aten.select.int(%0, 1, 2)\n"
                        "%3: float32[b] = aten.select.int(%2, 1, 5)\n"
                        "%4: float32[b, 8] = aten.select.int(%0, 1, 2)\n");
  Functional f(g, 4);
  f.define_root(0, 0);
  f.define_view(1, 0, 0, 0);
  f.define_view(2, 1, 1, 0);
  f.define_view(3, 0, 2, 0);
  f.write(2, 1);
  CHECK(f.read(2) == 1);
  CHECK(node_lines(g).substr(node_lines(g).find("%5")) ==
        "%5: float32[b, 8] = aten.select_scatter.default(%2, %1, 1, 5)\n"
        "%6: float32[b, 4, 8] = aten.select_scatter.default(%0, %5, 1, 2)\n");
  CHECK(f.read(1) == 5);
  CHECK(f.read(0) == 6);
  // A second write starts from what the first one left.
  f.write(3, f.read(3));
  CHECK(f.read(2) != 1);
  check(g);
}

TEST_CASE("a part of a split is refreshed with its siblings") {
  Graph g = parse_graph(
      kHead +
      "input %1 \"u\": float32[b, 4, 8]\n"
      "%2: float32[b, 4, 4], None, %3: float32[b, 4, 4] = aten.split.Tensor(%0, 4, 2)\n");
  Functional f(g, 3);
  f.define_root(0, 0);
  f.define_view(1, 0, 0, 0);
  f.define_view(2, 0, 0, 2);
  f.write(0, 1);
  CHECK(f.read(2) == 5);
  CHECK(node_lines(g).substr(node_lines(g).find("%4:")) ==
        "%4: float32[b, 4, 4], None, %5: float32[b, 4, 4] = aten.split.Tensor(%1, 4, 2)\n");
  check(g);
}

TEST_CASE("writes that no inverse can carry are refused") {
  const auto refused = [](const std::string& updated, const std::string& view) {
    Graph g = parse_graph(kHead + "input %1: " + updated + "\n" + view + "\n");
    Functional f(g, 2);
    f.define_root(0, 0);
    f.define_view(1, 0, 0, 0);
    return error_of(ErrorCode::kUnsupported, [&] { f.write(1, 1); });
  };
  CHECK(refused("float32[3, b, 4, 8]",
                "%2: float32[3, b, 4, 8] = aten.expand.default(%0, [3, b, 4, 8]) at \"a.py:3\"") ==
        "[export] Expected a write to a tensor with one element per place, got a write through "
        "expand "
        "(at a.py:3). Clone the tensor before writing to it.");
  CHECK(refused(
            "float32[b, 4, 3, 4]",
            "%2: float32[b, 4, 3, 4] = aten.unfold.default(%0, 2, 4, 2) in \"m\" at \"a.py:4\"") ==
        "[export] Expected a write through a view that can be undone, got one through "
        "aten.unfold.default (in m at a.py:4). Clone the tensor before writing to it.");
}
