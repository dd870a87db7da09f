// Scaled-dot-product attention.
#include <cmath>
#include <limits>
#include <optional>

#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

// aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value,
//   Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None,
//   bool enable_gqa=False) -> Tensor
//
// A boolean mask is added as 0 and -inf. A row whose mask is false everywhere is NaN after the
// softmax and zeros in PyTorch: `attend` restores these.
Val additive(Lowering& b, Val mask, Dtype d) {
  if (b.dtype_of(mask) != Dtype::kBool) return b.cast(mask, d);
  return b.op("Where",
              {mask, b.scalar(0, d), b.scalar(-std::numeric_limits<double>::infinity(), d)});
}

// Heads of k and v repeated for grouped queries: [b, kv, s, d] -> [b, heads, s, d].
Val repeat_heads(Lowering& b, Val v, const Shape& shape, Expr heads) {
  const std::size_t r = shape.size();
  const Expr kv = shape[r - 3];
  if (kv == heads) return v;
  if (is_const(kv) && kv->value <= 0) b.unsupported("expected heads of keys, got none");
  const Expr groups = b.pool().floordiv(heads, kv);
  Shape wide = shape, flat = shape;
  wide.insert(wide.end() - 2, groups);
  flat[r - 3] = heads;
  Shape narrow = shape;
  narrow.insert(narrow.end() - 2, b.expr(1));
  const Val expanded = b.expand(b.unsqueeze(v, {static_cast<std::int64_t>(r) - 2}), narrow, wide);
  return b.reshape(expanded, wide, flat);
}

// Where an overload keeps its arguments.
struct Places {
  std::size_t mask, causal, scale;
  int grouped;  // -1: heads always agree
};

struct Attention {
  Val output, logsumexp;
};

Val minus_infinity(Lowering& b, Dtype d) {
  return b.scalar(-std::numeric_limits<double>::infinity(), d);
}

// Whether each row of the mask leaves a key, [.., queries, 1].
Val sees_a_key(Lowering& b, std::size_t mask, Dtype d) {
  const Val seen = b.dtype(mask) == Dtype::kBool
                       ? b.in(mask)
                       : b.op("Greater", {b.in(mask, d), minus_infinity(b, d)});
  return b.cast(b.reduce("ReduceMax", b.cast(seen, Dtype::kInt32), {-1}, true), Dtype::kBool);
}

// The operator of opset 23 takes what it can: four axes without broadcasting, a scale that is a
// constant, a mask or causality of as many keys as queries. What it gives for a row that sees
// nothing, the standard does not say.
std::optional<Val> attention_operator(Lowering& b, const Places& at) {
  const Dtype d = b.out_dtype();
  const Shape &query = b.shape(0), &key = b.shape(1), &value = b.shape(2);
  if (b.opset() < 23 || query.size() != 4 || key.size() != 4 || value.size() != 4 ||
      d != Dtype::kFloat32 || !is_const(query[3]) || !is_const(query[1]) || !is_const(key[1])) {
    return std::nullopt;
  }
  const bool alike = query[0] == key[0] && key[0] == value[0] && key[1] == value[1] &&
                     key[2] == value[2] && query[3] == key[3];
  if (!alike || key[1]->value <= 0 || query[1]->value % key[1]->value != 0) return std::nullopt;
  const bool causal = b.flag(at.causal), masked = b.has(at.mask);
  if (causal && (query[2] != key[2] || masked)) return std::nullopt;
  const Arg& factor = b.node().args[at.scale];
  if (b.has(at.scale) && (factor.kind != ArgKind::kFloat || factor.expr != nullptr)) {
    return std::nullopt;
  }
  const double scale =
      b.has(at.scale) ? b.number(at.scale) : 1 / std::sqrt(static_cast<double>(query[3]->value));
  if (!(scale > 0)) return std::nullopt;  // it takes the root
  Val mask;
  if (masked) {
    const Shape& shape = b.shape(at.mask);
    if (shape.size() < 2) return std::nullopt;
    Shape full = shape;
    full[full.size() - 2] = query[2];
    full.back() = key[2];
    mask =
        b.expand(b.dtype(at.mask) == Dtype::kBool ? b.in(at.mask) : b.in(at.mask, d), shape, full);
  }
  Attributes attributes = {attr("scale", static_cast<float>(scale))};
  if (causal) attributes.push_back(attr("is_causal", 1));
  const Val y =
      b.op("Attention", {b.in(0, d), b.in(1, d), b.in(2, d), mask}, std::move(attributes));
  if (!masked) return y;
  return b.op("Where", {sees_a_key(b, at.mask, d), y, b.scalar(0, d)});
}

Attention attend(Lowering& b, const Places& at, bool logsumexp) {
  if (!logsumexp) {
    if (const auto whole = attention_operator(b, at)) return {*whole, {}};
  }
  const Dtype d = b.out_dtype();
  const Shape& query = b.shape(0);
  const std::size_t r = query.size();
  Val q = b.in(0, d), k = b.in(1, d), v = b.in(2, d);
  if (at.grouped >= 0 && b.flag(static_cast<std::size_t>(at.grouped))) {
    k = repeat_heads(b, k, b.shape(1), query[r - 3]);
    v = repeat_heads(b, v, b.shape(2), query[r - 3]);
  }
  const Expr width = query[r - 1];
  Val scale;
  if (b.has(at.scale)) {
    scale = b.in(at.scale, d);
  } else if (is_const(width)) {
    scale = b.scalar(1 / std::sqrt(static_cast<double>(width->value)), d);
  } else {
    scale = b.op("Reciprocal", {b.op("Sqrt", {b.size_scalar(width, d)})});
  }
  Ints perm(r);
  for (std::size_t i = 0; i < r; ++i) perm[i] = static_cast<std::int64_t>(i);
  std::swap(perm[r - 1], perm[r - 2]);
  Val scores = b.op("MatMul", {b.op("Mul", {q, scale}), b.transpose(k, perm)});
  bool masked = false;
  if (b.flag(at.causal)) {
    // Causal: row i sees keys up to i.
    const auto range = [&](Expr end) {
      return b.op("Range",
                  {b.size_scalar(b.expr(0)), b.size_scalar(end), b.size_scalar(b.expr(1))});
    };
    const Val rows = b.unsqueeze(range(query[r - 2]), {1});
    const Val seen = b.op("LessOrEqual", {range(b.shape(1)[r - 2]), rows});
    scores = b.op("Add", {scores, additive(b, seen, d)});
  } else if (b.has(at.mask)) {
    scores = b.op("Add", {scores, additive(b, b.in(at.mask), d)});
    masked = true;
  }
  Attention result;
  Val weights = b.op("Softmax", {scores}, {attr("axis", -1)});
  if (masked) {
    // PyTorch gives zeros for a row that sees nothing; softmax gives NaN there.
    weights = b.op("Where", {sees_a_key(b, at.mask, d), weights, b.scalar(0, d)});
  }
  result.output = b.op("MatMul", {weights, v});
  if (logsumexp) result.logsumexp = b.reduce("ReduceLogSumExp", scores, {-1}, false);
  return result;
}

void lower_sdpa(Lowering& b) {
  if (b.has(4) && b.number(4) > 0) b.unsupported("dropout; call model.eval() first");
  b.result(attend(b, {3, 5, 6, 7}, false).output);
}

// aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value,
//   float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None)
//   -> (Tensor output, Tensor logsumexp)
void lower_flash(Lowering& b) {
  if (b.has(3) && b.number(3) > 0) b.unsupported("dropout; call model.eval() first");
  const Attention a = attend(b, {5, 4, 6, -1}, b.result_used(1));
  b.result(0, a.output);
  if (b.result_used(1)) b.result(1, a.logsumexp);
}

// Softmax or LogSoftmax along argument 1, in the dtype of the result; a number is a row of one.
Val along_axis(Lowering& b, std::string_view op, Val x) {
  if (b.rank(0) > 0) return b.op(op, {x}, {attr("axis", b.axis(1))});
  return b.squeeze(b.op(op, {b.unsqueeze(x, {0})}, {attr("axis", 0)}), {0});
}

// aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
void lower_softmax(Lowering& b) { b.result(along_axis(b, "Softmax", b.in(0, b.out_dtype()))); }

// aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
void lower_log_softmax(Lowering& b) {
  b.result(along_axis(b, "LogSoftmax", b.in(0, b.out_dtype())));
}

// aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor: zeros where all is
// -inf
void lower_safe_softmax(Lowering& b) {
  const Val x = b.in(0, b.out_dtype());
  const Dtype d = b.dtype_of(x);
  const Val y = along_axis(b, "Softmax", x);
  Val top = x;
  if (b.rank(0) > 0) top = b.reduce("ReduceMax", x, {b.axis(1)}, true);
  b.result(b.op("Where", {b.op("Equal", {top, minus_infinity(b, d)}), b.scalar(0, d), y}));
}

constexpr OpRow kRows[] = {
    {"aten._log_softmax.default", lower_log_softmax, "LogSoftmax", ""},
    {"aten._safe_softmax.default", lower_safe_softmax, "Softmax, Where", ""},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", lower_flash,
     "MatMul, Softmax, MatMul", "no dropout"},
    {"aten._softmax.default", lower_softmax, "Softmax", ""},
    {"aten.log_softmax.int", lower_log_softmax, "LogSoftmax", ""},
    {"aten.scaled_dot_product_attention.default", lower_sdpa,
     "MatMul, Softmax, MatMul; Attention from opset 23", "no dropout"},
    {"aten.softmax.int", lower_softmax, "Softmax", ""},
};

}  // namespace

std::span<const OpRow> attention_ops() { return kRows; }

}  // namespace fairlead::onnx
