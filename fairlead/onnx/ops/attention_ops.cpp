// Scaled-dot-product attention.
#include <cmath>
#include <limits>

#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

// aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None,
//   float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor
//
// A row whose mask is false everywhere gives zeros in PyTorch and NaN in a plain softmax. A boolean mask
// becomes an additive one of the lowest finite value, so that such a row is an average instead of NaN;
// eager's zeros are restored by `masked_rows` where the mask can have such rows.
Val additive(Lowering& b, Val mask, Dtype d) {
  if (b.dtype_of(mask) != Dtype::kBool) return b.cast(mask, d);
  return b.op("Where", {mask, b.scalar(0, d), b.scalar(-std::numeric_limits<double>::infinity(), d)});
}

// Heads of k and v repeated for grouped queries: [b, kv, s, d] -> [b, heads, s, d].
Val repeat_heads(Lowering& b, Val v, const Shape& shape, Expr heads) {
  const std::size_t r = shape.size();
  const Expr kv = shape[r - 3];
  if (kv == heads || !is_const(kv) || !is_const(heads)) return v;
  const Expr groups = b.expr(heads->value / kv->value);
  Shape wide = shape, flat = shape;
  wide.insert(wide.end() - 2, groups);
  flat[r - 3] = heads;
  Shape narrow = shape;
  narrow.insert(narrow.end() - 2, b.expr(1));
  const Val expanded = b.expand(b.unsqueeze(v, {static_cast<std::int64_t>(r) - 2}), narrow, wide);
  return b.reshape(expanded, wide, flat);
}

void lower_sdpa(Lowering& b) {
  const Dtype d = b.out_dtype();
  const Shape& query = b.shape(0);
  const std::size_t r = query.size();
  Val q = b.in(0), k = b.in(1), v = b.in(2);
  if (b.flag(7)) {
    k = repeat_heads(b, k, b.shape(1), query[r - 3]);
    v = repeat_heads(b, v, b.shape(2), query[r - 3]);
  }
  const Expr width = query[r - 1];
  Val scale;
  if (b.has(6)) {
    scale = b.in(6, d);
  } else if (is_const(width)) {
    scale = b.scalar(1 / std::sqrt(static_cast<double>(width->value)), d);
  } else {
    scale = b.op("Reciprocal", {b.op("Sqrt", {b.size_scalar(width, d)})});
  }
  std::vector<std::int64_t> perm(r);
  for (std::size_t i = 0; i < r; ++i) perm[i] = static_cast<std::int64_t>(i);
  std::swap(perm[r - 1], perm[r - 2]);
  Val scores = b.op("MatMul", {b.op("Mul", {q, scale}), b.transpose(k, perm)});
  bool masked = false;
  if (b.flag(5)) {
    // Causal: row i sees keys up to i.
    const Val rows = b.unsqueeze(b.op("Range", {b.size_scalar(b.expr(0)), b.size_scalar(query[r - 2]), b.size_scalar(b.expr(1))}), {1});
    const Val cols = b.op("Range", {b.size_scalar(b.expr(0)), b.size_scalar(b.shape(1)[r - 2]), b.size_scalar(b.expr(1))});
    scores = b.op("Add", {scores, additive(b, b.op("LessOrEqual", {cols, rows}), d)});
  } else if (b.has(3)) {
    scores = b.op("Add", {scores, additive(b, b.in(3), d)});
    masked = true;
  }
  Val weights = b.op("Softmax", {scores}, {attr("axis", -1)});
  if (masked) {
    // PyTorch gives zeros for a row that sees nothing; softmax gives NaN there.
    const Val seen = b.dtype(3) == Dtype::kBool
                         ? b.in(3)
                         : b.op("Greater", {b.in(3), b.scalar(-std::numeric_limits<double>::infinity(), b.dtype(3))});
    const Val any = b.cast(b.reduce("ReduceMax", b.cast(seen, Dtype::kInt32), {-1}, true), Dtype::kBool);
    weights = b.op("Where", {any, weights, b.scalar(0, d)});
  }
  b.result(b.op("MatMul", {weights, v}));
}

// aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
void lower_softmax(Lowering& b) {
  const Val x = b.in(0, b.out_dtype());
  b.result(b.rank(0) == 0 ? b.op("Softmax", {b.unsqueeze(x, {0})}, {attr("axis", 0)})
                          : b.op("Softmax", {x}, {attr("axis", b.axis(1))}));
}

constexpr OpRow kRows[] = {
    {"aten._softmax.default", lower_softmax, "Softmax", ""},
    {"aten.scaled_dot_product_attention.default", lower_sdpa, "MatMul, Softmax, MatMul", "no dropout"},
};

}  // namespace

std::span<const OpRow> attention_ops() { return kRows; }

}  // namespace fairlead::onnx
