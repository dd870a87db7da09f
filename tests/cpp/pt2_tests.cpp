// Programs of torch.export: the archive, its sizes and names, control flow, and every way to be
// damaged.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/onnx/lowering.h"
#include "fairlead/passes/passes.h"
#include "fairlead/pt2/import.h"
#include "fairlead/pt2/sympy.h"
#include "fairlead/pt2/treespec.h"

using namespace fairlead;

namespace {

const std::string kGolden = FAIRLEAD_GOLDEN;

std::string file_text(const std::string& name) {
  std::ifstream file(kGolden + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

pt2::Imported read(const std::string& bytes) {
  return pt2::read_pt2(std::as_bytes(std::span(bytes)), "test.pt2");
}

// The error that reading gives; "" where it is read.
std::string error_of(const std::string& bytes, ErrorCode* code = nullptr) {
  try {
    (void)read(bytes);
    return "";
  } catch (const Error& error) {
    if (code != nullptr) *code = error.code();
    return error.what();
  }
}

std::string replaced(std::string bytes, std::string_view from, std::string_view to) {
  REQUIRE(from.size() == to.size());  // offsets in the archive stay right
  std::size_t count = 0;
  for (std::size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + 1)) {
    bytes.replace(at, from.size(), to);
    ++count;
  }
  REQUIRE(count > 0);
  return bytes;
}

std::string sympy(std::string_view text) {
  ExprPool pool;
  return pool.to_string(
      pt2::parse_sympy(text, pool, [&](std::string_view name) { return pool.symbol(name); }));
}

constexpr std::string_view kS = "Symbol('s0', positive=True, integer=True)";

}  // namespace

TEST_CASE("sizes are read from sympy's text") {
  const std::string s(kS);
  CHECK(sympy("Add(Mul(Integer(2), " + s + "), Integer(1))") == "2*s0 + 1");
  CHECK(sympy("FloorDiv(" + s + ", Integer(2))") == "s0//2");
  CHECK(sympy("Pow(" + s + ", Integer(2))") == sympy("Mul(" + s + ", " + s + ")"));
  CHECK(sympy("Max(Integer(1), Min(" + s + ", Symbol('u1')))") == "max(min(s0, u1), 1)");
  CHECK(sympy("Mod(" + s + ", Integer(4))") == "s0%4");
  CHECK(sympy("CeilToInt(IntTrueDiv(" + s + ", Integer(4)))") == "ceildiv(s0, 4)");
  const auto scaled = [&](const std::string& factor) {
    return sympy("TruncToInt(Mul(Float('" + factor + "', precision=53), ToFloat(" + s + ")))");
  };
  CHECK(scaled("2.0") == "2*s0");
  CHECK(scaled("1.5") == "(3*s0)//2");
  CHECK_THROWS_AS((void)scaled("1.7"), Error);  // 1.7 * 10 is 17 only after rounding
}

TEST_CASE("a comparison of sizes is 0 or 1") {
  ExprPool pool;
  const auto at = [&](std::string_view function, std::int64_t value) {
    const std::string text = std::string(function) + "(" + std::string(kS) + ", Integer(4))";
    const Expr e = pt2::parse_sympy(text, pool, [&](std::string_view n) { return pool.symbol(n); });
    return pool.evaluate(e, std::vector<std::int64_t>{value});
  };
  struct Row {
    std::string_view function;
    std::int64_t below, same, above;
  };
  for (const Row& row : {Row{"StrictGreaterThan", 0, 0, 1}, Row{"GreaterThan", 0, 1, 1},
                         Row{"StrictLessThan", 1, 0, 0}, Row{"LessThan", 1, 1, 0},
                         Row{"Equality", 0, 1, 0}, Row{"Unequality", 1, 0, 1}}) {
    CAPTURE(row.function);
    CHECK(at(row.function, 2) == row.below);
    CHECK(at(row.function, 4) == row.same);
    CHECK(at(row.function, 9) == row.above);
  }
}

TEST_CASE("a float that follows from a size is number * base^power") {
  ExprPool pool;
  const auto symbol = [&](std::string_view n) { return pool.symbol(n); };
  const std::string s(kS);
  const pt2::SymFloat half =
      pt2::parse_sympy_float("IntTrueDiv(" + s + ", Integer(2))", pool, symbol);
  CHECK(half.number == 0.5);
  CHECK(pool.to_string(half.base) == "s0");
  const pt2::SymFloat root = pt2::parse_sympy_float(
      "FloatTrueDiv(Float('3.0', precision=53), OpaqueUnaryFn_sqrt(ToFloat(" + s + ")))", pool,
      symbol);
  CHECK(root.number == 3.0);
  CHECK(root.power == -0.5);
}

TEST_CASE("sizes that are no expressions are refused in one sentence") {
  CHECK_THROWS_WITH_AS(
      sympy("Foo(Integer(1))"),
      "[pt2] Expected sizes made of sums, products, divisions, maxima and minima, got Foo in "
      "'Foo(Integer(1))'. Fix the dimension it depends on.",
      Error);
  for (const char* text : {"", "Add(", "Integer(x)", "Symbol(s0)", "Integer(1) Integer(2)",
                           "FloorDiv(Integer(1))", "Integer(99999999999999999999)"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(sympy(text), Error);
  }
  std::string deep;
  for (int k = 0; k < 100000; ++k) deep += "Add(";
  CHECK_THROWS_AS(sympy(deep), Error);
}

TEST_CASE("inputs and outputs are named by their paths") {
  constexpr std::string_view kLeaf = R"({"type": null, "context": null, "children_spec": []})";
  const auto tree = [](std::string_view type, std::string_view context, std::string_view children) {
    return R"({"type": ")" + std::string(type) + R"(", "context": ")" + std::string(context) +
           R"(", "children_spec": [)" + std::string(children) + "]}";
  };
  const std::string leaf(kLeaf);
  const std::string lists = tree("builtins.list", "null", leaf + "," + leaf);
  const std::string cache = tree("transformers.cache_utils.DynamicCache",
                                 R"([\"key_cache\", \"value_cache\"])", lists + "," + lists);
  const std::string arguments = tree("builtins.tuple", "null", leaf);
  const std::string named =
      tree("builtins.dict", R"([\"past_key_values\", \"y\"])", cache + "," + lists);
  const std::string call = "[1, " + tree("builtins.tuple", "null", arguments + "," + named) + "]";
  CHECK(pt2::input_names(call, {"input_ids"}) ==
        std::vector<std::string>{"input_ids", "past_key_values.0.key", "past_key_values.1.key",
                                 "past_key_values.0.value", "past_key_values.1.value", "y.0",
                                 "y.1"});
  CHECK(pt2::output_paths("[1, " + leaf + "]") == std::vector<std::string>{"output"});
  CHECK(pt2::output_paths("[1, " + lists + "]") == std::vector<std::string>{"0", "1"});
  CHECK(pt2::output_names({"logits", "past_key_values.0.key", "x"}, {"x"}) ==
        std::vector<std::string>{"logits", "present.0.key", "present.x"});
  CHECK_THROWS_AS((void)pt2::output_paths("[1"), Error);
}

TEST_CASE("a program is read with its symbols, ranges, names and writes") {
  const pt2::Imported imported = pt2::read_pt2(kGolden + "/mlp.pt2");
  CHECK(pt2::contract(imported) ==
        "Symbols\n"
        "  batch: from axis 0 of x; allowed 2 to 64\n"
        "Inputs\n"
        "  x: float32[batch, 4]\n"
        "  scale.by: float32[2]\n"
        "Outputs\n"
        "  padded: float32[batch + 1, 2]\n"
        "  scaled: float32[batch, 2]\n"
        "Written by the model: calls\n"
        "Note: from a program that torch.export " +
            imported.torch_version + " made");
  REQUIRE(imported.symbols.size() == 1);
  CHECK(imported.symbols[0].example == 3);
  const std::string text = to_text(imported.program.graph);
  CHECK(text.find("aten.slice_scatter.default") != std::string::npos);
  CHECK(text.find("in \"layers.0\"") != std::string::npos);
  // The weights are the file's own bytes.
  const std::string bytes = file_text("mlp.pt2");
  const pt2::Imported borrowed = read(bytes);
  for (const Constant& constant : borrowed.program.graph.constants) {
    const auto* at = reinterpret_cast<const char*>(constant.data);
    CHECK((at >= bytes.data() && at < bytes.data() + bytes.size()));
  }
}

TEST_CASE("branches and loops are bodies, written, read and lowered") {
  pt2::Imported imported = pt2::read_pt2(kGolden + "/control.pt2");
  Graph& graph = imported.program.graph;
  run_passes(graph);
  const std::string text = to_text(graph);
  CHECK(text.find("higher_order.cond") != std::string::npos);
  const Graph again = parse_graph(text);
  check(again);
  CHECK(to_text(again) == text);
  const onnx::Model model = onnx::lower_graph(graph, {});
  std::vector<std::string> ops;
  for (const onnx::Node& node : model.graph.nodes) ops.push_back(node.op);
  CHECK(ops == std::vector<std::string>{"ReduceSum", "Greater", "If", "Greater", "Loop"});
}

TEST_CASE("bodies see what is outside, and nothing outside sees them") {
  const std::string head = "input %0: float32[2]\ninput %1: bool[]\n";
  const std::string node = "%2: float32[2] = higher_order.cond(%1)\n";
  const std::string branch = "body\n%3: float32[2] = aten.abs.default(%0)\nresult %3\nend\n";
  CHECK_NOTHROW((void)parse_graph(head + node + branch + "body\nresult %0\nend\n"));
  const auto fails = [](const std::string& text, const char* message) {
    CHECK_THROWS_WITH_AS((void)parse_graph(text), message, Error);
  };
  fails(head + node + branch + "output \"y\" = %3\n",
        "[parse_graph] Expected a value made on a line before, got %3 (line 8, column 13).");
  fails(head + node + "body\nresult %2\nend\n",
        "[parse_graph] Expected a value made on a line before, got %2 (line 5, column 8).");
  fails(head + node + branch + branch,
        "[parse_graph] Expected every value to be made once, got %3 again (line 9, column 1).");
  fails(head + node + "body\n",
        "[parse_graph] Expected 'end' of a body, got the end of the text (line 5, column 1).");
  fails(head + "body\n",
        "[parse_graph] Expected a node before a body, got the end of the line (line 3, column 5).");
}

TEST_CASE("an archive that is cut off anywhere is refused") {
  const std::string bytes = file_text("control.pt2");
  REQUIRE(bytes.size() > 1000);
  for (std::size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 97) {
    CAPTURE(size);
    CHECK(error_of(bytes.substr(0, size)).starts_with("[pt2] Expected a zip archive"));
  }
}

TEST_CASE("damaged bytes give an error or a program, never a crash") {
  std::mt19937 random(7);
  for (const char* name : {"mlp.pt2", "control.pt2"}) {
    const std::string bytes = file_text(name);
    for (int k = 0; k < 3000; ++k) {
      std::string damaged = bytes;
      for (int n = 0; n < 1 + k % 3; ++n) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      ErrorCode code = ErrorCode::kParse;
      const std::string message = error_of(damaged, &code);
      CAPTURE(message);
      CHECK(code != ErrorCode::kInternal);
      CHECK(message.find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("what is wrong with a file is said in one sentence") {
  const std::string bytes = file_text("mlp.pt2");
  CHECK(error_of("hello") ==
        "[pt2] Expected a zip archive that torch.export.save wrote, got a file of 5 bytes "
        "(test.pt2). Save the program again.");
  CHECK(error_of(std::string(1000, 'x')) ==
        "[pt2] Expected a zip archive that torch.export.save wrote, got a file that is no zip "
        "archive (test.pt2). "
        "Save the program again.");
  CHECK(error_of(replaced(bytes, R"("major": 8)", R"("major": 9)"))
            .starts_with("[pt2] Expected a program of schema version 8, got version 9 of torch "));
  CHECK(error_of(replaced(bytes, R"("path_name": "weight_0")", R"("path_name": "weight_9")")) ==
        "[pt2] Expected the bytes of 'layers.0.weight' in mlp/data/weights/weight_9, got no such "
        "entry. Save the "
        "program again (test.pt2).");
  CHECK(error_of(replaced(bytes, R"("layers.0.bias": {"path)", R"("layers.0.xxxx": {"path)")) ==
        "[pt2] Expected a tensor for 'layers.0.bias', got none: the weights are incomplete. Save "
        "the program again "
        "(test.pt2).");
  CHECK(error_of(replaced(bytes, "models/model.json", "modelz/model.json"))
            .starts_with("[pt2] Expected a program under models/, got an archive without one."));
  ErrorCode code = ErrorCode::kParse;
  const std::string missing = [&]() -> std::string {
    try {
      (void)pt2::read_pt2("/nonexistent/program.pt2");
    } catch (const Error& error) {
      code = error.code();
      return error.what();
    }
    return "";
  }();
  CHECK(code == ErrorCode::kIo);
  CHECK(missing ==
        "[pt2] Could not read '/nonexistent/program.pt2': No such file or directory. Give the name "
        "of a "
        "file that torch.export.save wrote.");
}

TEST_CASE("an operator without a lowering is named") {
  pt2::Imported imported = read(
      replaced(file_text("mlp.pt2"), "torch.ops.aten.gelu.default", "torch.ops.mine.gelu.default"));
  CHECK_THROWS_WITH_AS((void)onnx::lower_graph(imported.program.graph, {}),
                       doctest::Contains("mine.gelu.default (1x, first in layers.1 at "), Error);
}
