// Operators of ONNX Runtime that fusions write: normalisations, activations, rotary embeddings.
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/rotary_forms.h"

namespace fairlead::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

Attribute epsilon(Lowering& b, std::size_t i) {
  return attr("epsilon", static_cast<float>(b.number(i)));
}

// onnxruntime::rms_norm(Tensor x, Tensor? weight, float eps) -> Tensor
void lower_rms_norm(Lowering& b) {
  const std::int64_t size = b.shape(0).back()->value;
  const Val weight = b.has(1) ? b.in(1) : b.filled(1, Dtype::kFloat32, std::span(&size, 1));
  b.result(b.op("SimplifiedLayerNormalization", {b.in(0), weight},
                {attr("axis", -1), epsilon(b, 2), attr("stash_type", 1)}));
}

// onnxruntime::skip_rms_norm(Tensor x, Tensor skip, Tensor weight, Tensor? bias, float eps)
//   -> (Tensor, Tensor): the second result is the sum, which has the fourth place
void lower_skip_rms_norm(Lowering& b) {
  const bool summed = b.result_used(1);
  const std::vector<Dtype> dtypes(summed ? 4 : 1, Dtype::kFloat32);
  const Inputs made = b.ops("SkipSimplifiedLayerNormalization",
                            {b.in(0), b.in(1), b.in(2), b.in(3)}, dtypes, {epsilon(b, 4)}, kDomain);
  b.result(0, made[0]);
  if (summed) b.result(1, made[3]);
}

// onnxruntime::sum(Tensor x, Tensor? bias, Tensor y) -> Tensor
void lower_sum(Lowering& b) {
  Inputs terms = {b.in(0)};
  if (b.has(1)) terms.push_back(b.in(1));
  terms.push_back(b.in(2));
  b.result(b.op("Sum", terms));
}

// onnxruntime::bias_gelu(Tensor x, Tensor bias) -> Tensor
void lower_bias_gelu(Lowering& b) {
  b.result(b.op("BiasGelu", {b.in(0), b.in(1)}, {}, Dtype::kFloat32, kDomain));
}

// onnxruntime::fast_gelu(Tensor x, Tensor? bias) -> Tensor
void lower_fast_gelu(Lowering& b) {
  b.result(b.op("FastGelu", {b.in(0), b.in(1)}, {}, Dtype::kFloat32, kDomain));
}

// onnxruntime::quick_gelu(Tensor x, float alpha) -> Tensor
void lower_quick_gelu(Lowering& b) {
  b.result(b.op("QuickGelu", {b.in(0)}, {attr("alpha", static_cast<float>(b.number(1)))},
                Dtype::kFloat32, kDomain));
}

// onnxruntime::rotary_embedding(Tensor x, Tensor? cos, Tensor? sin, Tensor? angles, int? heads)
//   -> Tensor: x is [batch, heads, sequence, size], or with the number of heads given
//   [batch, sequence, heads * size]
void lower_rotary_embedding(Lowering& b) {
  const Expr batch = b.shape(0)[0];
  Attributes heads;
  if (b.rank(0) == 3) heads.push_back(attr("num_heads", b.constant_int(4)));
  if (b.opset() >= 23) {  // a standard one, which takes a table for each row
    const RotaryTables tables = rotary_rows(b, 1, 2, 3, batch);
    return b.result(b.op("RotaryEmbedding", {b.in(0), tables.cos, tables.sin}, std::move(heads)));
  }
  const RotaryTables tables = rotary_tables(b, 1, 2, 3, batch, b.expr(0));
  b.result(b.op("RotaryEmbedding", {b.in(0), tables.positions, tables.cos, tables.sin},
                std::move(heads), Dtype::kFloat32, kDomain));
}

// onnxruntime::moe(Tensor x, Tensor? logits, Tensor? weights, Tensor? chosen, Tensor up,
//   Tensor down, int k) -> Tensor
//
// x [rows, size]; up [experts, inner, 2, size], gate and up in turn; down [experts, size, inner].
// The kernel takes the k largest of softmax(logits), divided by their sum. Weights [rows, k] of the
// experts in `chosen` are given to it as logarithms, which divides them by their sum: that is put
// back.
void lower_moe(Lowering& b) {
  Val logits = b.in(1), sum;
  const Shape &up = b.shape(4), &x = b.shape(0);
  if (!logits.present()) {
    // A weight that is 0 to float32 is still one of those chosen.
    const double lowest = Lowering::lowest(Dtype::kFloat32);
    const Val none = b.scalar(lowest, Dtype::kFloat32);
    const Val least = b.scalar(lowest / 2, Dtype::kFloat32);
    const Val all = b.op("Expand", {none, b.shape_tensor(Shape{x[0], up[0]})});
    const Val logarithms = b.op("Max", {b.op("Log", {b.in(2)}), least});
    logits = b.op("ScatterElements", {all, b.in(3), logarithms}, {attr("axis", 1)});
    sum = b.reduce("ReduceSum", b.in(2), {1}, true);
  }
  const Expr rows = b.pool().mul(up[1], up[2]);
  const Val w1 = b.reshape(b.in(4), up, {up[0], rows, up[3]});
  Val y = b.op("MoE", {b.in(0), logits, w1, {}, b.in(5)},
               {attr("k", b.constant_int(6)), attr("activation_type", "swiglu"),
                attr("swiglu_fusion", 1), attr("normalize_routing_weights", 1),
                attr("activation_alpha", 1.0F), attr("activation_beta", 0.0F)},
               Dtype::kFloat32, kDomain);
  b.result(sum.present() ? b.op("Mul", {y, sum}) : y);
}

constexpr OpRow kRows[] = {
    {"onnxruntime.bias_gelu", lower_bias_gelu, "BiasGelu", ""},
    {"onnxruntime.fast_gelu", lower_fast_gelu, "FastGelu", ""},
    {"onnxruntime.moe", lower_moe, "MoE", ""},
    {"onnxruntime.quick_gelu", lower_quick_gelu, "QuickGelu", ""},
    {"onnxruntime.rms_norm", lower_rms_norm, "SimplifiedLayerNormalization", ""},
    {"onnxruntime.rotary_embedding", lower_rotary_embedding, "RotaryEmbedding", ""},
    {"onnxruntime.skip_rms_norm", lower_skip_rms_norm, "SkipSimplifiedLayerNormalization", ""},
    {"onnxruntime.sum", lower_sum, "Sum", ""},
};

}  // namespace

std::span<const OpRow> fused_ops() { return kRows; }

}  // namespace fairlead::onnx
