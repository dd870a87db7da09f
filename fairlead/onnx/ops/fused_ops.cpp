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

// The second result is the sum, which has the fourth place.
void skip_norm(Lowering& b, std::string_view type, const Inputs& inputs, std::size_t eps) {
  const bool summed = b.result_used(1);
  const std::vector<Dtype> dtypes(summed ? 4 : 1, Dtype::kFloat32);
  const Inputs made = b.ops(type, inputs, dtypes, {epsilon(b, eps)}, kDomain);
  b.result(0, made[0]);
  if (summed) b.result(1, made[3]);
}

// onnxruntime::skip_layer_norm(Tensor x, Tensor skip, Tensor weight, Tensor? beta, Tensor? bias,
//   float eps) -> (Tensor, Tensor)
void lower_skip_layer_norm(Lowering& b) {
  skip_norm(b, "SkipLayerNormalization", {b.in(0), b.in(1), b.in(2), b.in(3), b.in(4)}, 5);
}

// onnxruntime::skip_rms_norm(Tensor x, Tensor skip, Tensor weight, Tensor? bias, float eps)
//   -> (Tensor, Tensor)
void lower_skip_rms_norm(Lowering& b) {
  skip_norm(b, "SkipSimplifiedLayerNormalization", {b.in(0), b.in(1), b.in(2), b.in(3)}, 4);
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
  const RotaryTables tables = rotary_tables(b, 1, 2, 3, b.shape(0)[0], b.expr(0));
  Attributes attributes;
  if (b.rank(0) == 3) attributes.push_back(attr("num_heads", b.constant_int(4)));
  b.result(b.op("RotaryEmbedding", {b.in(0), tables.positions, tables.cos, tables.sin},
                std::move(attributes), Dtype::kFloat32, kDomain));
}

constexpr OpRow kRows[] = {
    {"onnxruntime.bias_gelu", lower_bias_gelu, "BiasGelu", ""},
    {"onnxruntime.fast_gelu", lower_fast_gelu, "FastGelu", ""},
    {"onnxruntime.quick_gelu", lower_quick_gelu, "QuickGelu", ""},
    {"onnxruntime.rms_norm", lower_rms_norm, "SimplifiedLayerNormalization", ""},
    {"onnxruntime.rotary_embedding", lower_rotary_embedding, "RotaryEmbedding", ""},
    {"onnxruntime.skip_layer_norm", lower_skip_layer_norm, "SkipLayerNormalization", ""},
    {"onnxruntime.skip_rms_norm", lower_skip_rms_norm, "SkipSimplifiedLayerNormalization", ""},
};

}  // namespace

std::span<const OpRow> fused_ops() { return kRows; }

}  // namespace fairlead::onnx
