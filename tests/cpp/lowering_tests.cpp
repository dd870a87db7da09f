// Tests of lowering: sharing, reshapes, weights, names, and what cannot be lowered.
#include "fairlead/onnx/lowering.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <set>

#include "graphs.h"

using namespace fairlead;
using namespace fairlead::test;
using onnx::attr;
using onnx::Lowering;
using onnx::Val;

namespace {

// The name of a tensor; integers of the initializers stand for themselves.
std::string tensor_text(const onnx::Model& model, onnx::TensorId id) {
  if (id == onnx::kAbsent) return "-";
  for (const onnx::Initializer& i : model.graph.initializers) {
    if (i.tensor != id || i.data.dtype != Dtype::kInt64 || i.data.dims.size() > 1) continue;
    const std::size_t count = i.data.dims.empty() ? 1 : static_cast<std::size_t>(i.data.dims[0]);
    std::string text;
    for (std::size_t k = 0; k < count; ++k) {
      std::int64_t value = 0;
      std::memcpy(&value, i.data.data + k * 8, 8);
      if (k > 0) text += ' ';
      text += std::to_string(value);
    }
    return i.data.dims.empty() ? text : "[" + text + "]";
  }
  return model.tensors[static_cast<std::size_t>(id)].name;
}

std::string attribute_text(const onnx::Attribute& a) {
  std::string text = " " + a.name + "=";
  if (const auto* i = std::get_if<std::int64_t>(&a.value)) return text + std::to_string(*i);
  if (const auto* s = std::get_if<std::string>(&a.value)) return text + *s;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&a.value)) {
    for (const std::int64_t v : *list) text += std::to_string(v) + " ";
    text.pop_back();
    return text;
  }
  return text + "?";
}

// One line per node: "name = Op(inputs) attribute=value"
std::string model_text(const onnx::Model& model) {
  std::string text;
  for (const onnx::Node& node : model.graph.nodes) {
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      text += (k == 0 ? "" : ", ") + tensor_text(model, node.outputs[k]);
    }
    text += " = " + node.op + "(";
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      text += (k == 0 ? "" : ", ") + tensor_text(model, node.inputs[k]);
    }
    text += ")";
    for (const onnx::Attribute& a : node.attributes) text += attribute_text(a);
    text += "\n";
  }
  return text;
}

// A graph from text whose constants have bytes: of one place where their names are equal.
struct Source {
  Graph graph;
  std::deque<std::vector<std::byte>> storage;

  explicit Source(const std::string& text) : graph(parse_graph(text)) {
    std::map<std::string, const std::byte*> by_name;
    for (Constant& c : graph.constants) {
      std::size_t size = 16;
      for (const std::int64_t d : c.dims) size *= static_cast<std::size_t>(d);
      const std::string& name = graph.values[c.value].name;
      auto [it, fresh] = by_name.try_emplace(name);
      if (fresh) it->second = storage.emplace_back(size).data();
      c.data = it->second;
    }
    check(graph);
  }
  [[nodiscard]] onnx::Model lower() const { return onnx::lower_graph(graph, {}); }
};

std::string lowered(const std::string& text) { return model_text(Source(text).lower()); }

const std::string kHead =
    "symbol b: size = %0[0]\n"
    "symbol s: size = %0[1]\n"
    "input %0 \"x\": float32[b, s, 8]\n";

// The lines of one node that makes %1 from %0, the output.
std::string one(const std::string& line) { return lowered(kHead + line + "\noutput \"y\" = %1\n"); }

}  // namespace

TEST_CASE("the table of operators has every name once, sorted, with a form") {
  std::set<std::string_view> names;
  std::string_view last;
  for (const onnx::OpRow& row : onnx::op_rows()) {
    CAPTURE(row.aten);
    CHECK(names.insert(row.aten).second);
    CHECK(last < row.aten);
    last = row.aten;
    CHECK((row.lower != nullptr));
    CHECK_FALSE(row.form.empty());
    CHECK((row.aten.starts_with("aten.") || row.aten.find('.') != std::string_view::npos));
    CHECK(onnx::find_op(row.aten) == &row);
  }
  CHECK(names.size() > 300);
  CHECK(onnx::find_op("aten.no_such.default") == nullptr);
}

TEST_CASE("what a runtime has no kernel for computes in another type, by its profile") {
  const std::string text =
      "input %0 \"x\": bfloat16[2, 3]\ninput %1 \"w\": bfloat16[3, 4]\n"
      "%2: bfloat16[2, 4] = aten.mm.default(%0, %1)\noutput \"y\" = %2\n";
  const auto casts = [&](Provider provider) {
    onnx::LowerOptions options;
    options.runtime.provider = provider;
    const onnx::Model model = onnx::lower_graph(Source(text).graph, options);
    return std::count_if(model.graph.nodes.begin(), model.graph.nodes.end(),
                         [](const onnx::Node& node) { return node.op == "Cast"; });
  };
  CHECK(casts(Provider::kOnnxRuntimeCpu) == 3);
  CHECK(casts(Provider::kPortable) == 0);
}

TEST_CASE("a size that nothing gives is an error") {
  const std::string text =
      "symbol n: size\n%0: float32[n] = aten.ones.default([n])\noutput \"y\" = %0\n";
  CHECK_THROWS_WITH_AS((void)onnx::lower_graph(Source(text).graph, {}),
                       doctest::Contains("for symbol n, got none. Give its place in the graph."),
                       Error);
}

TEST_CASE("what a runtime does wrong is avoided there, and nowhere else") {
  struct Row {
    onnx::Fault fault;
    std::string own;    // the node that is written where nothing is wrong
    std::string other;  // and one beside or instead of it otherwise
    std::string text;
  };
  const Row rows[] = {
      {onnx::Fault::kClipLosesNan, "Clip", "Max",
       "input %0 \"x\": float32[5]\n%1: float32[5] = aten.clamp.default(%0, 0.5, None)\n"
       "output \"y\" = %1\n"},
      {onnx::Fault::kEinsumOfNothing, "Einsum", "MatMul",
       "symbol n: size = %0[0]\ninput %0 \"x\": float32[n, 3]\ninput %1 \"y\": float32[3, n]\n"
       "%2: float32[n, n] = aten.einsum.default(\"ij,jk->ik\", [%0, %1], None)\noutput \"z\" = "
       "%2\n"},
      {onnx::Fault::kFmodThroughDouble, "Mod", "Mul",
       "input %0 \"x\": int64[5]\n%1: int64[5] = aten.fmod.Scalar(%0, 3)\noutput \"y\" = %1\n"},
      {onnx::Fault::kIntegersThroughDouble, "ReduceProd", "Mul",
       "input %0 \"x\": int64[5, 3]\n%1: int64[5] = aten.prod.dim_int(%0, 1, False, None)\n"
       "output \"y\" = %1\n"},
      {onnx::Fault::kIntegersThroughDouble, "ReduceSum", "Add",
       "input %0 \"x\": int64[5, 3]\n%1: int64[5] = aten.sum.dim_IntList(%0, [1], False, None)\n"
       "output \"y\" = %1\n"},
      {onnx::Fault::kMatrixOfNothing, "MatMul", "Unsqueeze",
       "input %0 \"x\": float32[5, 3]\ninput %1 \"y\": float32[3]\n"
       "%2: float32[5] = aten.mv.default(%0, %1)\noutput \"z\" = %2\n"},
      {onnx::Fault::kWideComparisons, "Max", "Where",
       "input %0 \"x\": int64[5]\ninput %1 \"y\": int64[5]\n"
       "%2: int64[5] = aten.maximum.default(%0, %1)\noutput \"z\" = %2\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.own);
    for (const Provider provider : {Provider::kOnnxRuntimeCpu, Provider::kPortable}) {
      onnx::LowerOptions options;
      options.runtime.provider = provider;
      const onnx::Model model = onnx::lower_graph(Source(row.text).graph, options);
      std::set<std::string> written;
      for (const onnx::Node& node : model.graph.nodes) written.insert(node.op);
      const bool wrong = onnx::has_fault(options.runtime, row.fault);
      CHECK(wrong == (provider == Provider::kOnnxRuntimeCpu));
      CHECK(written.contains(row.other) == wrong);
      if (!wrong) CHECK(written == std::set<std::string>{row.own});
    }
  }
}

TEST_CASE("every fault has its rows, with words, and versions in order") {
  std::set<onnx::Fault> known;
  for (const onnx::FaultRow& row : onnx::fault_rows()) {
    known.insert(row.fault);
    CHECK_FALSE(row.words.empty());
    CHECK((row.fixed == 0 || row.since < row.fixed));
  }
  CHECK(known.size() == static_cast<std::size_t>(onnx::Fault::kCount));
}

TEST_CASE("an opset that the runtime does not have is refused") {
  onnx::LowerOptions options;
  options.opset = 24;
  options.runtime.version = 22;
  const Source source(
      "input %0 \"x\": float32[2]\n%1: float32[2] = aten.relu.default(%0)\noutput \"y\" = %1\n");
  CHECK(error_of(ErrorCode::kInvalidInput, [&] {
          (void)onnx::lower_graph(source.graph, options);
        }) == "[lower] Expected an opset from 18 to 23, got 24.");
  options.runtime.version = 24;
  CHECK_NOTHROW((void)onnx::lower_graph(source.graph, options));
}

TEST_CASE("operators without a lowering are listed with count and first place") {
  const Source source(
      "input %0: float32[2]\n"
      "%1: float32[2] = aten.zz_other(%0)\n"
      "%2: float32[2] = mylib.op(%0) in \"model.layers.0\" at \"a.py:1\"\n"
      "%3: float32[2] = aten.relu.default(%2)\n"
      "%4: float32[2] = mylib.op(%3) in \"model.layers.1\" at \"a.py:2\"\n"
      "output \"y\" = %4\n");
  CHECK(error_of(ErrorCode::kUnsupported, [&] { (void)source.lower(); }) ==
        "[lower] Expected operators that can be written to ONNX, got 2 that cannot: aten.zz_other "
        "(1x, "
        "first in the model at ); mylib.op (2x, first in model.layers.0 at a.py:1). Register a "
        "lowering "
        "for each, or replace them in the model.");
}

TEST_CASE("every form that cannot be written is in one error, each place with its count") {
  const Source source(
      "input %0: float32[2]\n"
      "%1: float32[2] = mylib.op(%0) in \"a\" at \"a.py:1\"\n"
      "%2: float32[2] = aten.relu.default(%1)\n"
      "%3: float32[2] = mylib.op(%2) in \"a\" at \"a.py:1\"\n"
      "%4: float32[2] = mylib.other(%3) in \"b\" at \"b.py:2\"\n"
      "output \"y\" = %4\n");
  onnx::register_op({"mylib.op", [](Lowering& b) { b.unsupported("too odd"); }, "", ""});
  onnx::register_op({"mylib.other", [](Lowering& b) { b.unsupported("too even"); }, "", ""});
  try {
    (void)source.lower();
    FAIL("nothing was refused");
  } catch (const Error& error) {
    CHECK(
        std::string(error.what()) ==
        "[lower] mylib.op: too odd (in a at a.py:1). Also mylib.other: too even (in b at b.py:2).");
    REQUIRE(error.details().size() == 2);
    const std::pair<std::string, std::string> twice{"count", "2"};
    CHECK(error.details()[0].fields.back() == twice);
  }
  onnx::unregister_op("mylib.op");
  onnx::unregister_op("mylib.other");
}

TEST_CASE("windows and offsets whose sums are no numbers of 64 bits are refused") {
  for (const std::string node :
       {"aten.im2col.default(%0, [2, 2], [1, 1], [0, 0], [1, -9223372036854775808])",
        "aten.im2col.default(%0, [-9223372036854775808, 2], [1, 1], [0, 0], [1, 1])",
        "aten.max_pool2d.default(%0, [-9223372036854775808, 2], [2, 2])",
        "aten.max_pool2d.default(%0, [2, 2], [2, 2], [0, 9223372036854775807])",
        "aten.round.decimals(%0, -9223372036854775808)",
        "aten.diag_embed.default(%0, -9223372036854775808)"}) {
    CAPTURE(node);
    const Source source("input %0: float32[1, 2, 4, 4]\n%1: float32[1, 2, 2, 2] = " + node +
                        "\noutput \"y\" = %1\n");
    CHECK_THROWS_WITH_AS((void)source.lower(), doctest::Contains("a number of 2147483647 at most"),
                         Error);
  }
}

TEST_CASE("an equation without a letter for each axis is refused") {
  for (const std::string equation : {"ij,kj->ik", "i,kj->ik", "ijkl,kjm->ik", "ijm,kjm->iz"}) {
    CAPTURE(equation);
    const Source source(
        "symbol b: size = %0[0]\ninput %0: float32[b, 3, 4]\ninput %1: float32[5, 3, 4]\n"
        "%2: float32[b, 5] = aten.einsum.default(\"" +
        equation + "\", [%0, %1])\noutput \"y\" = %2\n");
    CHECK_THROWS_WITH_AS((void)source.lower(), doctest::Contains("expected an equation"), Error);
  }
}

TEST_CASE("a shift by the least integer is one within the size") {
  const Source source(
      "input %0: float32[1, 2, 3, 4]\n"
      "%1: float32[1, 2, 3, 4] = aten.roll.default(%0, [-9223372036854775808], [2])\n"
      "output \"y\" = %1\n");
  CHECK_NOTHROW((void)source.lower());
}

TEST_CASE("an operator of one's own is lowered by what was registered, until it is taken back") {
  const Source source(
      "input %0 \"x\": float32[2]\n%1: float32[2] = mylib.op(%0)\noutput \"y\" = %1\n");
  onnx::register_op(
      {"mylib.op", [](Lowering& b) { b.result(b.op("Softsign", {b.in(0)})); }, "Softsign", ""});
  CHECK(model_text(source.lower()) == "y = Softsign(x)\n");
  onnx::unregister_op("mylib.op");
  (void)error_of(ErrorCode::kUnsupported, [&] { (void)source.lower(); });
}

TEST_CASE("nodes are named after their module, and twice the same name is numbered") {
  const Source source(
      "input %0 \"x\": float32[2]\n"
      "%1: float32[2] = aten.relu.default(%0) in \"model.layers.0.self_attn\" at \"a.py:1\"\n"
      "%2: float32[2] = aten.relu.default(%1) in \"model.layers.0.self_attn\"\n"
      "%3: float32[2] = aten.relu.default(%2)\n"
      "%4: float32[2] = aten.relu.default(%3) in \"0.1.act\"\n"
      "output \"y\" = %4\n");
  const onnx::Model model = source.lower();
  std::vector<std::string> names;
  for (const onnx::Node& node : model.graph.nodes) names.push_back(node.name);
  CHECK(names == std::vector<std::string>{"/model/layers.0/self_attn/Relu",
                                          "/model/layers.0/self_attn/Relu_1", "/Relu",
                                          "/0.1/act/Relu"});
  CHECK(model.graph.nodes[0].module == "model.layers.0.self_attn");
  CHECK(model.graph.nodes[0].source == "a.py:1");
  CHECK(model.tensors[static_cast<std::size_t>(model.graph.nodes[0].outputs[0])].name ==
        "/model/layers.0/self_attn/Relu_output_0");
}

TEST_CASE("a node that is emitted twice is one node") {
  CHECK(lowered(kHead + "%1: float32[b, s, 8] = aten.relu.default(%0)\n"
                        "%2: float32[b, s, 8] = aten.relu.default(%0)\n"
                        "%3: float32[b, s, 8] = aten.mul.Tensor(%1, %2)\n"
                        "output \"y\" = %3\n") ==
        "/Relu_output_0 = Relu(x)\ny = Mul(/Relu_output_0, /Relu_output_0)\n");
}

TEST_CASE("random nodes are never one") {
  const onnx::Model model =
      Source(kHead +
             "%1: float32[4] = random aten.rand.default([4], None, None, None, None)\n"
             "%2: float32[4] = random aten.rand.default([4], None, None, None, None)\n"
             "%3: float32[4] = aten.add.Tensor(%1, %2, 1)\n"
             "output \"y\" = %3\n")
          .lower();
  int draws = 0;
  for (const onnx::Node& node : model.graph.nodes) draws += node.op.starts_with("Random") ? 1 : 0;
  CHECK(draws == 2);
}

TEST_CASE("shape arithmetic is emitted once and only where it is needed") {
  CHECK(lowered(kHead + "input %1 \"v\": float32[1]\n"
                        "%2: float32[2*b, 8] = aten.expand.default(%1, [2*b, 8])\n"
                        "%3: float32[2*b, 4] = aten.expand.default(%1, [2*b, 4])\n"
                        "%4: float32[2*b*s] = aten.expand.default(%1, [2*b*s])\n"
                        "output \"y\" = %2\noutput \"z\" = %3\n") ==
        "/Shape_output_0 = Shape(x) start=0 end=1\n"
        "/Mul_output_0 = Mul(/Shape_output_0, [2])\n"
        "/Concat_output_0 = Concat(/Mul_output_0, [8]) axis=0\n"
        "y = Expand(v, /Concat_output_0)\n"
        "/Concat_1_output_0 = Concat(/Mul_output_0, [4]) axis=0\n"
        "z = Expand(v, /Concat_1_output_0)\n");
}

TEST_CASE("a reshape keeps sizes by 0 and leaves one to be inferred") {
  CHECK(one("%1: float32[b, s, 2, 4] = aten.view.default(%0, [b, s, 2, 4])") ==
        "y = Reshape(x, [0 0 2 4])\n");
  CHECK(one("%1: float32[b*s, 8] = aten.view.default(%0, [b*s, 8])") == "y = Reshape(x, [-1 8])\n");
  CHECK(one("%1: float32[b, 8*s] = aten.view.default(%0, [b, 8*s])") == "y = Reshape(x, [0 -1])\n");
  CHECK(one("%1: float32[b, s, 8] = aten.view.default(%0, [b, s, 8])") == "y = Identity(x)\n");
  // Two open sizes: the cheaper is computed.
  CHECK(one("%1: float32[s, 4*b, 2] = aten.view.default(%0, [s, 4*b, 2])") ==
        "/Shape_output_0 = Shape(x) start=1 end=2\n"
        "/Concat_output_0 = Concat(/Shape_output_0, [-1 2]) axis=0\n"
        "y = Reshape(x, /Concat_output_0)\n");
}

TEST_CASE("a reshape to an empty tensor says every size") {
  CHECK(lowered("symbol b: size = %0[0]\ninput %0 \"x\": float32[b, 0]\n"
                "%1: float32[0, b] = aten.view.default(%0, [0, b])\noutput \"y\" = %1\n") ==
        "/Shape_output_0 = Shape(x) start=0 end=1\n"
        "/Concat_output_0 = Concat([0], /Shape_output_0) axis=0\n"
        "y = Reshape(x, /Concat_output_0) allowzero=1\n");
}

TEST_CASE("an expand says only what changes") {
  const auto expand = [](const std::string& from, const std::string& to) {
    return lowered(
        "symbol b: size = %0[0]\nsymbol s: size = %0[1]\ninput %0 \"q\": float32[b, s]\n"
        "input %1 \"x\": float32[" +
        from +
        "]\n"
        "%2: float32[" +
        to + "] = aten.expand.default(%1, [" + to + "])\noutput \"y\" = %2\n");
  };
  CHECK(expand("b, 1, 8", "b, 4, 8") == "y = Expand(x, [1 4 1])\n");
  CHECK(expand("1, 8", "b, 1, 8") ==
        "/Shape_output_0 = Shape(q) start=0 end=1\n"
        "/Concat_output_0 = Concat(/Shape_output_0, [1 1]) axis=0\n"
        "y = Expand(x, /Concat_output_0)\n");
  CHECK(expand("b, s", "b, s") == "y = Identity(x)\n");
}

TEST_CASE("a size that is a number of times a symbol is checked") {
  const std::string text = lowered(
      "symbol h: size = %0[0] // 16\ninput %0 \"x\": float32[16*h]\n"
      "%1: float32[h] = aten.view.default(%0, [h])\noutput \"y\" = %1\n");
  CHECK(text.find("Mod(/Shape_output_0, [16])") != std::string::npos);
}

TEST_CASE("sizes are computed from their symbols") {
  const auto size = [](const std::string& e) {
    return lowered(
        "symbol b: size = %0[0]\nsymbol h: size = %0[1]\n"
        "input %0 \"x\": float32[b, h]\ninput %1 \"v\": float32[1]\n"
        "%2: float32[" +
        e + "] = aten.expand.default(%1, [" + e + "])\noutput \"y\" = %2\n");
  };
  CHECK(size("b") == "/Shape_output_0 = Shape(x) start=0 end=1\ny = Expand(v, /Shape_output_0)\n");
  CHECK(size("h + 3") ==
        "/Shape_output_0 = Shape(x) start=1 end=2\n"
        "/Add_output_0 = Add(/Shape_output_0, [3])\n"
        "y = Expand(v, /Add_output_0)\n");
  CHECK(size("2*b - 1") ==
        "/Shape_output_0 = Shape(x) start=0 end=1\n"
        "/Mul_output_0 = Mul(/Shape_output_0, [2])\n"
        "/Sub_output_0 = Sub(/Mul_output_0, [1])\n"
        "y = Expand(v, /Sub_output_0)\n");
  CHECK(size("ceildiv(b, 2)") ==
        "/Shape_output_0 = Shape(x) start=0 end=1\n"
        "/Add_output_0 = Add(/Shape_output_0, [1])\n"
        "/Div_output_0 = Div(/Add_output_0, [2])\n"
        "y = Expand(v, /Div_output_0)\n");
  CHECK(size("max(b, 4)") ==
        "/Shape_output_0 = Shape(x) start=0 end=1\n"
        "/Max_output_0 = Max(/Shape_output_0, [4])\n"
        "y = Expand(v, /Max_output_0)\n");
}

TEST_CASE("a quotient of what may be negative rounds down") {
  CHECK(lowered("symbol b: size = %0[0]\ninput %0 \"x\": float32[b]\ninput %1 \"v\": int64[1]\n"
                "%2: int64[1] = aten.add.Tensor(%1, (b - 5)//b, 1)\noutput \"y\" = %2\n")
            .find("Mod") != std::string::npos);
}

TEST_CASE("a value that was read is a scalar of its tensor") {
  const std::string text = lowered(
      "symbol b: size = %0[0]\nsymbol r: read = %1[1]\ninput %0 \"x\": float32[b]\n"
      "input %1 \"sizes\": int32[2]\ninput %2 \"v\": float32[1]\n"
      "%3: float32[r] = aten.expand.default(%2, [r])\noutput \"y\" = %3\n");
  CHECK(text ==
        "/Cast_output_0 = Cast(sizes) to=7\n"
        "/Reshape_output_0 = Reshape(/Cast_output_0, [-1])\n"
        "/Gather_output_0 = Gather(/Reshape_output_0, [1]) axis=0\n"
        "y = Expand(v, /Gather_output_0)\n");
}

TEST_CASE("a weight is stored transposed, once, and a tied one as it is") {
  const std::string linear =
      kHead +
      "constant %1 \"w\": float32[4, 8]\n"
      "constant %2 \"b\": float32[4]\n"
      "%3: float32[b, s, 4] = aten.linear.default(%0, %1, %2) in \"lm_head\"\n"
      "%4: float32[b, s, 4] = aten.linear.default(%0, %1, None) in \"other\"\n";
  const Source source(linear + "output \"y\" = %3\noutput \"z\" = %4\n");
  const onnx::Model model = source.lower();
  CHECK(model_text(model) == "z = MatMul(x, w)\ny = Add(z, b)\n");
  REQUIRE(model.graph.initializers.size() == 2);
  const onnx::TensorData& weight = model.graph.initializers[0].data;
  CHECK(weight.dims == std::vector<std::int64_t>{8, 4});
  CHECK(weight.strides == std::vector<std::int64_t>{1, 8});
  CHECK(weight.data == source.graph.constants[0].data);

  const Source tied(
      "symbol b: size = %0[0]\ninput %0 \"ids\": int64[b]\n"
      "constant %1 \"w\": float32[16, 8]\nconstant %2 \"w\": float32[16, 8]\n"
      "%3: float32[b, 8] = aten.embedding.default(%1, %0, -1, False, False)\n"
      "%4: float32[b, 16] = aten.linear.default(%3, %2, None)\noutput \"y\" = %4\n");
  const onnx::Model tied_model = tied.lower();
  CHECK(tied_model.graph.initializers.size() == 1);
  CHECK(tied_model.graph.initializers[0].data.strides.empty());
  CHECK(model_text(tied_model) ==
        "/Gather_output_0 = Gather(w, ids) axis=0\n"
        "/Transpose_output_0 = Transpose(w) perm=1 0\n"
        "y = MatMul(/Gather_output_0, /Transpose_output_0)\n");
}

TEST_CASE("outputs have their names, also where they are inputs, constants or one value") {
  const Source source(
      kHead +
      "constant %1 \"w\": float32[4]\n"
      "%2: float32[b, s, 8] = aten.relu.default(%0)\n"
      "output \"a\" = %0\noutput \"b\" = %1\noutput \"c\" = %2\noutput \"d\" = %2\n");
  const onnx::Model model = source.lower();
  CHECK(model_text(model) == "c = Relu(x)\na = Identity(x)\nb = Identity(w)\nd = Identity(c)\n");
  REQUIRE(model.graph.outputs.size() == 4);
  const onnx::TensorInfo& c = model.tensors[static_cast<std::size_t>(model.graph.outputs[2])];
  REQUIRE(c.shape.has_value());
  CHECK(model.pool->to_string((*c.shape)[1]) == "s");
}

TEST_CASE("a result that is observed in another type is cast") {
  CHECK(lowered("input %0 \"x\": float32[2]\n%1: float64[2] = aten.relu.default(%0)\noutput \"y\" "
                "= %1\n") == "/Relu_output_0 = Relu(x)\ny = Cast(/Relu_output_0) to=11\n");
}

TEST_CASE("a lowering that needs a constant says which argument is none") {
  onnx::register_op(
      {"mylib.op",
       [](Lowering& b) { b.result(b.op("Relu", {b.in(0)}, {attr("k", b.constant_int(1))})); },
       "Relu", ""});
  const Source source(kHead +
                      "%1: float32[b, s, 8] = mylib.op(%0, 2*b) in \"m\" at \"a.py:3\"\n"
                      "output \"y\" = %1\n");
  CHECK(error_of(ErrorCode::kUnsupported, [&] { (void)source.lower(); }) ==
        "[lower] mylib.op: argument 1 must be constant, it is 2*b (in m at a.py:3).");
  onnx::unregister_op("mylib.op");
}

TEST_CASE("literals are text attributes") {
  CHECK(std::get<std::string>(attr("mode", "nearest").value) == "nearest");
  CHECK(std::get<std::int64_t>(attr("flag", true).value) == 1);
  CHECK(std::get<std::int64_t>(attr("axis", 3).value) == 3);
}

TEST_CASE("types of tensors and numbers are joined as PyTorch joins them") {
  static Dtype joined;
  onnx::register_op({"mylib.join",
                     [](Lowering& b) {
                       joined = b.promoted({0, 1});
                       b.result(b.op("Relu", {b.in(0)}));
                     },
                     "Relu", ""});
  const auto join = [](const std::string& a, const std::string& second) {
    const std::string dtype = a.substr(0, a.find('['));
    (void)Source("input %0: " + a + "\ninput %1: " + (second[0] == '=' ? "bool[]" : second) +
                 "\n%2: " + dtype + "[] = mylib.join(%0, " +
                 (second[0] == '=' ? second.substr(1) : "%1") + ")\noutput \"y\" = %2\n")
        .lower();
    return std::string(dtype_name(joined));
  };
  CHECK(join("float16[2]", "float32[2]") == "float32");
  CHECK(join("float16[2]", "bfloat16[2]") == "float32");
  CHECK(join("float16[2]", "float32[]") == "float16");
  CHECK(join("int64[2]", "float16[]") == "float16");
  CHECK(join("int64[2]", "=0.5") == "float32");
  CHECK(join("bfloat16[2]", "=0.5") == "bfloat16");
  CHECK(join("int32[2]", "=3") == "int32");
  CHECK(join("bool[2]", "=3") == "int64");
  CHECK(join("uint8[2]", "int8[2]") == "int16");
  CHECK(join("uint8[2]", "int32[2]") == "int32");
  onnx::unregister_op("mylib.join");
}

TEST_CASE("a constant whose bytes nobody set is refused") {
  for (const char* text :
       {"constant %0: int64[]\noutput \"y\" = %0\n",
        "constant %0: complex64[2]\noutput \"y\" = %0\n",
        "input %0 \"x\": float32[2, 3]\nconstant %1: float32[4, 3]\n"
        "%2: float32[2, 4] = aten.linear.default(%0, %1, None)\noutput \"y\" = %2\n"}) {
    CAPTURE(text);
    const Graph graph = parse_graph(text);
    CHECK_THROWS_WITH_AS((void)onnx::lower_graph(graph, {}),
                         doctest::Contains("Expected the bytes of constant %"), Error);
  }
}
