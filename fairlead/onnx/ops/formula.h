// Formulas over values of one element type, written as formulas: 0.5 * x * (1.0 + erf(x)).
//
// A number becomes a constant of the type of the value it meets. Every operator is one node.
#pragma once

#include <limits>

#include "fairlead/onnx/kernels.h"
#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Num {
  Lowering* b;
  Val v;
  operator Val() const { return v; }  // NOLINT: a formula is a value
  [[nodiscard]] Dtype dtype() const { return b->dtype_of(v); }
  [[nodiscard]] Num is(double number) const { return {b, b->scalar(number, dtype())}; }
};

inline Num node(std::string_view op, Num x) { return {x.b, x.b->op(op, {x.v})}; }
inline Num node(std::string_view op, Num x, Num y) { return {x.b, x.b->op(op, {x.v, y.v})}; }
inline Num node(std::string_view op, Num x, double y) { return node(op, x, x.is(y)); }

#define FAIRLEAD_INFIX(symbol, name)                                             \
  inline Num operator symbol(Num x, Num y) { return node(name, x, y); }          \
  inline Num operator symbol(Num x, double y) { return node(name, x, x.is(y)); } \
  inline Num operator symbol(double x, Num y) { return node(name, y.is(x), y); }
FAIRLEAD_INFIX(+, "Add")
FAIRLEAD_INFIX(-, "Sub")
FAIRLEAD_INFIX(*, "Mul")
FAIRLEAD_INFIX(/, "Div")
FAIRLEAD_INFIX(<, "Less")
FAIRLEAD_INFIX(<=, "LessOrEqual")
FAIRLEAD_INFIX(>, "Greater")
FAIRLEAD_INFIX(>=, "GreaterOrEqual")
FAIRLEAD_INFIX(==, "Equal")
#undef FAIRLEAD_INFIX

inline Num operator-(Num x) { return node("Neg", x); }
inline Num operator!(Num x) { return node("Not", x); }
inline Num both(Num x, Num y) { return node("And", x, y); }
inline Num either(Num x, Num y) { return node("Or", x, y); }
inline Num max(Num x, Num y) { return node("Max", x, y); }
inline Num max(Num x, double y) { return node("Max", x, y); }
inline Num min(Num x, Num y) { return node("Min", x, y); }
inline Num min(Num x, double y) { return node("Min", x, y); }
inline Num where(Num condition, Num x, Num y) {
  return {x.b, x.b->op("Where", {condition.v, x.v, y.v})};
}
inline Num where(Num condition, double x, Num y) { return where(condition, y.is(x), y); }
inline Num where(Num condition, Num x, double y) { return where(condition, x, x.is(y)); }
inline Num cast(Num x, Dtype dtype) { return {x.b, x.b->cast(x.v, dtype)}; }
// The remainder of division towards zero, with the sign of the dividend.
inline Num fmod(Num x, Num y) { return {x.b, x.b->op("Mod", {x.v, y.v}, {attr("fmod", 1)})}; }
inline Num fmod(Num x, double y) { return fmod(x, x.is(y)); }

// Towards zero; keeps NaN and infinities.
inline Num trunc(Num x) { return node("Sign", x) * node("Floor", node("Abs", x)); }
// log(1 + x) without the loss for small x: log(u) * x / (u - 1) with u = 1 + x as rounded.
inline Num log1p(Num x) {
  const Num finite = min(x, Lowering::highest(x.dtype()));
  const Num d = (finite + 1.0) - 1.0;
  return where(d == 0.0, x, node("Log", x + 1.0) * (finite / d));
}
// True where the sign bit is set, for -0.0 too.
inline Num signbit(Num x) {
  if (!is_float(x.dtype())) return x < 0.0;
  return either(x < 0.0, node("Reciprocal", x) < 0.0);
}

// atan2(y, x), where `slope` is y / x; the sign of a zero counts.
inline Num angle_of(Num y, Num x, Num slope) {
  constexpr double kPi = 3.14159265358979323846;
  const Num turn = where(signbit(x), where(signbit(y), y.is(-kPi), kPi), 0);
  const Num upright = where(y == 0.0, turn, node("Sign", y) * (kPi / 2));
  return where(x == 0.0, upright, node("Atan", slope) + turn);
}

// Argument i, tensor or number, in the type that formulas compute in; `result` casts it back.
inline Num arg(Lowering& b, std::size_t i, Dtype dtype) { return {&b, b.in(i, work_dtype(dtype))}; }
inline Num arg(Lowering& b, std::size_t i = 0) { return arg(b, i, b.out_dtype()); }

}  // namespace fairlead::onnx
