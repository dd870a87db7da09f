// Tests of sizes that data decides, and of the size formulas of operators.
#include <doctest/doctest.h>

#include <algorithm>

#include "fairlead/aten/rules/data_sizes.h"
#include "fairlead/aten/rules/shapes.h"
#include "fairlead/graph/places.h"
#include "graphs.h"

using namespace fairlead;
using namespace fairlead::test;

namespace {

const std::string kHead =
    "symbol n: size = %0[2]\n"
    "symbol m: size = %0[3]\n"
    "input %0: float32[2, 3, n, m]\n"
    "input %1: bool[n]\n"
    "input %2: int64[5]\n"
    "input %3: bool[n, m]\n"
    "constant %4: float32[8, 3, 3, 5]\n";

// "axis 1 of %3", "axis 0", "none"
std::string data_text(const std::string& call, std::size_t result = 0) {
  const Graph g = parse_graph(kHead + "%9: float32[] = " + call + "\n");
  const auto size = data_size(g, g.nodes[0], result);
  if (!size) return "none";
  std::string text = "axis " + std::to_string(size->axis);
  if (size->key != kNoValue) text += " of %" + std::to_string(size->key);
  return text;
}

// "n//2 | m"
std::string hint_texts(const std::string& call) {
  Graph g = parse_graph(kHead + "%9: float32[] = " + call + "\n");
  std::string text;
  for (const Expr e : size_hints(*g.pool, g, g.nodes[0])) {
    text += (text.empty() ? "" : " | ") + g.pool->to_string(e);
  }
  return text;
}

// "[2, n//2] [2, m]": of every result that the rule knows
std::string shape_texts(const std::string& call, std::size_t count = 1, std::size_t rank = 0) {
  Graph g = parse_graph(kHead + "%9: float32[] = " + call + "\n");
  std::string text;
  for (const auto& shape : result_shapes(*g.pool, g, g.nodes[0], count, rank)) {
    std::string sizes;
    for (const Expr e : shape) {
      sizes += (sizes.empty() ? "" : ", ") + (e == nullptr ? "?" : g.pool->to_string(e));
    }
    text += (text.empty() ? "[" : " [") + sizes + "]";
  }
  return text;
}

}  // namespace

TEST_CASE("an index by masks has one size that data decides") {
  CHECK(data_text("aten.index.Tensor(%0, [%2])") == "none");
  CHECK(data_text("aten.index.Tensor(%0, [%2, None, %2])") == "none");
  CHECK(data_text("aten.index.Tensor(%0, [None, None, %1])") == "axis 2 of %1");
  CHECK(data_text("aten.index.Tensor(%0, [None, None, %3])") == "axis 2 of %3");
  CHECK(data_text("aten.index.Tensor(%0, [None, %2, %1])") == "axis 1 of %1");
  // Indices that are apart put their dimension in front.
  CHECK(data_text("aten.index.Tensor(%0, [%2, None, %1])") == "axis 0 of %1");
}

TEST_CASE("operators that count have their axis") {
  CHECK(data_text("aten.nonzero.default(%1)") == "axis 0 of %1");
  CHECK(data_text("aten.masked_select.default(%3, %3)") == "axis 0 of %3");
  CHECK(data_text("aten.masked_select.default(%1, %3)") == "axis 0");  // its last sizes differ
  CHECK(data_text("aten.masked_select.default(%0, %3)") == "axis 0");
  CHECK(data_text("aten.bincount.default(%2, None, 0)") == "axis 0");
  CHECK(data_text("aten._unique2.default(%0, True, True, True)", 0) == "axis 0");
  CHECK(data_text("aten._unique2.default(%0, True, True, True)", 1) == "none");
  CHECK(data_text("aten._unique2.default(%0, True, True, True)", 2) == "axis 0");
  CHECK(data_text("aten.unique_dim.default(%0, -1, True, True, True)", 0) == "axis 3");
  CHECK(data_text("aten.unique_dim.default(%0, -1, True, True, True)", 2) == "axis 0");
  CHECK(data_text("aten.unique_consecutive.default(%0, True, True, 1)", 0) == "axis 1");
  CHECK(data_text("aten.unique_consecutive.default(%0, True, True, None)", 0) == "axis 0");
  CHECK(data_text("aten.repeat_interleave.Tensor(%2, None)") == "axis 0");
  CHECK(data_text("aten.repeat_interleave.Tensor(%2, 17)") == "none");
  CHECK(data_text("aten.relu.default(%0)") == "none");
}

TEST_CASE("convolutions know their sizes") {
  CHECK(shape_texts(
            "aten.convolution.default(%0, %4, None, [2, 1], [1, 0], [1, 2], False, [0, 0], 1)") ==
        "[2, 8, ceildiv(n, 2), m - 8]");
  CHECK(shape_texts(
            "aten.convolution.default(%0, %4, None, [2, 1], [1, 0], [1, 2], True, [1, 0], 2)") ==
        "[2, 6, 2*n, m + 8]");
}

TEST_CASE("pools know their sizes") {
  CHECK(shape_texts(
            "aten.max_pool2d_with_indices.default(%0, [3, 2], [2, 2], [1, 0], [1, 1], False)") ==
        "[2, 3, ceildiv(n, 2), m//2] [2, 3, ceildiv(n, 2), m//2]");
  CHECK(shape_texts("aten.avg_pool2d.default(%0, [2, 2], [], [0, 0], True, True, None)", 1)
            .starts_with("[2, 3, ceildiv(n, 2), ceildiv(m, 2)]"));
  CHECK(shape_texts("aten.avg_pool1d.default(%0, [4], [2], [1], False, True)")
            .starts_with("[2, 3, n, m//2]"));
  CHECK(shape_texts("aten.adaptive_avg_pool2d.default(%0, [2, n])").starts_with("[2, 3, 2, n]"));
}

TEST_CASE("sizes that are equal in every run are told apart by their places") {
  CHECK(shape_texts("aten.new_ones.default(%0, [n, m])") == "[n, m]");
  CHECK(shape_texts("aten.mul.Tensor(%3, %0)") == "[2, 3, n, m]");
  CHECK(shape_texts("aten.add.Tensor(%1, %2)") == "[5]");  // n is 1 or 5 there
  CHECK(shape_texts("aten.permute.default(%0, [3, 0, 2, -3])") == "[m, 2, n, 3]");
  CHECK(shape_texts("aten.sum.dim_IntList(%0, [-2], True, None)") == "[2, 3, 1, m]");
  CHECK(shape_texts("aten.max.dim(%0, 3, False)") == "[2, 3, n] [2, 3, n]");
  CHECK(shape_texts("aten.unsqueeze.default(%3, -1)") == "[n, m, 1]");
  CHECK(shape_texts("aten.select.int(%0, 2, 0)") == "[2, 3, m]");
  CHECK(shape_texts("aten.split.Tensor(%3, 4, 1)", 3) == "[n, 4] [n, 4] [n, m - 8]");
  CHECK(shape_texts("aten.stack.default([%1, %1, %1], -1)") == "[n, 3]");
  CHECK(shape_texts("aten.matmul.default(%0, %3)") == "[2, 3, n, m]");
  CHECK(shape_texts("aten.expand.default(%1, [m, -1])") == "[m, n]");
  CHECK(shape_texts("aten.view.default(%0, [m, -1])") == "[m, 6*n]");
  CHECK(shape_texts("aten.upsample_nearest2d.vec(%0, None, [1.5, 2.0])") ==
        "[2, 3, floor(n*1.5), 2*m] [2, 3, floor(n*1.5), 2*m]");
  CHECK(shape_texts("aten.nonzero.default(%1)") == "");
  // What was 1 in every run is gone, and what was not is there.
  CHECK(shape_texts("aten.squeeze.dim(%0, 2)", 1, 3) == "[2, 3, m]");
  CHECK(shape_texts("aten.squeeze.dim(%0, 2)", 1, 4) == "[2, 3, n, m]");
}

TEST_CASE("views know the lengths they cut") {
  CHECK(hint_texts("aten.slice.Tensor(%0, 2, 1, 9223372036854775807, 2)") == "n//2");
  CHECK(hint_texts("aten.slice.Tensor(%0, -1, None, -1, 1)") == "m - 1 | m");
  CHECK(hint_texts("aten.slice.Tensor(%0, 2, -3, n, 1)") == "min(n, 3)");
  CHECK(hint_texts("aten.slice.Tensor(%0, 2, 0, m, 1)") == "min(n, m) | m | n");
  CHECK(shape_texts("aten.diagonal.default(%0, 1, 2, 3)") == "[2, 3, min(n, m - 1)]");
  CHECK(shape_texts("aten.diagonal.default(%0, -2, -2, -1)") == "[2, 3, min(m, n - 2)]");
  CHECK(shape_texts("aten.unfold.default(%0, 2, 4, 3)") == "[2, 3, ceildiv(n, 3) - 1, m, 4]");
}

TEST_CASE("a slice is cut to its dimension at every size") {
  // Every start, end and step of a dimension of up to 6 elements, as Python's slices have them.
  for (const std::int64_t start : {-9, -6, -2, -1, 0, 1, 2, 5, 9}) {
    for (const std::int64_t end : {-9, -5, -1, 0, 1, 3, 6, 20}) {
      for (const std::int64_t step : {1, 2, 5}) {
        ExprPool pool;
        const Expr n = pool.symbol("n");
        const Span span =
            slice_span(pool, n, pool.constant(start), pool.constant(end), pool.constant(step));
        REQUIRE(span.length != nullptr);
        for (std::int64_t size = 1; size <= 12; ++size) {
          const auto cut = [&](std::int64_t place) {
            return std::clamp<std::int64_t>(place < 0 ? place + size : place, 0, size);
          };
          const std::int64_t count =
              std::max<std::int64_t>((cut(end) - cut(start) + step - 1) / step, 0);
          CHECK(pool.evaluate(span.length, std::vector<std::int64_t>{size}) == count);
          if (count > 0) {
            CHECK(pool.evaluate(span.start, std::vector<std::int64_t>{size}) == cut(start));
          }
        }
      }
    }
  }
  ExprPool pool;
  const Expr n = pool.symbol("n"), m = pool.symbol("m");
  const Expr one = pool.constant(1);
  const auto text = [&](Expr start, Expr end) {
    const Span span = slice_span(pool, n, start, end, one);
    return span.length == nullptr ? "unknown" : pool.to_string(span.length);
  };
  CHECK(text(one, nullptr) == "n - 1");
  CHECK(text(pool.constant(5), nullptr) == "max(n - 5, 0)");
  CHECK(text(nullptr, pool.constant(8)) == "min(n, 8)");
  CHECK(text(nullptr, m) == "min(n, m)");
  CHECK(text(nullptr, pool.add(n, m)) == "n");
  CHECK(text(pool.neg(m), nullptr) == "min(n, m)");
  CHECK(text(pool.sub(n, m), nullptr) == "unknown");  // it may count from the end
}
