// A row for each token, in the order of the tokens.
#include "fairlead/onnx/ops/rotary_forms.h"

namespace fairlead::onnx {
namespace {

// [batch * sequence, size / 2], or more rows, of [batch, sequence, size / 2].
Val rows_of(Lowering& b, Val v, const Shape& shape, Expr more) {
  const Shape rows = {b.pool().mul(shape[0], shape[1]), shape[2]};
  v = b.reshape(v, shape, rows);
  if (is_const(more, 0)) return v;
  const Val pads = b.concat({b.ints({0, 0}), b.dim(more), b.ints({0})}, 0);
  return b.op("Pad", {v, pads, b.scalar(0, b.dtype_of(v))});
}

Val half_table(Lowering& b, std::size_t i, Expr more) {
  Shape half = b.shape(i);
  half[2] = b.pool().floordiv(half[2], b.expr(2));
  return rows_of(b, b.slice(b.in(i), 2, b.ints({0}), b.dim(half[2])), half, more);
}

}  // namespace

RotaryTables rotary_tables(Lowering& b, std::size_t cos, std::size_t sin, std::size_t angles,
                           Expr batch, Expr more) {
  const Shape& whole = b.shape(b.has(cos) ? cos : angles);
  RotaryTables made;
  if (b.has(cos)) {
    made.cos = half_table(b, cos, more);
    made.sin = half_table(b, sin, more);
  } else {
    const Val rows = rows_of(b, b.in(angles), whole, more);
    made.cos = b.op("Cos", {rows});
    made.sin = b.op("Sin", {rows});
  }
  const Expr count = b.pool().mul(whole[0], whole[1]);
  const Val tokens =
      b.op("Range", {b.size_scalar(b.expr(0)), b.size_scalar(count), b.size_scalar(b.expr(1))});
  const Shape each = {whole[0], whole[1]};
  made.positions = b.expand(b.reshape(tokens, {count}, each), each, {batch, whole[1]});
  return made;
}

}  // namespace fairlead::onnx
