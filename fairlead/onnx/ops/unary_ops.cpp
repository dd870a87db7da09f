// Functions of one tensor, element by element.
#include <cmath>
#include <cstring>
#include <numbers>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/op_name.h"

namespace fairlead::onnx {
namespace {

// One ONNX operator on the input in the result's dtype (integers become floats where PyTorch does
// so).
template <OpName kOp>
void lower_unary(Lowering& b) {
  b.result(b.op(kOp.text, {b.in(0, b.out_dtype())}));
}

// Rounding leaves integers alone.
template <OpName kOp>
void lower_rounding(Lowering& b) {
  b.result(is_float(b.dtype(0)) ? b.op(kOp.text, {b.in(0)}) : b.in(0));
}

void lower_same(Lowering& b) { b.result(b.in(0)); }

// aten::round.decimals(Tensor self, *, int decimals) -> Tensor
void lower_round_decimals(Lowering& b) {
  if (!is_float(b.dtype(0))) return b.result(b.in(0));
  const std::int64_t decimals = b.constant_int(1);
  const double ten = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  const Num x = arg(b);
  if (decimals == 0) return b.result(node("Round", x));
  b.result(decimals > 0 ? node("Round", x * ten) / ten : node("Round", x / ten) * ten);
}

void lower_trunc(Lowering& b) { b.result(is_float(b.dtype(0)) ? trunc(arg(b)) : Num{&b, b.in(0)}); }

void lower_frac(Lowering& b) {
  const Num x = arg(b);
  b.result(fmod(x, 1));
}

// aten::neg(Tensor self) -> Tensor; unsigned integers wrap
void lower_neg(Lowering& b) {
  const Val x = b.in(0);
  if (dtype_kind(b.dtype(0)) != DtypeKind::kUint) return b.result(b.op("Neg", {x}));
  b.result(b.op("Sub", {b.scalar(0, b.dtype(0)), x}));
}

// aten::sign(Tensor self) -> Tensor
void lower_sign(Lowering& b) {
  if (b.dtype(0) == Dtype::kBool) return b.result(b.in(0));
  if (b.dtype(0) == Dtype::kInt64 && b.avoids(Fault::kWideComparisons)) {
    const Num x = arg(b);
    return b.result(cast(x > 0.0, Dtype::kInt64) - cast(x < 0.0, Dtype::kInt64));
  }
  const Num sign = node("Sign", arg(b));
  b.result(is_float(b.dtype(0)) ? where(node("IsNaN", arg(b)), 0, sign) : sign);
}

// aten::signbit(Tensor self) -> Tensor
void lower_signbit(Lowering& b) {
  const Dtype d = b.dtype(0) == Dtype::kBool ? Dtype::kUint8 : b.dtype(0);
  b.result(signbit(arg(b, 0, d)));
}

void lower_exp2(Lowering& b) {
  const Num x = arg(b);
  b.result(node("Pow", x.is(2), x));
}

// exp(x) - 1 = tanh(x / 2) * (exp(x) + 1), which keeps the digits of a small x.
void lower_expm1(Lowering& b) {
  const Num x = arg(b);
  b.result(node("Tanh", x * 0.5) * (node("Exp", x) + 1.0));
}

void lower_log1p(Lowering& b) { b.result(log1p(arg(b))); }

// Logarithms to base 2 and 10 in double, so that those of powers of the base are whole.
template <int kBase>
void lower_log_base(Lowering& b) {
  const Num x = cast(arg(b), Dtype::kFloat64);
  b.result(node("Log", x) / std::log(static_cast<double>(kBase)));
}

// aten::sinc(Tensor self) -> Tensor: sin(pi*x) / (pi*x), 1 at 0
void lower_sinc(Lowering& b) {
  const Num x = arg(b);
  const Num angle = x * std::numbers::pi;
  b.result(where(x == 0.0, 1.0, node("Sin", angle) / angle));
}

// aten::special_entr(Tensor self) -> Tensor: -x*log(x), 0 at 0, -inf below
void lower_entropy(Lowering& b) {
  const Num x = arg(b);
  const Num y = where(x == 0.0, 0.0, -(x * node("Log", x)));
  b.result(where(x < 0.0, -kInfinity, y));
}

void lower_rsqrt(Lowering& b) { b.result(node("Reciprocal", node("Sqrt", arg(b)))); }

void lower_square(Lowering& b) {
  const Val x = b.in(0, b.out_dtype());
  b.result(b.op("Mul", {x, x}));
}

// What there is no kernel of in float64 is written with those there are.
bool needs_parts(Lowering& b, std::string_view op) {
  return b.out_dtype() == Dtype::kFloat64 && !b.has_kernel(op, Dtype::kFloat64);
}

void lower_tan(Lowering& b) {
  const Num x = arg(b);
  b.result(needs_parts(b, "Tan") ? node("Sin", x) / node("Cos", x) : node("Tan", x));
}

template <int kSign>
void lower_hyperbolic(Lowering& b) {
  const Num x = arg(b);
  const char* own = kSign > 0 ? "Cosh" : "Sinh";
  if (!needs_parts(b, own)) return b.result(node(own, x));
  const Num up = node("Exp", x), down = node("Exp", -x);
  b.result((kSign > 0 ? up + down : up - down) * 0.5);
}

void lower_asinh(Lowering& b) {
  const Num x = arg(b);
  if (!needs_parts(b, "Asinh")) return b.result(node("Asinh", x));
  const Num a = node("Abs", x);
  b.result(node("Sign", x) * node("Log", a + node("Sqrt", a * a + 1.0)));
}

void lower_acosh(Lowering& b) {
  const Num x = arg(b);
  if (!needs_parts(b, "Acosh")) return b.result(node("Acosh", x));
  b.result(node("Log", x + node("Sqrt", x * x - 1.0)));
}

void lower_atanh(Lowering& b) {
  const Num x = arg(b);
  if (!needs_parts(b, "Atanh")) return b.result(node("Atanh", x));
  b.result(node("Log", (1.0 + x) / (1.0 - x)) * 0.5);
}

void lower_erfc(Lowering& b) { b.result(1.0 - node("Erf", arg(b))); }

// Horner's rule; coefficients from the highest power.
Num polynomial(Num x, std::initializer_list<double> coefficients) {
  Num y = x.is(*coefficients.begin());
  for (const double* c = coefficients.begin() + 1; c != coefficients.end(); ++c) y = y * x + *c;
  return y;
}

// Giles' approximation in single precision (GPU Computing Gems, 2011).
void lower_erfinv(Lowering& b) {
  const Num x = arg(b);
  const Num w = -node("Log", (1.0 - x) * (1.0 + x));
  const Num near =
      polynomial(w - 2.5, {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                           0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  const Num far = polynomial(node("Sqrt", w) - 3.0,
                             {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                              0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
  const Num y = where(w < 5.0, near, far) * x;
  b.result(where(node("Abs", x) == 1.0, x * kInfinity, y));
}

// A constant [n] of float64.
Val doubles(Lowering& b, std::initializer_list<double> values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(double));
  std::memcpy(bytes->data(), values.begin(), bytes->size());
  TensorData data;
  data.dtype = Dtype::kFloat64;
  data.dims = {static_cast<std::int64_t>(values.size())};
  data.owned = bytes;
  return b.constant(std::move(data));
}

// log|gamma(x)|: Lanczos with nine terms in double, reflected for x < 1/2.
void lower_lgamma(Lowering& b) {
  const Num x = cast(arg(b), Dtype::kFloat64);
  const Num small = x < 0.5;
  const Num z = where(small, 0.0 - x, x - 1.0);  // gamma(z + 1)
  const Num terms = {
      &b, b.op("Div", {doubles(b, {676.5203681218851, -1259.1392167224028, 771.32342877765313,
                                   -176.61502916214059, 12.507343278686905, -0.13857109526572012,
                                   9.9843695780195716e-6, 1.5056327351493116e-7}),
                       b.op("Add", {b.unsqueeze(z, {-1}), doubles(b, {1, 2, 3, 4, 5, 6, 7, 8})})})};
  const Num sum = Num{&b, b.reduce("ReduceSum", terms, {b.rank(0)}, false)} + 0.99999999999980993;
  const Num t = z + 7.5;
  const Num y = (t - 7.0) * (node("Log", t) - 1.0) + node("Log", sum) +
                (0.5 * std::log(2 * std::numbers::pi) - 7);
  const Num sine = node("Abs", node("Sin", x * std::numbers::pi));
  const Num poles = both(small, node("Floor", x) == x);
  const Num reflected = std::log(std::numbers::pi) - node("Log", sine) - y;
  b.result(where(either(node("IsInf", x), poles), kInfinity, where(small, reflected, y)));
}

// The derivative of lgamma: asymptotic series six steps up, reflected for x < 1/2.
void lower_digamma(Lowering& b) {
  const Num x = cast(arg(b), Dtype::kFloat64);
  const Num small = x < 0.5;
  const Num z = where(small, 1.0 - x, x);
  const Val steps = b.op("Add", {b.unsqueeze(z, {-1}), doubles(b, {0, 1, 2, 3, 4, 5})});
  const Num down = {&b, b.reduce("ReduceSum", b.op("Reciprocal", {steps}), {b.rank(0)}, false)};
  const Num w = z + 6.0;
  const Num r = node("Reciprocal", w * w);
  const Num series = polynomial(r, {-1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12}) * r;
  const Num y = node("Log", w) - 0.5 / w - series - down;
  const Num angle = x * std::numbers::pi;
  const Num reflected = y - std::numbers::pi * node("Cos", angle) / node("Sin", angle);
  const Num whole = both(x < 0.0, node("Floor", x) == x);
  const Num value = where(whole, kNan, where(small, reflected, y));
  b.result(where(x == 0.0, -1.0 * node("Reciprocal", x), value));
}

// aten::logit(Tensor self, float? eps=None) -> Tensor
void lower_logit(Lowering& b) {
  Num x = arg(b);
  if (b.has(1)) x = min(max(x, b.number(1)), 1 - b.number(1));
  b.result(node("Log", x / (1.0 - x)));
}

// aten::isnan(Tensor self) -> Tensor; an integer never is
void lower_isnan(Lowering& b) {
  const Num x = {&b, b.in(0)};
  b.result(is_float(x.dtype()) ? node("IsNaN", x) : !(x == x));
}

void lower_isinf(Lowering& b) {
  const Num x = {&b, b.in(0)};
  b.result(is_float(x.dtype()) ? node("IsInf", x) : !(x == x));
}

// x - x is 0 for finite x and NaN otherwise.
void lower_isfinite(Lowering& b) {
  const Num x = {&b, b.in(0)};
  b.result(is_float(x.dtype()) ? (x - x) == 0.0 : x == x);
}

template <int kSign>
void lower_isinf_signed(Lowering& b) {
  const Num x = {&b, b.in(0)};
  b.result(is_float(x.dtype()) ? x == kSign * kInfinity : !(x == x));
}

// aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor
void lower_nan_to_num(Lowering& b) {
  const Dtype d = b.dtype(0);
  Num x = {&b, b.in(0)};
  if (!is_float(d)) return b.result(x);
  const Num nan = node("IsNaN", x);
  if (!b.has(2) && !b.has(3)) {
    x = {&b,
         b.op("Clip", {x, b.scalar(Lowering::lowest(d), d), b.scalar(Lowering::highest(d), d)})};
  } else {
    const Num y = x;
    x = where(y == kInfinity, b.number(2, Lowering::highest(d)), x);
    x = where(y == -kInfinity, b.number(3, Lowering::lowest(d)), x);
  }
  b.result(where(nan, b.number(1, 0), x));
}

// aten::angle(Tensor self) -> Tensor: 0 or pi for a real number
void lower_angle(Lowering& b) {
  const Num x = arg(b);
  const Num y = where(x < 0.0, x.is(std::numbers::pi), 0.0);
  b.result(where(node("IsNaN", x), x, y));
}

constexpr std::string_view kSinglePrecision = "float64 is computed in single precision";

constexpr OpRow kRows[] = {
    {"aten.abs.default", lower_unary<"Abs">, "Abs", ""},
    {"aten.acos.default", lower_unary<"Acos">, "Acos", kSinglePrecision},
    {"aten.acosh.default", lower_acosh, "Acosh", ""},
    {"aten.angle.default", lower_angle, "Less, Where, IsNaN, Where", ""},
    {"aten.asin.default", lower_unary<"Asin">, "Asin", kSinglePrecision},
    {"aten.asinh.default", lower_asinh, "Asinh", ""},
    {"aten.atan.default", lower_unary<"Atan">, "Atan", kSinglePrecision},
    {"aten.atanh.default", lower_atanh, "Atanh", ""},
    {"aten.ceil.default", lower_rounding<"Ceil">, "Ceil", ""},
    {"aten.conj.default", lower_same, "nothing", ""},
    {"aten.conj_physical.default", lower_same, "nothing", ""},
    {"aten.cos.default", lower_unary<"Cos">, "Cos", ""},
    {"aten.cosh.default", lower_hyperbolic<1>, "Cosh", ""},
    {"aten.deg2rad.default", [](Lowering& b) { b.result(arg(b) * (std::numbers::pi / 180)); },
     "Mul", ""},
    {"aten.digamma.default", lower_digamma, "Log, ReduceSum and a series", ""},
    {"aten.erf.default", lower_unary<"Erf">, "Erf", kSinglePrecision},
    {"aten.erfc.default", lower_erfc, "Erf, Sub", "absolute accuracy 1e-7"},
    {"aten.erfinv.default", lower_erfinv, "a polynomial", kSinglePrecision},
    {"aten.exp.default", lower_unary<"Exp">, "Exp", ""},
    {"aten.exp2.default", lower_exp2, "Pow", ""},
    {"aten.expm1.default", lower_expm1, "Tanh, Exp, Add, Mul", ""},
    {"aten.floor.default", lower_rounding<"Floor">, "Floor", ""},
    {"aten.frac.default", lower_frac, "Mod", ""},
    {"aten.isfinite.default", lower_isfinite, "Sub, Equal", ""},
    {"aten.isinf.default", lower_isinf, "IsInf", ""},
    {"aten.isnan.default", lower_isnan, "IsNaN", ""},
    {"aten.isneginf.default", lower_isinf_signed<-1>, "Equal", ""},
    {"aten.isposinf.default", lower_isinf_signed<1>, "Equal", ""},
    {"aten.lgamma.default", lower_lgamma, "Lanczos' sum in float64", ""},
    {"aten.log.default", lower_unary<"Log">, "Log", ""},
    {"aten.log10.default", lower_log_base<10>, "Log, Div in float64", ""},
    {"aten.log1p.default", lower_log1p, "Log and a correction", ""},
    {"aten.log2.default", lower_log_base<2>, "Log, Div in float64", ""},
    {"aten.logit.default", lower_logit, "Div, Log", ""},
    {"aten.nan_to_num.default", lower_nan_to_num, "Clip, IsNaN, Where", ""},
    {"aten._neg_view.default", lower_neg, "Neg", ""},
    {"aten.neg.default", lower_neg, "Neg", ""},
    {"aten.positive.default", lower_same, "nothing", ""},
    {"aten.rad2deg.default", [](Lowering& b) { b.result(arg(b) * (180 / std::numbers::pi)); },
     "Mul", ""},
    {"aten.real.default", lower_same, "nothing", ""},
    {"aten.reciprocal.default", lower_unary<"Reciprocal">, "Reciprocal", ""},
    {"aten.resolve_conj.default", lower_same, "nothing", ""},
    {"aten.resolve_neg.default", lower_same, "nothing", ""},
    {"aten.round.decimals", lower_round_decimals, "Mul, Round, Div", ""},
    {"aten.round.default", lower_rounding<"Round">, "Round", ""},
    {"aten.rsqrt.default", lower_rsqrt, "Sqrt, Reciprocal", ""},
    {"aten.sgn.default", lower_sign, "Sign", "NaN stays NaN"},
    {"aten.sign.default", lower_sign, "Sign", ""},
    {"aten.signbit.default", lower_signbit, "Less, Reciprocal, Or", "NaN counts as positive"},
    {"aten.sin.default", lower_unary<"Sin">, "Sin", ""},
    {"aten.sinc.default", lower_sinc, "Sin, Div, Where", ""},
    {"aten.sinh.default", lower_hyperbolic<-1>, "Sinh", ""},
    {"aten.special_entr.default", lower_entropy, "Log, Mul, Where", ""},
    {"aten.sqrt.default", lower_unary<"Sqrt">, "Sqrt", ""},
    {"aten.square.default", lower_square, "Mul", ""},
    {"aten.tan.default", lower_tan, "Tan", ""},
    {"aten.tanh.default", lower_unary<"Tanh">, "Tanh", ""},
    {"aten.trunc.default", lower_trunc, "Abs, Floor, Sign, Mul", ""},
};

}  // namespace

std::span<const OpRow> unary_ops() { return kRows; }

}  // namespace fairlead::onnx
