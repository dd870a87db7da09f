// Attention in one operator of ONNX Runtime.
#include <limits>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/rotary_forms.h"
#include "fairlead/passes/fuse_group_query_attention.h"

namespace fairlead::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";
constexpr Dtype kFloat = Dtype::kFloat32;

// [batch, sequence, heads * size] of argument i, which may have the heads apart: behind the
// sequence, or before it where `swapped`.
Val joined(Lowering& b, std::size_t i, bool swapped) {
  if (!b.has(i) || b.rank(i) == 3) return b.in(i);
  Shape shape = b.shape(i);
  Val v = b.in(i);
  if (swapped) {
    v = b.transpose(v, {0, 2, 1, 3});
    shape = {shape[0], shape[2], shape[1], shape[3]};
  }
  return b.reshape(v, shape, {shape[0], shape[1], b.pool().mul(shape[2], shape[3])});
}

// What is added to the scores for a mask [batch or 1, heads or 1, queries or 1, keys].
Val bias_of(Lowering& b, std::size_t i, Expr queries, double hidden) {
  if (!b.has(i)) return {};
  const Shape& shape = b.shape(i);
  Val v = b.in(i);
  if (b.dtype(i) == Dtype::kBool) {
    v = b.op("Where", {v, b.scalar(0, kFloat), b.scalar(hidden, kFloat)});
  }
  Shape full = shape;
  full[2] = queries;
  return b.expand(v, shape, full);
}

// `last` [1], or the file stops.
Val with_same_angles(Lowering& b, Val last, std::size_t i, Expr past) {
  const Val angles = b.in(i);
  const Val off = b.op("Sub", {angles, b.slice(angles, 0, b.ints({0}), b.ints({1}))});
  const Val sum = b.reduce("ReduceSumSquare", off, {0, 1, 2}, false);
  const Val first = b.op("Less", {b.dim(past), b.ints({1})});
  const Val wrong = b.op("And", {b.cast(sum, Dtype::kBool), first});
  return b.unless(last, b.cast(wrong, Dtype::kInt64), kRotationWords);
}

// The kernel gives NaN for a query that is alone and sees nothing, and zeros for others: then the
// file stops.
Val with_a_key_to_see(Lowering& b, Val last, Val bias, Expr total) {
  const Val least = b.op("ReduceMin", {bias}, {attr("keepdims", 0)});
  const Val alone = b.op("Less", {b.dim(total), b.ints({2})}, {}, Dtype::kBool);
  const Val wrong =
      b.op("And", {b.op("IsInf", {least}, {attr("detect_positive", 0)}, Dtype::kBool), alone});
  return b.unless(last, b.cast(wrong, Dtype::kInt64), "a token that is alone is not masked");
}

// onnxruntime::group_query_attention(Tensor query, Tensor? key, Tensor? value, Tensor? past_key,
//   Tensor? past_value, Tensor? cos, Tensor? sin, Tensor? mask, int heads, int kv_heads, int size,
//   float scale, bool query_swapped, bool key_swapped, bool value_swapped, Tensor? angles,
//   bool same_angles)
//   -> (Tensor, Tensor present_key, Tensor present_value)
//
// It rotates by cos and sin, or by `angles` [batch, sequence, size / 2], or not; with `same_angles`
// these have to be the same in all rows where there is no past.
//
// The kernel gives zeros for a query whose keys all have -inf, as PyTorch does, but for one. Every row is as
// long as the cache with its new tokens: what is padding says the mask.
void lower_group_query_attention(Lowering& b) {
  const Shape& out = b.out_shape(0);
  const Expr batch = out[0], queries = out[1];
  const Expr past = b.has(3) ? b.shape(3)[2] : b.expr(0);
  const Expr total = b.pool().add(queries, past);
  Val last = b.dim(b.pool().sub(total, b.expr(1)));
  if (b.flag(16)) last = with_same_angles(b, last, 15, past);
  const Val bias = bias_of(b, 7, queries, -std::numeric_limits<double>::infinity());
  if (bias.present() && (!is_const(total) || is_const(total, 1)))
    last = with_a_key_to_see(b, last, bias, total);
  const Val lengths = b.expand(b.cast(last, Dtype::kInt32), {b.expr(1)}, {batch});
  Inputs inputs = {joined(b, 0, b.flag(12)),
                   joined(b, 1, b.flag(13)),
                   joined(b, 2, b.flag(14)),
                   b.in(3),
                   b.in(4),
                   lengths,
                   b.cast(b.dim(total), Dtype::kInt32),
                   {},
                   {},
                   {},
                   bias};
  Attributes attributes = {attr("num_heads", b.constant_int(8)),
                           attr("kv_num_heads", b.constant_int(9)),
                           attr("scale", static_cast<float>(b.number(11)))};
  if (b.has(5) || b.has(15)) {
    const RotaryTables tables = rotary_tables(b, 5, 6, 15, batch, past);
    inputs[7] = tables.cos;
    inputs[8] = tables.sin;
    inputs[9] = tables.positions;
    attributes.push_back(attr("do_rotary", 1));
  }
  const Inputs made = b.ops("GroupQueryAttention", inputs, {kFloat, kFloat, kFloat},
                            std::move(attributes), kDomain);
  for (std::size_t k = 0; k < 3; ++k) b.result(k, made[k]);
}

// onnxruntime::multi_head_attention(Tensor query, Tensor key, Tensor value, Tensor? past_key,
//   Tensor? past_value, Tensor? mask, int heads, int size, float scale, bool causal,
//   bool sees_itself, bool query_swapped, bool key_swapped, bool value_swapped)
//   -> (Tensor, Tensor present_key, Tensor present_value)
void lower_multi_head_attention(Lowering& b) {
  const Shape& out = b.out_shape(0);
  const bool cached = b.has(3);
  // Keys and values with their heads apart are taken as they are, both or none.
  const bool apart = !cached && b.flag(12) && b.flag(13);
  // The kernel gives NaN where all is -inf: the lowest number instead, and zeros afterwards.
  const double lowest = Lowering::lowest(kFloat);
  Val bias = bias_of(b, 5, out[1], lowest);
  const bool booleans = b.has(5) && b.dtype(5) == Dtype::kBool;
  if (b.has(5) && !booleans) bias = b.op("Max", {bias, b.scalar(lowest, kFloat)});
  Attributes attributes = {attr("num_heads", b.constant_int(6)),
                           attr("scale", static_cast<float>(b.number(8)))};
  if (b.flag(9)) attributes.push_back(attr("unidirectional", 1));
  const std::vector<Dtype> dtypes(cached ? 3 : 1, kFloat);
  const Inputs made = b.ops("MultiHeadAttention",
                            {joined(b, 0, b.flag(11)),
                             apart ? b.in(1) : joined(b, 1, b.flag(12)),
                             apart ? b.in(2) : joined(b, 2, b.flag(13)),
                             {},
                             {},
                             bias,
                             b.in(3),
                             b.in(4)},
                            dtypes, std::move(attributes), kDomain);
  Val y = made[0];
  if (b.has(5) && !b.flag(10)) {
    const Val infinite = b.scalar(-std::numeric_limits<double>::infinity(), kFloat);
    const Val seen = booleans ? b.in(5) : b.op("Greater", {b.in(5), infinite});
    const Val any = b.reduce("ReduceMax", b.cast(seen, Dtype::kInt32), {-1}, true);
    y = b.op("Where", {b.squeeze(b.cast(any, Dtype::kBool), {1}), y, b.scalar(0, kFloat)});
  }
  b.result(0, y);
  if (!cached) return;
  b.result(1, made[1]);
  b.result(2, made[2]);
}

constexpr OpRow kRows[] = {
    {"onnxruntime.group_query_attention", lower_group_query_attention, "GroupQueryAttention",
     "several rows, or several tokens after a cache, not both"},
    {"onnxruntime.multi_head_attention", lower_multi_head_attention, "MultiHeadAttention", ""},
};

}  // namespace

std::span<const OpRow> fused_attention_ops() { return kRows; }

}  // namespace fairlead::onnx
