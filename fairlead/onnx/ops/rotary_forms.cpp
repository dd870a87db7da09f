// A row for each token, in the order of the tokens.
#include "fairlead/onnx/ops/rotary_forms.h"

namespace fairlead::onnx {
namespace {

// [batch * sequence, size / 2] of [batch, sequence, size / 2].
Val rows_of(Lowering& b, Val v, const Shape& shape) {
  return b.reshape(v, shape, {b.pool().mul(shape[0], shape[1]), shape[2]});
}

Val with_more(Lowering& b, Val v, Expr more) {
  if (is_const(more, 0)) return v;
  const Val pads = b.concat({b.ints({0, 0}), b.dim(more), b.ints({0})}, 0);
  return b.op("Pad", {v, pads, b.scalar(0, b.dtype_of(v))});
}

Shape half_of(Lowering& b, std::size_t i) {
  Shape half = b.shape(i);
  half[2] = b.pool().floordiv(half[2], b.expr(2));
  return half;
}

// [batch, sequence, size / 2] of [batch, sequence, size].
Val first_half(Lowering& b, std::size_t i) {
  return b.slice(b.in(i), 2, b.ints({0}), b.dim(half_of(b, i)[2]));
}

}  // namespace

RotaryTables rotary_tables(Lowering& b, std::size_t cos, std::size_t sin, std::size_t angles,
                           Expr batch, Expr more) {
  const Shape& whole = b.shape(b.has(cos) ? cos : angles);
  RotaryTables made;
  if (b.has(cos)) {
    made.cos = with_more(b, rows_of(b, first_half(b, cos), half_of(b, cos)), more);
    made.sin = with_more(b, rows_of(b, first_half(b, sin), half_of(b, sin)), more);
  } else {
    // Of the new tokens alone: what the table is longer than they are nobody reads.
    const Val turned = rows_of(b, b.in(angles), whole);
    made.cos = with_more(b, b.op("Cos", {turned}), more);
    made.sin = with_more(b, b.op("Sin", {turned}), more);
  }
  const Val each =
      b.op("Shape", {b.in(b.has(cos) ? cos : angles)}, {attr("start", 0), attr("end", 2)});
  const Val count = b.reduce("ReduceProd", each, {0}, false);
  const Val tokens = b.op("Range", {b.size_scalar(b.expr(0)), count, b.size_scalar(b.expr(1))});
  const Val rows = b.op("Reshape", {tokens, each});
  made.positions = b.expand(rows, {whole[0], whole[1]}, {batch, whole[1]});
  return made;
}

RotaryTables rotary_rows(Lowering& b, std::size_t cos, std::size_t sin, std::size_t angles,
                         Expr batch) {
  const auto rows = [&](std::size_t i, const char* of) {
    const Shape from = b.has(i) ? half_of(b, i) : b.shape(angles);
    const Val half = b.has(i) ? first_half(b, i) : b.op(of, {b.in(angles)});
    return b.expand(half, from, {batch, from[1], from[2]});
  };
  RotaryTables made;
  made.cos = rows(cos, "Cos");
  made.sin = rows(sin, "Sin");
  return made;
}

}  // namespace fairlead::onnx
