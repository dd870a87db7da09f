// Tests of the fusions for ONNX Runtime: what each takes in, what it refuses and why.
#include "fairlead/passes/fusion.h"

#include <doctest/doctest.h>

#include "fairlead/passes/passes.h"
#include "graphs.h"

using namespace fairlead;
using namespace fairlead::test;

namespace {

struct After {
  std::string nodes;
  FusionLog log;
};

After fused(const std::string& text, std::vector<std::string> left_out = {}, int version = 0) {
  Graph g = parse_graph(text);
  check(g);
  Target target;
  target.fuse = true;
  target.left_out = std::move(left_out);
  target.runtime.version = version;
  FusionLog log = run_passes(g, target);
  return {node_lines(g), std::move(log)};
}

std::size_t count(const FusionLog& log, std::string_view kind) {
  for (const FusionRow& row : log.rows()) {
    if (row.kind == kind) return row.count;
  }
  return 0;
}

std::string why(const FusionLog& log, std::string_view kind) {
  for (const FusionRow& row : log.rows()) {
    if (row.kind == kind && !row.refused.empty()) return row.refused.begin()->first;
  }
  return "";
}

const std::string kSum = R"(symbol b: size = %0[0]
symbol s: size = %0[1]
input %0 "x": float32[b, s, 8]
input %1 "y": float32[b, s, 8]
constant %2 "w": float32[8]
constant %3 "beta": float32[8]
%4: float32[b, s, 8] = aten.add.Tensor(%0, %1, 1)
)";

// One layer of attention: past of p tokens, 4 heads of queries, 2 of keys, size 16. Places: how
// keys are compared with queries, and what else the mask has.
std::string attention(const std::string& compare, const std::string& padding = "%17") {
  return R"(symbol b: size = %0[0]
symbol s: size = %0[1]
symbol p: size = %3[2]
input %0 "q": float32[b, s, 64]
input %1 "k": float32[b, s, 32]
input %2 "v": float32[b, s, 32]
input %3 "past_key": float32[b, 2, p, 16]
input %4 "past_value": float32[b, 2, p, 16]
input %5 "seen": bool[b, 1, 1, s + p]
%6: float32[b, s, 4, 16] = aten.view.default(%0, [b, s, 4, 16])
%7: float32[b, 4, s, 16] = aten.transpose.int(%6, 1, 2)
%8: float32[b, s, 2, 16] = aten.view.default(%1, [b, s, 2, 16])
%9: float32[b, 2, s, 16] = aten.transpose.int(%8, 1, 2)
%10: float32[b, s, 2, 16] = aten.view.default(%2, [b, s, 2, 16])
%11: float32[b, 2, s, 16] = aten.transpose.int(%10, 1, 2)
%12: int64[s] = aten.arange.default(s, None, None, "cpu", False)
%13: int64[s] = aten.add.Tensor(%12, p, 1)
%14: int64[s, 1] = aten.unsqueeze.default(%13, 1)
%15: int64[s + p] = aten.arange.default(s + p, None, None, "cpu", False)
%16: int64[1, s + p] = aten.unsqueeze.default(%15, 0)
%17: bool[s, s + p] = )" +
         compare + R"(
%18: bool[b, 1, s, s + p] = aten.bitwise_and.Tensor()" +
         padding + R"(, %17)
%20: float32[b, 2, s + p, 16] = aten.cat.default([%3, %9], -2)
%21: float32[b, 2, s + p, 16] = aten.cat.default([%4, %11], -2)
%22: float32[b, 2, 1, s + p, 16] = aten.unsqueeze.default(%20, 2)
%23: float32[b, 2, 2, s + p, 16] = aten.expand.default(%22, [b, 2, 2, s + p, 16], False)
%24: float32[b, 4, s + p, 16] = aten.reshape.default(%23, [b, 4, s + p, 16])
%25: float32[b, 2, 1, s + p, 16] = aten.unsqueeze.default(%21, 2)
%26: float32[b, 2, 2, s + p, 16] = aten.expand.default(%25, [b, 2, 2, s + p, 16], False)
%27: float32[b, 4, s + p, 16] = aten.reshape.default(%26, [b, 4, s + p, 16])
%28: float32[b, 4, s, 16] = aten.scaled_dot_product_attention.default(%7, %24, %27, %18, 0.0, False, 0.25, False)
%29: float32[b, s, 4, 16] = aten.transpose.int(%28, 1, 2)
%30: float32[b, s, 4, 16] = aten.contiguous.default(%29, None)
%31: float32[b, s, 64] = aten.reshape.default(%30, [b, s, -1])
output "y" = %31
output "key" = %20
output "value" = %21
)";
}

}  // namespace

TEST_CASE("a sum that is normalised is one operator, and the sum is read where it was") {
  const After rms = fused(kSum + R"(%5: float32[b, s, 8] = aten.rms_norm.default(%4, [8], %2, 1e-06)
output "y" = %5
output "sum" = %4
)");
  CHECK(rms.nodes ==
        "%5: float32[b, s, 8], %4: float32[b, s, 8] = onnxruntime.skip_rms_norm(%1, %0, %2, None, "
        "1e-06)\n");
  CHECK(count(rms.log, "SkipSimplifiedLayerNormalization") == 1);
  const After layer =
      fused(kSum + R"(%5: float32[b, s, 8] = aten.layer_norm.default(%4, [8], %2, %3, 1e-06, True)
output "y" = %5
)");
  CHECK(layer.nodes.starts_with("%4: float32[b, s, 8] = onnxruntime.sum(%1, None, %0)\n"));
  CHECK(count(layer.log, "Sum") == 1);
}

TEST_CASE("what is left out, or not for this version, is not fused") {
  const std::string text =
      kSum + R"(%5: float32[b, s, 8] = aten.rms_norm.default(%4, [8], %2, 1e-06)
output "y" = %5
)";
  const After left =
      fused(text, {"SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization"});
  CHECK(left.nodes == node_lines(parse_graph(text)));
  const After old = fused(text, {}, 16);
  CHECK(old.nodes == node_lines(parse_graph(text)));
  CHECK(why(old.log, "fuse_norms") == "ONNX Runtime 1.16 is too old, 1.17 has it");
}

TEST_CASE("a norm whose weight is computed keeps its sum apart") {
  const After result = fused(kSum + R"(%5: float32[8] = aten.add.Tensor(%2, 1, 1)
%6: float32[b, s, 8] = aten.rms_norm.default(%4, [8], %5, 1e-06)
output "y" = %6
)");
  CHECK(count(result.log, "SkipSimplifiedLayerNormalization") == 0);
  CHECK(why(result.log, "SkipSimplifiedLayerNormalization") == "its weight is no constant");
  CHECK(count(result.log, "SimplifiedLayerNormalization") == 1);
}

TEST_CASE("causal attention over a cache is one operator") {
  const After result = fused(attention("aten.le.Tensor(%16, %14)", "%5"));
  CHECK(result.nodes.find("onnxruntime.group_query_attention(%0, %1, %2, %3, %4, None, None, %5, "
                          "4, 2, 16, 0.25, False, False, False, None, False)") !=
        std::string::npos);
  CHECK(result.nodes.find("aten.cat") == std::string::npos);
  CHECK(result.nodes.find("aten.expand") == std::string::npos);
  REQUIRE(result.log.requirements().size() == 1);
  CHECK(result.log.requirements()[0].required.words == "b = 1, or s = 1, or p = 0");
  // What hides nothing but later keys is no mask for it.
  const After causal = fused(attention("aten.ge.Tensor(%14, %16)"));
  CHECK(causal.nodes.find("%3, %4, None, None, None, 4, 2, 16") != std::string::npos);
  CHECK(causal.nodes.find("bitwise_and") == std::string::npos);
}

TEST_CASE("the sizes that the operator does not take are known") {
  Graph g = parse_graph(attention("aten.le.Tensor(%16, %14)"));
  Target target;
  target.fuse = true;
  const FusionLog log = run_passes(g, target);
  const auto at = [&](std::vector<std::int64_t> sizes) { return log.refused_at(*g.pool, sizes); };
  CHECK(at({2, 3, 7}) == std::vector<std::string>{"GroupQueryAttention"});
  CHECK(at({1, 3, 7}).empty());
  CHECK(at({2, 1, 7}).empty());
  CHECK(at({2, 3, 0}).empty());
}

TEST_CASE("attention that is not proved to be causal is not taken for it") {
  for (const char* compare :
       {"aten.lt.Tensor(%14, %16)", "aten.ge.Tensor(%16, %14)", "aten.le.Tensor(%14, %16)"}) {
    CAPTURE(compare);
    const After result = fused(attention(compare));
    CHECK(count(result.log, "GroupQueryAttention") == 0);
    CHECK(count(result.log, "MultiHeadAttention") == 1);  // with the heads repeated before
  }
}

TEST_CASE("a cache that is read elsewhere stays where it is") {
  std::string text = attention("aten.le.Tensor(%16, %14)");
  text.insert(text.find("output \"y\""), "%40: float32[b, 2, s + p, 16] = aten.neg.default(%20)\n");
  text += "output \"negative\" = %40\n";
  const After result = fused(text);
  CHECK(count(result.log, "GroupQueryAttention") == 0);
  CHECK(why(result.log, "GroupQueryAttention") == "its cache is read elsewhere too");
}

TEST_CASE("gelu in its forms is one operator") {
  const std::string head = R"(symbol b: size = %0[0]
input %0 "x": float32[b, 8]
constant %1 "w": float32[8, 8]
constant %2 "bias": float32[8]
%3: float32[b, 8] = aten.linear.default(%0, %1, %2)
)";
  const After exact =
      fused(head + "%4: float32[b, 8] = aten.gelu.default(%3, \"none\")\noutput \"y\" = %4\n");
  CHECK(exact.nodes ==
        "%3: float32[b, 8] = aten.linear.default(%0, %1, None)\n"
        "%4: float32[b, 8] = onnxruntime.bias_gelu(%3, %2)\n");
  const After fast =
      fused(head + "%4: float32[b, 8] = aten.gelu.default(%3, \"tanh\")\noutput \"y\" = %4\n");
  CHECK(count(fast.log, "FastGelu") == 1);
  // Somebody else reads the layer with its bias.
  const After both = fused(head +
                           "%4: float32[b, 8] = aten.gelu.default(%3, \"none\")\noutput \"y\" = "
                           "%4\noutput \"z\" = %3\n");
  CHECK(count(both.log, "BiasGelu") == 0);
  const After quick = fused(head + R"(%4: float32[b, 8] = aten.mul.Tensor(%3, 1.702)
%5: float32[b, 8] = aten.sigmoid.default(%4)
%6: float32[b, 8] = aten.mul.Tensor(%3, %5)
output "y" = %6
)");
  CHECK(quick.nodes.find("onnxruntime.quick_gelu(%3, 1.702)") != std::string::npos);
}
