// Tests of the passes: what each rewrites, what it leaves alone, and that the graph stays whole.
#include "fairlead/passes/passes.h"

#include <doctest/doctest.h>

#include "fairlead/passes/dead_code.h"
#include "fairlead/passes/fuse_rms_norm.h"
#include "fairlead/passes/merge_slices.h"
#include "fairlead/passes/precision.h"
#include "fairlead/passes/rewrite.h"
#include "graphs.h"

using namespace fairlead;
using namespace fairlead::test;

namespace {

using Run = std::size_t (*)(Graph&);

struct After {
  std::size_t changes;
  std::string nodes;
};

After after(Run run, const std::string& text) {
  Graph g = parse_graph(text);
  check(g);
  const std::size_t changes = run(g);
  check(g);
  return {changes, node_lines(g)};
}

// The same with what is in bodies.
After whole(Run run, const std::string& text) {
  Graph g = parse_graph(text);
  const std::size_t changes = run(g);
  check(g);
  return {changes, to_text(g)};
}

// The pass finds nothing to do.
void check_unchanged(Run run, const std::string& text) {
  CAPTURE(text);
  const After result = after(run, text);
  CHECK(result.changes == 0);
  CHECK(result.nodes == node_lines(parse_graph(text)));
}

}  // namespace

// ---- dead code ----------------------------------------------------------------------------------

TEST_CASE("nodes that nothing reads are removed, with what only they read") {
  const After result = after(remove_dead_code,
                             "input %0: float32[2]\n"
                             "%1: float32[2] = aten.a(%0)\n"
                             "%2: float32[2] = aten.dead(%1)\n"
                             "%3: float32[2] = aten.also_dead([%2])\n"
                             "%4: float32[2], %5: float32[2] = aten.half_read(%0)\n"
                             "() = aten.says_nothing(%0)\n"
                             "None, %6: float32[2] = aten.b([None, [%5]], %1)\n"
                             "output \"y\" = %6\n");
  CHECK(result.changes == 3);
  CHECK(result.nodes ==
        "%1: float32[2] = aten.a(%0)\n"
        "%4: float32[2], %5: float32[2] = aten.half_read(%0)\n"
        "None, %6: float32[2] = aten.b([None, [%5]], %1)\n");
}

TEST_CASE("a symbol in a size or an argument keeps what it is read from") {
  const std::string head =
      "symbol n: size = %0[0]\n"
      "symbol count: data = %1[0]\n"
      "symbol read: read = %2[0]\n"
      "input %0: int64[n]\n"
      "%1: int64[count, 1] = aten.nonzero.default(%0)\n"
      "%2: int64[] = aten.sum.default(%0)\n";
  const auto kept = [&](const std::string& line) {
    return after(remove_dead_code, head + line + "\noutput \"y\" = %3\n").nodes;
  };
  CHECK(kept("%3: int64[n] = aten.neg.default(%0)") == "%3: int64[n] = aten.neg.default(%0)\n");
  CHECK(kept("%3: int64[2*count] = aten.op(%0)") ==
        "%1: int64[count, 1] = aten.nonzero.default(%0)\n%3: int64[2*count] = aten.op(%0)\n");
  CHECK(kept("%3: int64[] = aten.op(%0, [[n + read]])") ==
        "%2: int64[] = aten.sum.default(%0)\n%3: int64[] = aten.op(%0, [[n + read]])\n");
  CHECK(kept("%3: int64[] = aten.op(%0, 0.5*(read)^0.5)") ==
        "%2: int64[] = aten.sum.default(%0)\n%3: int64[] = aten.op(%0, 0.5*(read)^0.5)\n");
}

TEST_CASE("a graph without dead code is left alone") {
  check_unchanged(remove_dead_code,
                  "input %0: float32[2]\n%1: float32[2] = aten.a(%0)\noutput \"y\" = %1\n");
  check_unchanged(remove_dead_code, "input %0: float32[2]\noutput \"y\" = %0\n");
}

// ---- matching and rewriting ---------------------------------------------------------------------

TEST_CASE("uses count arguments, outputs and sources") {
  Graph g = parse_graph(
      "symbol n: size = %0[0]\ninput %0: float32[n]\n%1: float32[n] = aten.a(%0, [%0])\n"
      "output \"y\" = %1\noutput \"z\" = %1\n");
  const Rewriter rewriter(g);
  CHECK(rewriter.producer(0) == nullptr);
  CHECK(rewriter.producer(1) == &g.nodes[0]);
  CHECK(rewriter.uses(0) == 3);
  CHECK(rewriter.uses(1) == 2);
}

namespace {

// add(neg(x), y) becomes sub(y, x), in either order.
std::size_t subtract(Graph& graph) {
  const Pattern pattern = call(Op::add_Tensor, {call(Op::neg, {any(0)}), any(1)}).commutes();
  return Rewriter(graph).each([&](Rewriter& rewriter, Node& node) {
    const auto found = rewriter.match(pattern, node);
    if (!found) return false;
    const std::vector<Arg> args = {found->arg(1), found->arg(0)};
    const ValueId gone = node.args[0].value, x = args[1].value;
    const std::size_t before = rewriter.uses(gone), of_x = rewriter.uses(x);
    rewriter.become(node, Op::sub_Tensor, args);
    CHECK(rewriter.uses(x) == of_x + (gone == x ? 0 : 1));
    if (gone != args[0].value) CHECK(rewriter.uses(gone) == before - 1);
    return true;
  });
}

}  // namespace

TEST_CASE("a pattern is found in either order, in every body, across them, and nowhere else") {
  const After result = whole(subtract,
                             "input %0: float32[2]\ninput %1: float32[2]\ninput %2: bool[]\n"
                             "%3: float32[2] = aten.neg.default(%0)\n"
                             "%4: float32[2] = aten.add.Tensor(%3, %1)\n"
                             "%5: float32[2] = aten.add.Tensor(%0, %1)\n"
                             "%6: float32[2] = higher_order.cond(%2)\n"
                             "body\n"
                             "%7: float32[2] = aten.add.Tensor(%3, %5)\n"
                             "result %7\n"
                             "end\n"
                             "body\n"
                             "%8: float32[2] = aten.neg.default(%5)\n"
                             "%9: float32[2] = aten.add.Tensor(%8, %4)\n"
                             "result %9\n"
                             "end\n"
                             "output \"y\" = %6\n");
  CHECK(result.changes == 3);
  CHECK(result.nodes.find("aten.sub.Tensor(%1, %0)") != std::string::npos);
  CHECK(result.nodes.find("aten.sub.Tensor(%5, %0)") != std::string::npos);
  CHECK(result.nodes.find("aten.sub.Tensor(%4, %5)") != std::string::npos);
  CHECK(result.nodes.find("aten.add.Tensor(%0, %1)") != std::string::npos);
}

TEST_CASE("a slot that stands twice is one value or one number") {
  Graph g = parse_graph(
      "input %0: float32[2]\ninput %1: float32[2]\n"
      "%2: float32[2] = aten.mul.Tensor(%0, %0)\n%3: float32[2] = aten.mul.Tensor(%0, %1)\n"
      "%4: float32[2] = aten.mul.Tensor(%0, 2.0)\n"
      "output \"a\" = %2\noutput \"b\" = %3\noutput \"c\" = %4\n");
  const Rewriter rewriter(g);
  const Pattern twice = call(Op::mul_Tensor, {any(0), any(0)});
  CHECK(rewriter.match(twice, g.nodes[0]).has_value());
  CHECK_FALSE(rewriter.match(twice, g.nodes[1]).has_value());
  const Pattern two =
      either(call(Op::mul_Tensor, {any(0), number(3)}), call(Op::mul_Tensor, {any(0), number(2)}));
  CHECK_FALSE(rewriter.match(call(Op::neg, {two}), g.nodes[2]).has_value());
  CHECK(rewriter.match(call(Op::mul_Tensor, {any(1), number(2)}), g.nodes[2])->arg(1).value == 0);
}

TEST_CASE("fusions reach into bodies") {
  const std::string inside =
      "input %0: float32[2, 8]\ninput %1: bool[]\n"
      "%2: float32[2, 4], %3: float32[2, 4] = higher_order.cond(%1)\n"
      "body\n"
      "%4: float32[2, 4] = aten.slice.Tensor(%0, 1, 0, 4, 1)\n"
      "%5: float32[2, 4] = aten.slice.Tensor(%0, 1, 4, 8, 1)\n"
      "result %4, %5\n"
      "end\n"
      "body\n"
      "%6: float32[2, 4] = aten.slice.Tensor(%0, 1, 0, 4, 1)\n"
      "result %6, %6\n"
      "end\n"
      "output \"y\" = %2\noutput \"z\" = %3\n";
  const After result = whole(merge_slices, inside);
  CHECK(result.changes == 1);
  CHECK(result.nodes.find("%4: float32[2, 4], %5: float32[2, 4] = "
                          "aten.split_with_sizes.default(%0, [4, 4], 1)") != std::string::npos);
}

// ---- rms norm -----------------------------------------------------------------------------------

namespace {

// x * rsqrt(mean(x^2) + eps) * w, with one line spelt another way.
std::string rms(const std::string& from = "", const std::string& to = "") {
  std::string text =
      "symbol b: size = %0[0]\n"
      "input %0: float32[b, 8]\n"
      "constant %1 \"w\": float32[8]\n"
      "%2: float32[b, 8] = aten.pow.Tensor_Scalar(%0, 2)\n"
      "%3: float32[b, 1] = aten.mean.dim(%2, [-1], True, None)\n"
      "%4: float32[b, 1] = aten.add.Tensor(%3, 1e-06, 1)\n"
      "%5: float32[b, 1] = aten.rsqrt.default(%4)\n"
      "%6: float32[b, 8] = aten.mul.Tensor(%0, %5) in \"norm\" at \"a.py:1\"\n"
      "%7: float32[b, 8] = aten.mul.Tensor(%1, %6) in \"norm\" at \"a.py:2\"\n"
      "output \"y\" = %7\n";
  if (from.empty()) return text;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::size_t fuse_and_clean(Graph& g) {
  const std::size_t changes = fuse_rms_norm(g);
  check(g);
  remove_dead_code(g);
  return changes;
}

}  // namespace

TEST_CASE("a root-mean-square norm by hand is one operator") {
  const std::string fused =
      "%7: float32[b, 8] = aten.rms_norm.default(%0, [8], %1, 1e-06) in \"norm\" at \"a.py:2\"\n";
  CHECK(after(fuse_and_clean, rms()).nodes == fused);
  CHECK(after(fuse_and_clean, rms()).changes > 0);
  // Other spellings of the same.
  CHECK(after(fuse_and_clean, rms("(%0, 2)", "(%0, 2.0)")).nodes == fused);
  CHECK(after(fuse_and_clean, rms("aten.pow.Tensor_Scalar(%0, 2)", "aten.mul.Tensor(%0, %0)"))
            .nodes == fused);
  CHECK(after(fuse_and_clean, rms("[-1]", "[1]")).nodes == fused);
  CHECK(after(fuse_and_clean, rms("mul.Tensor(%0, %5)", "mul.Tensor(%5, %0)")).nodes == fused);
  CHECK(after(fuse_and_clean, rms("mul.Tensor(%1, %6)", "mul.Tensor(%6, %1)")).nodes == fused);
}

TEST_CASE("a norm without a weight that fits keeps its multiplication") {
  const std::string bare =
      "%6: float32[b, 8] = aten.rms_norm.default(%0, [8], None, 1e-06) in \"norm\" at \"a.py:1\"\n";
  CHECK(after(fuse_and_clean, rms("output \"y\" = %7", "output \"y\" = %6")).nodes == bare);
  const std::string scaled =
      bare + "%7: float32[b, 8] = aten.mul.Tensor(%1, %6) in \"norm\" at \"a.py:2\"\n";
  CHECK(after(fuse_and_clean, rms("constant %1 \"w\"", "input %1 \"w\"")).nodes == scaled);
  CHECK(after(fuse_and_clean, rms("\"w\": float32[8]", "\"w\": float32[1, 8]")).nodes == scaled);
  CHECK(after(fuse_and_clean, rms("\"w\": float32[8]", "\"w\": float32[1]")).nodes == scaled);
  CHECK(after(fuse_and_clean, rms("\"w\": float32[8]", "\"w\": float64[8]")).nodes == scaled);
  // The plain norm is read elsewhere too.
  CHECK(after(fuse_and_clean, rms("output \"y\"", "output \"n\" = %6\noutput \"y\"")).nodes ==
        scaled);
}

TEST_CASE("what only looks like a root-mean-square norm stays") {
  const std::pair<const char*, const char*> variants[] = {
      {"(%0, 2)", "(%0, 3)"},                         // another power
      {"[-1], True", "[0], True"},                    // another axis
      {"[-1], True", "[0, 1], True"},                 // two axes
      {"[-1], True", "[-1], False"},                  // the axis dropped
      {"1e-06, 1)", "1e-06, 2)"},                     // twice eps
      {"%3, 1e-06", "%3, 1e-06*(b)"},                 // eps by size
      {"%3, 1e-06", "%3, %2"},                        // no number
      {"aten.rsqrt", "aten.sqrt"},                    // another root
      {"mul.Tensor(%0, %5)", "mul.Tensor(%2, %5)"},   // another tensor
      {"mul.Tensor(%0, %5)", "mul.Tensor(2.0, %5)"},  // no tensor
      {"%6: float32", "%6: float64"},                 // computed in another type
  };
  for (const auto& [from, to] : variants) {
    check_unchanged(fuse_rms_norm, rms(from, to));
  }
  // A last size that varies is no size of a norm.
  check_unchanged(fuse_rms_norm,
                  "symbol b: size = %0[0]\ninput %0: float32[b]\n"
                  "%2: float32[b] = aten.pow.Tensor_Scalar(%0, 2)\n"
                  "%3: float32[1] = aten.mean.dim(%2, [-1], True, None)\n"
                  "%4: float32[1] = aten.add.Tensor(%3, 1e-06, 1)\n"
                  "%5: float32[1] = aten.rsqrt.default(%4)\n"
                  "%6: float32[b] = aten.mul.Tensor(%0, %5)\noutput \"y\" = %6\n");
  // Nor has a number a last size.
  check_unchanged(fuse_rms_norm,
                  "input %0: float32[]\n"
                  "%2: float32[] = aten.pow.Tensor_Scalar(%0, 2)\n"
                  "%3: float32[] = aten.mean.dim(%2, [-1], True, None)\n"
                  "%4: float32[] = aten.add.Tensor(%3, 1e-06, 1)\n"
                  "%5: float32[] = aten.rsqrt.default(%4)\n"
                  "%6: float32[] = aten.mul.Tensor(%0, %5)\noutput \"y\" = %6\n");
}

// ---- slices -------------------------------------------------------------------------------------

TEST_CASE("slices that tile a dimension are one split, in the order of their places") {
  const After result = after(
      merge_slices,
      "symbol b: size = %0[0]\n"
      "input %0: float32[b, 8]\n"
      "%1: float32[b, 3] = aten.slice.Tensor(%0, -1, 5, 9223372036854775807, 1) at \"a.py:1\"\n"
      "%2: float32[b, 3] = aten.neg.default(%1)\n"
      "%3: float32[b, 4] = aten.slice.Tensor(%0, 1, 1, -3, 1) at \"a.py:2\"\n"
      "%4: float32[b, 1] = aten.slice.Tensor(%0, 1, None, 1, 1)\n"
      "output \"a\" = %2\noutput \"b\" = %3\noutput \"c\" = %4\n");
  CHECK(result.changes == 1);
  CHECK(result.nodes ==
        "%4: float32[b, 1], %3: float32[b, 4], %1: float32[b, 3] = "
        "aten.split_with_sizes.default(%0, [1, 4, 3], 1) at \"a.py:1\"\n"
        "%2: float32[b, 3] = aten.neg.default(%1)\n");
}

TEST_CASE("slices that do not tile a dimension stay") {
  const auto slices = [](const std::string& first, const std::string& second) {
    return "symbol b: size = %0[0]\ninput %0: float32[b, 8]\ninput %1: float32[b, 8]\n"
           "%2: float32[b, 4] = aten.slice.Tensor(" +
           first +
           ")\n"
           "%3: float32[b, 4] = aten.slice.Tensor(" +
           second +
           ")\n"
           "output \"a\" = %2\noutput \"b\" = %3\n";
  };
  CHECK(after(merge_slices, slices("%0, 1, 0, 4, 1", "%0, 1, 4, 8, 1")).changes == 1);
  check_unchanged(merge_slices, slices("%0, 1, 0, 4, 1", "%0, 1, 5, 8, 1"));  // a gap
  check_unchanged(merge_slices, slices("%0, 1, 0, 5, 1", "%0, 1, 4, 8, 1"));  // an overlap
  check_unchanged(merge_slices, slices("%0, 1, 0, 4, 1", "%0, 1, 4, 7, 1"));  // short of the end
  check_unchanged(merge_slices, slices("%0, 1, 1, 4, 1", "%0, 1, 4, 8, 1"));  // not from the start
  check_unchanged(merge_slices, slices("%0, 1, 0, 8, 2", "%0, 1, 1, 8, 2"));  // with steps
  check_unchanged(merge_slices, slices("%0, 1, 0, 4, 1", "%1, 1, 4, 8, 1"));  // of two tensors
  check_unchanged(merge_slices,
                  slices("%0, 0, 0, 4, 1", "%0, 0, 4, b, 1"));  // of a size that varies
  check_unchanged(merge_slices,
                  slices("%0, 1, 0, b, 1", "%0, 1, b, 8, 1"));  // at a place that varies
  check_unchanged(merge_slices, slices("%0, 1, 0, 8, 1", "%0, 1, 8, 8, 1"));  // one empty
  check_unchanged(merge_slices, slices("%0, 1, 0, 4, 1", "%0, 1, 0, 4, 1"));  // the same twice
  check_unchanged(merge_slices,
                  "input %0: float32[8]\n%1: float32[8] = aten.slice.Tensor(%0, 0, 0, 8, "
                  "1)\noutput \"y\" = %1\n");
}

// ---- the list -----------------------------------------------------------------------------------

TEST_CASE("passes belong to targets") {
  const auto nodes = [](const Target& target) {
    Graph g = parse_graph(rms());
    run_passes(g, target);
    return g.nodes.size();
  };
  CHECK(nodes({}) == 1);
  CHECK(nodes({TargetKind::kTorch}) == 6);
  CHECK(nodes({TargetKind::kOnnx, {}, false}) == 6);
  // A pass of one's own runs after them, and what it leaves behind goes.
  Graph g = parse_graph(
      "input %0: float32[2]\n%1: float32[2] = aten.neg.default(%0)\n"
      "%2: float32[2] = aten.add.Tensor(%1, %0)\noutput \"y\" = %2\n");
  const Pass own[] = {{"subtract", "nothing is added to what was negated", subtract}};
  run_passes(g, {}, own);
  CHECK(node_lines(g) == "%2: float32[2] = aten.sub.Tensor(%0, %0)\n");
}

TEST_CASE("a runtime of another version has other opsets") {
  CHECK(RuntimeProfile{Provider::kOnnxRuntimeCpu, 19}.newest_opset() == 20);
  CHECK(RuntimeProfile{Provider::kOnnxRuntimeCpu, 22}.newest_opset() == 23);
  CHECK(RuntimeProfile{Provider::kOnnxRuntimeCpu, 27}.newest_opset() == 25);
  CHECK(RuntimeProfile{}.newest_opset() == 26);
  CHECK(parse_provider("portable") == Provider::kPortable);
  CHECK_THROWS_WITH_AS(
      (void)parse_provider("cuda"),
      "[export] Expected runtime \"onnxruntime-cpu\" or \"portable\", got \"cuda\".", Error);
}

TEST_CASE("all passes together leave a checked graph, and nothing for a second time") {
  Graph g = parse_graph(rms());
  run_passes(g);
  CHECK(g.nodes.size() == 1);
  const std::string once = to_text(g);
  for (const Pass& pass : passes()) {
    CAPTURE(pass.name);
    CHECK_FALSE(pass.ensures.empty());
    CHECK(pass.run(g) == 0);
  }
  CHECK(to_text(g) == once);
}

TEST_CASE("An output is as precise as the least of what went into it") {
  const Graph g = parse_graph(R"(input %0 "x": float32[4]
input %1 "half": bfloat16[4]
%2: bfloat16[4] = aten._to_copy.default(%0)
%3: float32[4] = aten._to_copy.default(%2)
%4: float32[4] = aten._to_copy.default(%1)
%5: float64[4] = aten._to_copy.default(%4)
%6: int64[4] = aten._to_copy.default(%5)
output "through" = %3
output "from" = %4
output "wide" = %5
output "whole" = %6
)");
  const std::vector<Dtype> found = output_precision(g);
  CHECK(found[0] == Dtype::kBfloat16);
  CHECK(found[1] == Dtype::kFloat32);  // its input is exact
  CHECK(found[2] == Dtype::kFloat32);
  CHECK(found[3] == Dtype::kFloat32);
}
