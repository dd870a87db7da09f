// Programs joined in one graph: symbols, inputs, constants, conditions, and what becomes of them in
// ONNX.
#include "fairlead/graph/join.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/onnx/lowering.h"

namespace fairlead {
namespace {

// Constants of one name are one tensor in memory.
Graph graph_of(const std::string& text) {
  static std::map<std::string, std::vector<std::byte>> storage;
  Graph graph = parse_graph(text);
  for (Constant& constant : graph.constants) {
    std::size_t size = dtype_size(graph.values[constant.value].dtype);
    for (const std::int64_t d : constant.dims) size *= static_cast<std::size_t>(d);
    auto& bytes = storage[graph.values[constant.value].name];
    bytes.resize(std::max(bytes.size(), size));
    constant.data = bytes.data();
  }
  return graph;
}

constexpr std::int64_t kAny = INT64_MAX;

const char* const kOne =
    "symbol batch: size = %0[0]\n"
    "input %0 \"x\": float32[batch, 1, 4]\n"
    "constant %1 \"w\": float32[4, 4]\n"
    "%2: float32[batch, 4] = aten.squeeze.dim(%0, 1)\n"
    "%3: float32[batch, 4] = aten.linear.default(%2, %1, None)\n"
    "%4: float32[batch, 1, 4] = aten.unsqueeze.default(%3, 1)\n"
    "output \"y\" = %4\n";

const char* const kMany =
    "symbol batch: size = %0[0]\n"
    "symbol rows: size = %0[1]\n"
    "input %0 \"x\": float32[batch, rows, 4]\n"
    "constant %1 \"w\": float32[4, 4]\n"
    "%2: float32[batch, rows, 4] = aten.linear.default(%0, %1, None)\n"
    "output \"y\" = %2\n";

TEST_CASE("a size that one program has fixed and another not decides between them") {
  const Graph one = graph_of(kOne), many = graph_of(kMany);
  const std::vector<JoinPart> parts = {{&one, {}}, {&many, {{"rows", 2, kAny}}}};
  const Graph joined = join(parts);
  CHECK(to_text(joined) ==
        "symbol batch: size = %0[0]\n"
        "symbol rows: size = %0[1]\n"
        "input %0 \"x\": float32[batch, rows, 4]\n"
        "constant %2 \"w\": float32[4, 4]\n"
        "%8: int64[] = fairlead.require(max(-min(max(rows - 1, -rows + 1), 1) + 1, min(rows - 1, "
        "1), 0), -min(max(rows - 1, -rows + 1), 1) + 1, \"rows is 1, or rows is at least 2\")\n"
        "%7: float32[batch, rows, 4] = higher_order.cond(%8)\n"
        "  body\n"
        "    %1: float32[batch, 1, 4] = aten.alias.default(%0)\n"
        "    %3: float32[batch, 4] = aten.squeeze.dim(%1, 1)\n"
        "    %4: float32[batch, 4] = aten.linear.default(%3, %2, None)\n"
        "    %5: float32[batch, 1, 4] = aten.unsqueeze.default(%4, 1)\n"
        "    result %5\n"
        "  end\n"
        "  body\n"
        "    %6: float32[batch, rows, 4] = aten.linear.default(%0, %2, None)\n"
        "    result %6\n"
        "  end\n"
        "output \"y\" = %7\n");
  CHECK(to_text(parse_graph(to_text(joined))) == to_text(joined));

  const onnx::Model model = onnx::lower_graph(joined, {});
  const auto weights = std::count_if(
      model.graph.initializers.begin(), model.graph.initializers.end(),
      [](const onnx::Initializer& i) { return i.data.dims == std::vector<std::int64_t>{4, 4}; });
  CHECK(weights == 1);
  CHECK(std::any_of(model.graph.nodes.begin(), model.graph.nodes.end(), [](const onnx::Node& n) {
    return n.op == "Gather" && n.name == "rows is 1, or rows is at least 2";
  }));
  CHECK(model.graph.nodes.back().op == "If");
}

TEST_CASE("sizes that are numbers in every program become symbols where they differ") {
  const auto part = [](int past, int tokens) {
    const std::string p = std::to_string(past), t = std::to_string(tokens);
    return graph_of(
        "input %0 \"past.0.key\": float32[3, " + p + "]\ninput %1 \"past.1.key\": float32[3, " + p +
        "]\ninput %2 \"ids\": float32[3, " + t + "]\n%3: float32[3, " +
        std::to_string(past + tokens) +
        "] = aten.cat.default([%0, %2], 1)\noutput \"present\" = %3\noutput \"other\" = %1\n");
  };
  const Graph a = part(4, 2), b = part(6, 1), c = part(7, 1);
  const std::vector<JoinPart> parts = {{&a, {}}, {&b, {}}, {&c, {}}};
  const Graph joined = join(parts);
  const std::string text = to_text(joined);
  CHECK(text.find("input %0 \"past.0.key\": float32[3, past_0_key_dim_1]") != std::string::npos);
  CHECK(text.find("input %1 \"past.1.key\": float32[3, past_0_key_dim_1]") != std::string::npos);
  CHECK(text.find("\"past_0_key_dim_1 is 4 and ids_dim_1 is 2, or past_0_key_dim_1 is 6 and "
                  "ids_dim_1 is 1, or "
                  "past_0_key_dim_1 is 7 and ids_dim_1 is 1\"") != std::string::npos);
  // 6, 7 and 8 are past and new together, and the other output is as long as its input.
  const auto size = [&](std::size_t k) {
    return joined.pool->to_string(joined.values[joined.outputs[k]].shape[1]);
  };
  CHECK(size(0) == "past_0_key_dim_1 + ids_dim_1");
  CHECK(size(1) == "past_0_key_dim_1");
  CHECK(joined.nodes.size() == 2);
  CHECK(joined.nodes[1].bodies[1].nodes[0].op == "higher_order.cond");
}

TEST_CASE("what two programs computed from weights alone is one constant where it is equal") {
  const std::string text =
      "symbol n: size = %0[0]\ninput %0 \"x\": float32[n]\nconstant %1: float32[2]\n"
      "%2: float32[n] = aten.take.default(%1, %0)\noutput \"y\" = %2\n";
  Graph a = parse_graph(text), b = parse_graph(text), c = parse_graph(text);
  const std::vector<float> one = {1, 2}, same = {1, 2}, other = {1, 3};
  a.constants[0].data = reinterpret_cast<const std::byte*>(one.data());
  b.constants[0].data = reinterpret_cast<const std::byte*>(same.data());
  c.constants[0].data = reinterpret_cast<const std::byte*>(other.data());
  const std::vector<JoinPart> parts = {
      {&a, {{"n", 1, 4}}}, {&b, {{"n", 5, 9}}}, {&c, {{"n", 10, kAny}}}};
  CHECK(join(parts).constants.size() == 2);
}

TEST_CASE("a sum stays a sum where it is right for both, and sizes that data decides stay inside") {
  SUBCASE("the longer program lends its names") {
    Graph with_new = graph_of(
        "symbol past: size = %0[0]\nsymbol new: size = %2[0]\nsymbol count_0: data = %3[0]\n"
        "input %0 \"past\": float32[past]\ninput %1 \"mask\": float32[past + new]\n"
        "input %2 \"x\": float32[new]\n%3: int64[count_0, 1] = aten.nonzero.default(%1)\n"
        "output \"y\" = %3\n");
    Graph with_one = graph_of(
        "symbol past: size = %0[0]\nsymbol count_0: data = %3[0]\ninput %0 \"past\": "
        "float32[past]\n"
        "input %1 \"mask\": float32[past + 1]\ninput %2 \"x\": float32[1]\n"
        "%3: int64[count_0, 1] = aten.nonzero.default(%1)\noutput \"y\" = %3\n");
    const std::vector<JoinPart> parts = {{&with_one, {}}, {&with_new, {{"new", 2, 9}}}};
    const Graph joined = join(parts);
    const std::string text = to_text(joined);
    CHECK(text.find("input %1 \"mask\": float32[past + new]") != std::string::npos);
    CHECK(text.find("new is 1, or new is at least 2 and new is at most 9") != std::string::npos);
    CHECK(text.find("symbol count_0_1: data") != std::string::npos);
    CHECK(text.find("symbol y_dim_0: data") != std::string::npos);
  }
  SUBCASE("programs of other inputs are refused") {
    const Graph x = graph_of(kOne), y = graph_of(
                                        "input %0 \"x\": float32[3, 1, 4]\n%1: float32[3, 4] = "
                                        "aten.squeeze.dim(%0, 1)\noutput \"y\" = %1\n");
    const std::vector<JoinPart> parts = {{&x, {}}, {&y, {}}};
    CHECK_THROWS_WITH_AS((void)join(parts),
                         "[join] Expected programs with the same inputs and outputs, got another "
                         "type or rank of output 'y'.",
                         Error);
  }
}

}  // namespace
}  // namespace fairlead
