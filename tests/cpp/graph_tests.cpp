// Tests of graphs: their text, its way back, what is no graph, and the check of a graph.
#include "fairlead/graph/graph.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "graphs.h"

using namespace fairlead;
using namespace fairlead::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// One graph with every kind of line, argument and symbol.
Graph sample() {
  Graph g;
  ExprPool& p = *g.pool;
  const Expr batch = p.symbol("batch"), height = p.symbol("height");
  const Expr count = p.symbol("count_0", SymbolKind::kData);
  const Expr read = p.symbol("read_1", SymbolKind::kRead);
  const Expr sixteenth = p.mul(p.constant(16), height);
  const ValueId x = g.add_value(Dtype::kFloat32, {batch, p.constant(3), sixteenth}, "pixel_values");
  const ValueId mask = g.add_value(Dtype::kBool, {batch}, "mask");
  g.inputs = {x, mask};
  Constant weight;
  weight.value = g.add_value(Dtype::kBfloat16, {p.constant(3), p.constant(8)}, "model.\"w\"\n");
  weight.dims = {3, 8};
  weight.strides = {1, 3};
  g.add_constant(weight);
  Constant scalar;
  scalar.value = g.add_value(Dtype::kInt64, {});
  g.add_constant(scalar);
  g.symbol_sources = {{x, 0, 1}, {x, 2, 16}, {5, 0, 1}, {scalar.value, 3, 1}};
  const ValueId y =
      g.add_value(Dtype::kFloat16, {p.max(batch, read), p.ceildiv(height, p.constant(2))});
  const ValueId z = g.add_value(Dtype::kInt64, {count, p.constant(1)});
  g.nodes.push_back(
      {"aten.some.overload",
       {value_arg(x), int_arg(p.sub(batch, p.constant(1))), float_arg(1e-6), float_arg(-kInfinity),
        float_arg(kInfinity), float_arg(kNan), float_arg(-0.0), float_arg(8),
        float_arg(0.5, batch, -0.5), float_arg(0.25, p.add(batch, height)), bool_arg(true),
        bool_arg(false), string_arg("cpu:\"0\"\\\n\x01"), dtype_arg(Dtype::kFloat8E4m3fn), Arg{},
        list_arg({value_arg(weight.value), Arg{}, list_arg({}),
                  list_arg({int_arg(p.constant(-1)), int_arg(p.max(batch, height))})})},
       {y, kNoValue, z},
       g.keep("model.layers.0"),
       g.keep("modeling.py:7")});
  g.nodes.push_back({"aten.rand.default",
                     {list_arg({int_arg(batch)})},
                     {g.add_value(Dtype::kFloat32, {batch})},
                     {},
                     {},
                     true});
  g.nodes.push_back({"random", {}, {}, {}, g.keep("a.py:1")});
  g.nodes.push_back({"prim::odd name", {}, {kNoValue}, g.keep("m"), {}});
  g.outputs = {y, y, z};
  g.output_names = {"logits", "logits again", ""};
  return g;
}

std::string parse_error(std::string_view text) {
  return error_of(ErrorCode::kParse, [&] { (void)parse_graph(text); });
}

std::string golden(const std::string& name) {
  std::ifstream file(std::string(FAIRLEAD_GOLDEN) + "/" + name);
  REQUIRE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Graphs of any form that check() accepts.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {}

  Graph make() {
    const char* names[] = {"batch", "None",     "inf",  "float32", "nan",
                           "True",  "odd name", "_x.y", "max"};
    for (const char* name : names) {
      if (chance(2)) symbols_.push_back(p().symbol(name, static_cast<SymbolKind>(below(3))));
    }
    for (int k = below(3); k >= 0; --k) {
      made_.push_back(value(chance(2) ? "input" + std::to_string(k) : ""));
      g_.inputs.push_back(made_.back());
    }
    for (int k = below(3); k > 0; --k) add_constant();
    for (int k = below(6); k > 0; --k) add_node();
    for (int k = below(3); k > 0; --k) {
      g_.outputs.push_back(any_value());
      g_.output_names.push_back(word());
    }
    for (std::size_t k = 0; k < symbols_.size(); ++k) {
      if (chance(2)) {
        g_.symbol_sources.push_back({any_value(), below(4), chance(3) ? 16 : 1});
      } else {
        g_.symbol_sources.emplace_back();
      }
    }
    check(g_);
    return std::move(g_);
  }

 private:
  [[nodiscard]] int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  [[nodiscard]] bool chance(int n) { return below(n) == 0; }
  [[nodiscard]] ExprPool& p() { return *g_.pool; }
  [[nodiscard]] ValueId any_value() {
    return made_[static_cast<std::size_t>(below(static_cast<int>(made_.size())))];
  }
  [[nodiscard]] std::string word() {
    static const char* words[] = {"", "x", "a.b.0", "\"", "\\x", "line\nbreak", "ünï", "%1 = ,)]"};
    return words[below(8)];
  }
  [[nodiscard]] Dtype dtype() {
    static const Dtype all[] = {Dtype::kFloat32, Dtype::kBool, Dtype::kComplex64,
                                Dtype::kFloat8E5m2};
    return all[below(4)];
  }

  Expr expr(int depth) {
    if (depth == 0 || chance(3)) {
      if (!symbols_.empty() && chance(2))
        return symbols_[static_cast<std::size_t>(below(static_cast<int>(symbols_.size())))];
      return p().constant(below(40) - 8);
    }
    const Expr a = expr(depth - 1), b = expr(depth - 1);
    switch (below(7)) {
      case 0:
        return p().add(a, b);
      case 1:
        return p().sub(a, b);
      case 2:
        return p().mul(a, b);
      case 3:
        return p().max(a, b);
      case 4:
        return p().min(a, b);
      case 5:
        return is_const(b, 0) ? a : p().floordiv(a, b);
      default:
        return is_const(b, 0) ? a : p().mod(a, b);
    }
  }

  double number() {
    static const double some[] = {0,   -0.0,      1,          -2.5, 1e300, 5e-324,
                                  0.1, kInfinity, -kInfinity, kNan, 1e22};
    return some[below(11)];
  }

  Arg arg(int depth) {
    switch (below(9)) {
      case 0:
        return value_arg(any_value());
      case 1:
      case 2:
        return int_arg(expr(3));
      case 3:
        return chance(2) ? float_arg(number())
                         : float_arg(number(), expr(2), chance(2) ? 1 : number());
      case 4:
        return bool_arg(chance(2));
      case 5:
        return string_arg(word());
      case 6:
        return dtype_arg(dtype());
      case 7: {
        std::vector<Arg> items;
        for (int k = depth > 0 ? below(4) : 0; k > 0; --k) items.push_back(arg(depth - 1));
        return list_arg(std::move(items));
      }
      default:
        return {};
    }
  }

  ValueId value(std::string name) {
    std::vector<Expr> shape;
    for (int k = below(4); k > 0; --k) shape.push_back(expr(2));
    return g_.add_value(dtype(), std::move(shape), std::move(name));
  }

  void add_constant() {
    Constant c;
    std::vector<Expr> shape;
    for (int k = below(3); k > 0; --k) {
      c.dims.push_back(below(5));
      shape.push_back(p().constant(c.dims.back()));
      c.strides.push_back(below(9));
    }
    if (chance(2)) c.strides.clear();
    c.value = g_.add_value(dtype(), std::move(shape), word());
    made_.push_back(c.value);
    g_.add_constant(std::move(c));
  }

  void add_node() {
    Node node;
    node.op = chance(3) ? word() : "aten.op" + std::to_string(below(3)) + ".default";
    for (int k = below(5); k > 0; --k) node.args.push_back(arg(2));
    std::vector<ValueId> made;
    for (int k = below(4); k > 0; --k) {
      node.outputs.push_back(chance(4) ? kNoValue : value(""));
      if (node.outputs.back() != kNoValue) made.push_back(node.outputs.back());
    }
    if (chance(2)) node.module = g_.keep(word());
    if (chance(2)) node.source = g_.keep(word());
    node.random = chance(4);
    g_.nodes.push_back(std::move(node));
    made_.insert(made_.end(), made.begin(), made.end());
  }

  std::mt19937 random_;
  Graph g_;
  std::vector<Expr> symbols_;
  std::vector<ValueId> made_;
};

}  // namespace

TEST_CASE("a graph has the text that is written down") {
  const Graph g = sample();
  check(g);
  CHECK(to_text(g) == golden("graph.txt"));
}

TEST_CASE("a graph is the same after text and back") {
  const Graph g = sample();
  const Graph again = parse_graph(to_text(g));
  check(again);
  check_same(g, again);
  CHECK(to_text(again) == to_text(g));
  check_same(Graph{}, parse_graph(""));
}

TEST_CASE("random graphs are the same after text and back") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    const Graph g = RandomGraph(seed).make();
    const std::string text = to_text(g);
    CAPTURE(text);
    const Graph again = parse_graph(text);
    check_same(g, again);
    CHECK(to_text(again) == text);
  }
}

TEST_CASE("blanks, comments and empty lines say nothing") {
  const Graph g = parse_graph(
      "# a graph\r\n\n symbol  b : size = %0 [ 0 ]\r\n  input %0\"x\":float32[ b,2 ]\n"
      "%1:float32[b]=aten.op ( %0 , [ ] ,2.0*( b )^0.5 )in\"m\"at\"s\"\noutput\"y\"=%1");
  CHECK(to_text(g) ==
        "symbol b: size = %0[0]\n"
        "input %0 \"x\": float32[b, 2]\n"
        "%1: float32[b] = aten.op(%0, [], 2.0*(b)^0.5) in \"m\" at \"s\"\n"
        "output \"y\" = %1\n");
}

TEST_CASE("values that nothing makes keep their numbers") {
  const Graph g = parse_graph("input %4: int64[]\noutput \"\" = %4\n");
  CHECK(g.values.size() == 5);
  CHECK(to_text(g) == "input %4: int64[]\noutput \"\" = %4\n");
}

TEST_CASE("text that is no graph is refused with line and column") {
  CHECK(parse_error("\nhello") ==
        "[parse_graph] Expected symbol, input, constant, output, require or a value, got 'h' (line "
        "2, "
        "column 1).");
  CHECK(parse_error("input %0 \"x: float32[]") ==
        "[parse_graph] Expected a closing '\"', got the end of the line (line 1, column 23).");
  CHECK(parse_error("input %0: float31[]") ==
        "[parse_graph] Expected a dtype, got 'f' (line 1, column 11).");
  CHECK(parse_error("input %0: float32[2 3]") ==
        "[parse_graph] [parse] Expected an operator or the end at column 3 of \"2 3\", got '3' "
        "(line 1, "
        "column 19).");
  CHECK(parse_error("input %0: float32[n]") ==
        "[parse_graph] Expected symbols that a line declares, got 'n' (line 1, column 19).");
  CHECK(parse_error("input %0: float32[2") ==
        "[parse_graph] Expected ',' or ']', got the end of the line (line 1, column 20).");
  CHECK(parse_error("input %x: float32[2]") ==
        "[parse_graph] Expected the number of a value, got 'x' (line 1, column 8).");
  CHECK(parse_error("input %2000000000: float32[2]") ==
        "[parse_graph] Expected the number of a value below 1048605, got 2000000000 (line 1, "
        "column 8).");
  CHECK(parse_error("input %99999999999999999999: float32[2]") ==
        "[parse_graph] Expected a number of 64 bits, got '9' (line 1, column 8).");
  CHECK(parse_error("input %0: int64[]\ninput %0: int64[]") ==
        "[parse_graph] Expected every value to be made once, got %0 again (line 2, column 1).");
  CHECK(parse_error("output \"y\" = %0") ==
        "[parse_graph] Expected a value made on a line before, got %0 (line 1, column 13).");
  CHECK(parse_error("%0: int64[] = aten.op(%0)") ==
        "[parse_graph] Expected a value made on a line before, got %0 (line 1, column 23).");
  CHECK(parse_error("() = aten.op(1, \"\\q\")") ==
        "[parse_graph] Expected 'n', 'x', '\"' or '\\' after '\\', got 'q' (line 1, column 19).");
  CHECK(parse_error("() = aten.op(\"\\x1g\")") ==
        "[parse_graph] Expected a hexadecimal digit, got 'g' (line 1, column 18).");
  CHECK(parse_error("() = aten.op(1e999)") ==
        "[parse_graph] Expected a number that a double can hold, got '1' (line 1, column 14).");
  CHECK(parse_error("() = aten.op(1.0*(2)^x)") ==
        "[parse_graph] Expected a power with a point, got 'x' (line 1, column 22).");
  CHECK(parse_error("() = aten.op(1.0 2.0)") ==
        "[parse_graph] Expected ',' or ')', got '2' (line 1, column 18).");
  CHECK(parse_error("() = aten.op(" + std::string(1000, '[')) ==
        "[parse_graph] Expected at most 200 nested lists, got '[' (line 1, column 215).");
  CHECK(parse_error("() = (1)") ==
        "[parse_graph] Expected the name of an operator, got '(' (line 1, column 6).");
  CHECK(parse_error("() = aten.op() here") ==
        "[parse_graph] Expected the end of the line, got 'h' (line 1, column 16).");
  CHECK(parse_error("symbol a: size\nsymbol a: data") ==
        "[parse_graph] Expected every symbol once, got 'a' again (line 2, column 8).");
  CHECK(parse_error("symbol a: length") ==
        "[parse_graph] Expected size, data or read, got 'l' (line 1, column 11).");
  CHECK(parse_error("symbol ``: size") ==
        "[parse_graph] Expected the name of a symbol, got none (line 1, column 8).");
  CHECK(parse_error("symbol 3: size") ==
        "[parse_graph] Expected the name of a symbol, got '3' (line 1, column 8).");
  CHECK(parse_error("symbol a: size = %0[-1]") ==
        "[parse_graph] Expected an axis or an element of at least 0 (line 1, column 21).");
  CHECK(parse_error("symbol a: size = %0[0] // 0") ==
        "[parse_graph] Expected a divisor of at least 1 (line 1, column 26).");
  CHECK(parse_error("symbol a: size\nconstant %0: int8[a]") ==
        "[parse_graph] Expected a constant whose sizes are numbers (line 2, column 1).");
  CHECK(parse_error("constant %0: int8[2, 3] strides [1]") ==
        "[parse_graph] Expected one stride for each of 2 sizes, got 1 (line 1, column 32).");
}

TEST_CASE("no damage to a text crashes the reader") {
  const std::string text = to_text(sample());
  const auto try_parse = [](const std::string& damaged) {
    try {
      const std::string read = to_text(parse_graph(damaged));
      CHECK(to_text(parse_graph(read)) == read);
    } catch (const Error& error) {
      CAPTURE(damaged);
      CHECK(error.code() == ErrorCode::kParse);
    }
  };
  for (std::size_t k = 0; k < text.size(); ++k) try_parse(text.substr(0, k));
  std::mt19937 random(7);
  const std::string letters = "%[](){}\"\\`,:=*/^-+.0123456789abex \n";
  for (int k = 0; k < 4000; ++k) {
    std::string damaged = text;
    for (unsigned times = 1 + random() % 4; times > 0; --times) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = letters[random() % letters.size()];
          break;
        case 1:
          damaged.erase(at, 1 + random() % 8);
          break;
        case 2:
          damaged.insert(at, 1, letters[random() % letters.size()]);
          break;
        default:
          damaged.insert(at, text.substr(random() % text.size(), random() % 30));
          break;
      }
      if (damaged.empty()) damaged.push_back(' ');
    }
    try_parse(damaged);
  }
}

TEST_CASE("a graph that reads what is not made is our own mistake") {
  const auto check_error = [](std::string_view text, auto change) {
    Graph g = parse_graph(text);
    change(g);
    const std::string error = error_of(ErrorCode::kInternal, [&] { check(g); });
    return error;
  };
  const auto has = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const char* text = "input %0: int64[]\n%1: int64[] = aten.neg.default(%0)\noutput \"y\" = %1\n";
  has(check_error(text, [](Graph& g) { g.nodes[0].args[0].value = 1; }),
      "aten.neg.default reads %1 before it is made");
  has(check_error(text, [](Graph& g) { g.nodes[0].args[0] = list_arg({value_arg(9)}); }),
      "aten.neg.default names unknown value %9");
  has(check_error(text, [](Graph& g) { g.nodes[0].outputs = {0}; }),
      "aten.neg.default makes %0 a second time");
  has(check_error(text, [](Graph& g) { g.nodes[0].outputs = {7}; }),
      "aten.neg.default names unknown value %7");
  has(check_error(text, [](Graph& g) { g.nodes.clear(); }), "an output reads %1 before it is made");
  has(check_error(text, [](Graph& g) { g.outputs = {-1}; }), "an output names unknown value %-1");
  has(check_error(text, [](Graph& g) { g.inputs = {0, 0}; }), "an input makes %0 a second time");
}

TEST_CASE("a constant is found by its value, and names live as long as the graph") {
  Graph g = parse_graph("constant %0 \"w\": float32[2]\nconstant %1: int8[]\n");
  REQUIRE(g.constant(1) != nullptr);
  CHECK(g.constant(1)->dims.empty());
  CHECK(g.constant(0)->dims == std::vector<std::int64_t>{2});
  CHECK(g.constant(5) == nullptr);
  const std::string_view name = g.keep(std::string("model.layers.0"));
  for (int k = 0; k < 1000; ++k) (void)g.keep(std::to_string(k));
  CHECK(name == "model.layers.0");
  CHECK(g.keep("model.layers.0").data() == name.data());
}
