// The door: graphs and programs that do not fit their operators are an Error with the node's name,
// whatever else they would reach.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/graph/validate.h"
#include "fairlead/onnx/lowering.h"
#include "fairlead/passes/passes.h"
#include "fairlead/pt2/import.h"

using namespace fairlead;

namespace {

// ---- graphs as text ----------------------------------------------------------------------------

std::string refusal(const std::string& text) {
  const Graph graph = parse_graph(text);
  try {
    (void)onnx::lower_graph(graph, {});
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidInput);
    return error.what();
  }
}

struct TextRow {
  std::string_view node;  // over %0 float32[2, 3] and %1 int64[2]
  std::string_view why;
};

// clang-format off
constexpr TextRow kTexts[] = {
    {"%2: float32[2, 3] = aten.linear.default(None, %0, None)",        "Expected a tensor as argument 0, got None (node aten.linear.default"},
    {"%2: float32[2, 3] = aten.linear.default(2, %0, None)",           "Expected a tensor as argument 0, got an integer"},
    {"%2: float32[2, 3] = aten.linear.default()",                      "Expected a tensor as argument 0, got none"},
    {"%2: float32[3, 2] = aten.permute.default(%0, [0, 7])",           "Expected an axis of a tensor of 2 as argument 1, got 7 (node aten.permute.default"},
    {"%2: float32[3, 2] = aten.permute.default(%0, [0, -9])",          "got -9"},
    {"%2: float32[3, 2] = aten.permute.default(%0, [1, 1])",           "Expected every axis once as argument 1, got 1 twice"},
    {"%2: float32[3, 2] = aten.permute.default(%0, [0])",              "Expected axes of a tensor of 2 as argument 1, got 1 of them"},
    {"%2: float32[3, 2] = aten.transpose.int(%0, 0, 9223372036854775807)", "got 9223372036854775807"},
    {"%2: float32[3, 2] = aten.transpose.int(%0, 0, None)",            "Expected an integer as argument 2, got None"},
    {"%2: float32[3] = aten.select.int(%0, 5, 0)",                     "Expected an axis of a tensor of 2 as argument 1, got 5"},
    {"%2: float32[2, 3] = aten.slice.Tensor(%0, -5, 0, 1, 1)",         "got -5"},
    {"%2: float32[2, 1, 3] = aten.unsqueeze.default(%0, 4)",           "Expected an axis of a tensor of 3 as argument 1, got 4"},
    {"%2: float32[2] = aten.sum.dim_IntList(%0, [0, 4], False)",       "got 4"},
    {"%2: float32[2, 3], %3: int64[2, 3] = aten.sort.default(%0, 2, False)", "got 2"},
    {"%2: float32[2, 2], %3: int64[2, 2] = aten.topk.default(%0, 2, -3, True, True)", "got -3"},
    {"%2: float32[4, 3] = aten.cat.default([%0, %0], 2)",              "got 2"},
    {"%2: float32[4, 3] = aten.cat.default([%0, 3], 0)",               "Expected a list of tensors as argument 0, got a list"},
    {"%2: float32[2, 3] = aten.select_scatter.default(%0, %1, 7, 0)",  "got 7"},
    {"%2: float32[2, 3] = aten.slice_scatter.default(%0, %0, 7, 0, 1, 1)", "got 7"},
    {"%2: float32[2, 3] = aten.scatter.value(%0, 6, %1, 1)",           "got 6"},
    {"%2: float32[2, 3] = aten.relu.default(%0, %0)",                  "Expected at most 1 arguments, got 2"},
    {"%2: float32[2, 3], %3: float32[2] = aten.relu.default(%0)",      "Expected at most 1 results, got 2"},
    {"%2: float32[2, 3] = higher_order.cond(%1)",                      "Expected 2 bodies, got 0 (node higher_order.cond"},
    {"%2: float32[2, 3] = higher_order.scan([%0], [%0])",              "Expected 1 bodies, got 0"},
};
// clang-format on

}  // namespace

TEST_CASE("a node that does not fit its schema is refused with its name") {
  for (const TextRow& row : kTexts) {
    CAPTURE(row.node);
    const std::string text = "input %0 \"x\": float32[2, 3]\ninput %1 \"i\": int64[2]\n" +
                             std::string(row.node) + "\noutput \"y\" = %2\n";
    CHECK(refusal(text).find(row.why) != std::string::npos);
  }
}

TEST_CASE("axes, numbers and lists that only the lowering knows are refused too") {
  const std::string_view nodes[] = {
      // Paddings beyond the axes, more places than a table has, lists that are too short.
      "%2: float32[2, 3] = aten.constant_pad_nd.default(%0, [1, 1, 1, 1, 1, 1], 0)",
      "%2: float32[2, 3] = aten.grid_sampler_2d.default(%0, %0, 7, 0, False)",
      "%2: float32[2, 3] = aten.grid_sampler_2d.default(%0, %0, 0, -1, False)",
      "%2: float32[2, 3] = aten.affine_grid_generator.default(%0, [1], False)",
      "%2: float32[2, 3] = aten.convolution.default(%0, %1, None, [1], [0], [1], False, [0], 1)",
      "%2: float32[2, 3] = aten.pixel_shuffle.default(%0, 2)",
      "%2: float32[2, 3] = aten.convolution.default(%5, %5, None, [1, 1], [], [1, 1], False, [0], "
      "1)",
      "%2: float32[2, 3] = aten.scatter.src(%0, 0, %1, %0)",
      "%2: float32[2, 3], %3: float32[1], %4: float32[1] = aten.lstm.input(%0, [], [], True, 1, "
      "0.0, "
      "False, False, False)",
      "%2: float32[2, 3], %3: float32[1], %4: float32[1] = aten.lstm.input(%0, [%0, %0], [%0], "
      "False, 9223372036854775807, 0.0, False, True, False)",
  };
  for (const std::string_view node : nodes) {
    CAPTURE(node);
    const Graph graph = parse_graph(
        "input %0 \"x\": float32[2, 3]\ninput %1 \"i\": int64[2]\n"
        "input %5 \"p\": float32[2, 2, 3, 3]\n" +
        std::string(node) + "\noutput \"y\" = %2\n");
    try {
      (void)onnx::lower_graph(graph, {});
      FAIL("it was lowered");
    } catch (const Error& error) {
      CHECK(error.code() != ErrorCode::kInternal);
      CHECK(std::string(error.what()).find("aten.") != std::string::npos);
    }
  }
}

TEST_CASE("values are made once, before they are read, and where they are seen") {
  Graph graph;
  const ValueId x = graph.add_value(Dtype::kFloat32, {graph.pool->constant(2)}, "x");
  const ValueId y = graph.add_value(Dtype::kFloat32, {graph.pool->constant(2)});
  graph.inputs = {x};
  Node node;
  node.op = "aten.relu.default";
  node.args.resize(1);
  node.args[0].kind = ArgKind::kValue;
  node.outputs = {y};
  graph.outputs = {y};
  graph.output_names = {"y"};
  const auto error_with = [&](ValueId read) {
    node.args[0].value = read;
    graph.nodes = {node};
    try {
      validate(graph, "a test");
      return std::string();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidInput);
      return std::string(error.what());
    }
  };
  CHECK(error_with(x).empty());
  CHECK(
      error_with(y) ==
      "[graph] Expected a value that is made before it is read, got %1 (node aten.relu.default of "
      "a test).");
  CHECK(error_with(7).find("Expected a value of the graph, got number 7") != std::string::npos);
  CHECK(error_with(kNoValue).find("got number -1") != std::string::npos);
  node.outputs = {x};
  CHECK(error_with(x).find("Expected every value to be made once, got %0 again") !=
        std::string::npos);
}

TEST_CASE("sizes are not negative and axes not without end") {
  const std::string negative =
      "input %0 \"x\": float32[-2]\n%1: float32[2] = aten.relu.default(%0)\n"
      "output \"y\" = %1\n";
  CHECK(refusal(negative).find("Expected sizes that are not negative, got -2") !=
        std::string::npos);
  std::string many = "input %0 \"x\": float32[1";
  for (int k = 0; k < 70; ++k) many += ", 1";
  many += "]\n%1: float32[1] = aten.relu.default(%0)\noutput \"y\" = %1\n";
  CHECK(refusal(many).find("Expected at most 64 axes, got 71") != std::string::npos);
}

// ---- programs -----------------------------------------------------------------------------------

namespace {

std::string meta(std::string_view sizes) {
  std::string text = R"({"dtype":7,"sizes":[)";
  std::string strides;
  for (const char c : sizes) {
    if (text.back() != '[') text += ',', strides += ',';
    text += std::string(R"({"as_int":)") + c + "}";
    strides += R"({"as_int":1})";
  }
  return text + R"(],"strides":[)" + strides + "]}";
}

// A program of x[2, 3] whose nodes are given, with values a, b, c of the same shape; a is returned.
std::string program(std::string_view nodes) {
  return R"({"schema_version":{"major":8,"minor":0},"graph_module":{"graph":{"inputs":[{"as_tensor":)"
         R"({"name":"x"}}],"outputs":[{"as_tensor":{"name":"a"}}],"nodes":[)" +
         std::string(nodes) + R"(],"tensor_values":{"x":)" + meta("23") + R"(,"a":)" + meta("23") +
         R"(,"b":)" + meta("23") + R"(,"c":)" + meta("23") +
         R"(}},"signature":{"input_specs":[{"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],)"
         R"("output_specs":[{"user_output":{"arg":{"as_tensor":{"name":"a"}}}}]},)"
         R"("module_call_graph":[]}})";
}

std::string node(std::string_view op, std::string_view inputs, std::string_view output) {
  return R"({"target":"torch.ops.)" + std::string(op) + R"(","inputs":[)" + std::string(inputs) +
         R"(],"outputs":[{"as_tensor":{"name":")" + std::string(output) + R"("}}],"metadata":{}})";
}

std::string given(std::string_view name, std::string_view arg) {
  return R"({"name":")" + std::string(name) + R"(","arg":)" + std::string(arg) + "}";
}

std::string tensor(std::string_view name) {
  return R"({"as_tensor":{"name":")" + std::string(name) + R"("}})";
}

// The error of the whole way: read, passes, lowering.
std::string conversion_error(const std::string& json) {
  try {
    pt2::Imported imported = pt2::import_program(json, {}, "test");
    run_passes(imported.program.graph);
    (void)onnx::lower_graph(imported.program.graph, {});
    return "";
  } catch (const Error& error) {
    CHECK(error.code() != ErrorCode::kInternal);
    return error.what();
  }
}

const std::string kSelf = given("self", tensor("x"));

}  // namespace

TEST_CASE("a program of one relu is converted") {
  CHECK(conversion_error(program(node("aten.relu.default", kSelf, "a"))).empty());
}

TEST_CASE("a write through a view with an axis that is none is refused") {
  const std::string fill =
      "," +
      node("aten.fill_.Scalar",
           given("self", tensor("b")) + "," + given("value", R"({"as_int":0})"), "c") +
      "," + node("aten.relu.default", kSelf, "a");
  const auto through = [&](std::string_view op, const std::string& rest) {
    return conversion_error(program(node(op, kSelf + "," + rest, "b") + fill));
  };
  CHECK(through("aten.permute.default", given("dims", R"({"as_ints":[1,0]})")).empty());
  for (const std::string_view dims : {"[9,0]", "[-9,0]", "[0,0]", "[]", "[0,1,2]"}) {
    CAPTURE(dims);
    CHECK(through("aten.permute.default", given("dims", R"({"as_ints":)" + std::string(dims) + "}"))
              .find("node aten.permute.default") != std::string::npos);
  }
  CHECK(through("aten.permute.default", given("dims", R"({"as_none":true})"))
            .find("Expected a list of integers as argument 1, got None") != std::string::npos);
  CHECK(through("aten.transpose.int",
                given("dim0", R"({"as_int":0})") + "," + given("dim1", R"({"as_int":8})"))
            .find("got 8 (node aten.transpose.int") != std::string::npos);
  CHECK(through("aten.split.Tensor",
                given("split_size", R"({"as_int":1})") + "," + given("dim", R"({"as_int":5})"))
            .find("got 5 (node aten.split.Tensor") != std::string::npos);
}

TEST_CASE("composites of the reader are refused where an argument is none") {
  for (const std::string_view op :
       {"aten.chunk.default", "aten.movedim.int", "aten.narrow.default"}) {
    CAPTURE(op);
    CHECK(conversion_error(program(node(op, kSelf, "a"))).find("argument") != std::string::npos);
  }
  const std::string conv =
      node("aten.conv2d.default",
           given("input", R"({"as_none":true})") + "," + given("weight", tensor("x")), "a");
  CHECK(conversion_error(program(conv)).find("Expected a tensor as argument 0, got None") !=
        std::string::npos);
  const std::string linear = node("aten.linear.default", given("weight", tensor("x")), "a");
  CHECK(conversion_error(program(linear)).find("Expected the argument 'input', got none") !=
        std::string::npos);
}
