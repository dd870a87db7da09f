// Arithmetic of two or more tensors, element by element, with PyTorch's type promotion.
#include <cmath>
#include <numbers>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/nan_forms.h"
#include "fairlead/onnx/ops/op_name.h"

namespace fairlead::onnx {
namespace {

// Argument i is the number 1, as alpha and beta mostly are.
bool is_one(Lowering& b, std::size_t i) {
  if (!b.has(i)) return true;
  const Arg& a = b.node().args[i];
  return a.kind == ArgKind::kInt ? is_const(a.expr, 1) : a.expr == nullptr && a.number == 1;
}

// aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor; `sub` and `rsub` alike
template <bool kMinus, std::size_t kFirst, std::size_t kScaled>
void lower_add(Lowering& b) {
  const Dtype d = b.out_dtype();
  if (d == Dtype::kBool) return b.result(b.op("Or", {b.in(0, d), b.in(1, d)}));
  const std::string_view op = kMinus ? "Sub" : "Add";
  if (is_one(b, 2)) return b.result(b.op(op, {b.in(kFirst, d), b.in(kScaled, d)}));
  b.result(node(op, arg(b, kFirst), arg(b, kScaled) * arg(b, 2)));
}

void lower_mul(Lowering& b) {
  const Dtype d = b.out_dtype();
  b.result(b.op(d == Dtype::kBool ? "And" : "Mul", {b.in(0, d), b.in(1, d)}));
}

void lower_div(Lowering& b) {
  const Dtype d = b.out_dtype();
  b.result(b.op("Div", {b.in(0, d), b.in(1, d)}));
}

// A number other than zero as argument i: divisions by it need no guard.
bool is_nonzero(Lowering& b, std::size_t i) {
  const Arg& a = b.node().args[i];
  return (a.kind == ArgKind::kInt && is_const(a.expr) && a.expr->value != 0) ||
         (a.kind == ArgKind::kFloat && a.expr == nullptr && a.number != 0);
}

// The divisor, where integers are divided: PyTorch refuses 0, and what else becomes of it the
// standard leaves open.
Num divisor(Lowering& b) {
  const Num y = arg(b, 1);
  return is_float(y.dtype()) || is_nonzero(b, 1) ? y : where(y == 0.0, 1, y);
}

// What is left of x after y was taken from it q times, q rounded towards zero.
Num left_over(Num x, Num y, Num q) { return x - q * y; }

// Whether their signs differ, neither being zero. Their product may be too small to have a sign.
Num apart(Num m, Num y) {
  return node("And", node("Xor", m < 0.0, y < 0.0), node("Not", m == 0.0));
}

// Rounded down. ONNX divides integers towards zero, and its Mod has the divisor's sign: x - x mod y
// is a multiple of y, but may not fit, so that narrow integers compute in a wider type and int64
// corrects the quotient by the difference of both remainders, which is 0 or y. Floats follow
// PyTorch: from the exact remainder, so that 1 // 0.1 is 9 as in Python.
Val floor_divide(Lowering& b) {
  Num x = arg(b), y = divisor(b);
  if (!is_float(x.dtype())) {
    if (dtype_kind(x.dtype()) == DtypeKind::kUint) return x / y;
    if (x.dtype() == Dtype::kInt64) {
      const Num q = x / y;
      return q - (node("Mod", x, y) - left_over(x, y, q)) / y;
    }
    const Dtype wide = x.dtype() == Dtype::kInt32 ? Dtype::kInt64 : Dtype::kInt32;
    x = cast(x, wide);
    y = cast(y, wide);
    return (x - node("Mod", x, y)) / y;
  }
  const Num m = fmod(x, y);
  const Num q = node("Round", (x - m) / y) - cast(apart(m, y), x.dtype());
  return is_nonzero(b, 1) ? q : where(y == 0.0, x / y, q);
}

// aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor
void lower_div_mode(Lowering& b) {
  const std::string_view mode = b.text(2);
  if (mode == "floor") return b.result(floor_divide(b));
  const Num quotient = arg(b) / divisor(b);
  b.result(mode == "trunc" && is_float(quotient.dtype()) ? trunc(quotient) : quotient);
}

void lower_floor_divide(Lowering& b) { b.result(floor_divide(b)); }

// aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor: the sign of the divisor
void lower_remainder(Lowering& b) {
  const Num x = arg(b), y = divisor(b);
  if (!is_float(x.dtype())) return b.result(node("Mod", x, y));
  const Num m = fmod(x, y);
  b.result(m + where(apart(m, y), y, 0));
}

// aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor: the sign of the dividend
void lower_fmod(Lowering& b) {
  const Num x = arg(b), y = divisor(b);
  const bool own = is_float(x.dtype()) || !b.avoids(Fault::kFmodThroughDouble);
  b.result(own ? fmod(x, y) : left_over(x, y, x / y));
}

// x^n by squaring: exact for integers, of whose powers the standard does not say how they are
// rounded.
Num whole_power(Num x, std::int64_t n) {
  Num square = x, y = x;
  bool started = false;
  for (; n > 0; n >>= 1) {
    if ((n & 1) != 0) {
      y = started ? y * square : square;
      started = true;
    }
    if (n > 1) square = square * square;
  }
  return y;
}

// aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
void lower_pow_scalar(Lowering& b) {
  const Dtype d = b.out_dtype();
  const Arg& e = b.node().args[1];
  const bool known = e.kind == ArgKind::kInt ? is_const(e.expr) : e.expr == nullptr;
  if (known) {
    const double p = b.number(1);
    const Val x = b.in(0, d);
    if (p == 1) return b.result(x);
    if (p == 0) return b.result(b.expand(b.scalar(1, d), {}, b.out_shape()));
    if (p == 2) return b.result(b.op("Mul", {x, x}));
    if (is_float(d)) {
      if (p == 0.5) return b.result(b.op("Sqrt", {x}));
      if (p == -0.5) return b.result(node("Reciprocal", node("Sqrt", arg(b))));
      if (p == -1) return b.result(b.op("Reciprocal", {x}));
    } else if (p > 0 && p <= 63) {
      return b.result(whole_power({&b, x}, static_cast<std::int64_t>(p)));
    }
  }
  b.result(node("Pow", arg(b), arg(b, 1)));
}

// The largest element of a constant tensor of int64 that is nowhere negative; -1 where unknown.
std::int64_t largest_of(const TensorData* data) {
  if (data == nullptr || data->dtype != Dtype::kInt64 || data->dims.size() > 1) return -1;
  if (!data->strides.empty() && data->strides[0] != 1) return -1;
  const auto* values = reinterpret_cast<const std::int64_t*>(
      data->owned != nullptr ? data->owned->data() : data->data);
  const std::int64_t n = data->dims.empty() ? 1 : data->dims[0];
  std::int64_t largest = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    if (values[k] < 0) return -1;
    largest = std::max(largest, values[k]);
  }
  return largest;
}

// x^n for whole numbers by squaring, as PyTorch does it: exact, and beyond their bits wrapped
// around. Narrow integers compute in int32, whose lowest bits are theirs.
void lower_pow(Lowering& b) {
  const Dtype d = b.out_dtype();
  if (!is_integer(d)) return b.result(node("Pow", arg(b), arg(b, 1)));
  const Dtype work = dtype_size(d) < 4 ? Dtype::kInt32 : d;
  const Num x = cast(arg(b), work), n = cast(arg(b, 1), work);
  const std::int64_t largest = largest_of(b.data_of(n));
  const std::int64_t most = dtype_size(d) == 1 ? 255 : 63;
  const bool known = largest >= 0 && largest <= most;
  Num square = x, power = x.is(1), rest = n;
  for (std::int64_t left = known ? largest : most; left > 0; left >>= 1) {
    power = power * where(node("Mod", rest, 2) == 1.0, square, x.is(1));
    if (left == 1) break;
    square = square * square;
    rest = rest / 2.0;
  }
  if (known && largest > 0) return b.result(power);
  const Num small{&b, b.op("And", {n >= 0.0, n <= static_cast<double>(most)})};
  b.result(where(small, power, where(x == 0.0, x, node("Pow", x, n))));  // 0^-1 is 0
}

// aten::float_power computes in float64
void lower_float_power(Lowering& b) {
  b.result(b.op("Pow", {b.in(0, Dtype::kFloat64), b.in(1, Dtype::kFloat64)}));
}

template <OpName kOp, OpName kLogic>
void lower_extremum(Lowering& b) {
  const Dtype d = b.out_dtype();
  if (d == Dtype::kBool) return b.result(b.op(kLogic.text, {b.in(0, d), b.in(1, d)}));
  b.result(larger(b, kOp.text == std::string_view("Max"), b.in(0, d), b.in(1, d)));
}

// aten::fmax(Tensor self, Tensor other) -> Tensor: a NaN gives way to the other number
template <OpName kOp, OpName kLogic>
void lower_fmax(Lowering& b) {
  if (!is_float(b.out_dtype())) return lower_extremum<kOp, kLogic>(b);
  const Num x = arg(b), y = arg(b, 1);
  b.result(where(node("IsNaN", x), y, where(node("IsNaN", y), x, node(kOp.text, x, y))));
}

// aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor; clamp.Tensor alike;
// clamp_max has its bound where clamp has min
template <int kLow, int kHigh>
void lower_clamp(Lowering& b) {
  const Dtype d = b.out_dtype();
  const auto bound = [&](int i) { return i < 0 ? Val{} : b.in(static_cast<std::size_t>(i), d); };
  // A number that is not NaN. A bound that is gives NaN everywhere, which Clip does not know.
  const auto plain = [&](int i) {
    if (i < 0) return false;
    const Arg& a = b.node().args[static_cast<std::size_t>(i)];
    return a.kind == ArgKind::kInt || a.kind == ArgKind::kBool ||
           (a.kind == ArgKind::kFloat && !std::isnan(a.number));
  };
  Val x = b.in(0, d);
  const Val low = bound(kLow), high = bound(kHigh);
  const bool one = low.present() != high.present();
  const bool wrong = (d == Dtype::kInt64 && b.avoids(Fault::kWideComparisons)) ||
                     (one && b.avoids(Fault::kClipLosesNan));
  const bool numbers = (!low.present() || plain(kLow)) && (!high.present() || plain(kHigh));
  if ((low.present() || high.present()) && numbers && !wrong) {
    return b.result(high.present() ? b.op("Clip", {x, low, high}) : b.op("Clip", {x, low}));
  }
  if (low.present()) x = larger(b, true, x, low);
  if (high.present()) x = larger(b, false, x, high);
  b.result(x);
}

// aten::atan2(Tensor self, Tensor other) -> Tensor; the sign of a zero counts
void lower_atan2(Lowering& b) {
  const Num y = arg(b), x = arg(b, 1);
  const Num corner = both(node("IsInf", y), node("IsInf", x));
  const Num slope = where(corner, node("Sign", y) * node("Sign", x), y / x);
  b.result(angle_of(y, x, slope));
}

// aten::hypot(Tensor self, Tensor other) -> Tensor: in double, whose squares do not overflow; an
// infinity counts more than a NaN
void lower_hypot(Lowering& b) {
  const Num x = cast(arg(b), Dtype::kFloat64), y = cast(arg(b, 1), Dtype::kFloat64);
  const Num endless = either(node("IsInf", x), node("IsInf", y));
  b.result(where(endless, kInfinity, node("Sqrt", x * x + y * y)));
}

// aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor
void lower_lerp(Lowering& b) {
  const Num start = arg(b), end = arg(b, 1), weight = arg(b, 2);
  b.result(start + weight * (end - start));
}

// aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
template <OpName kOp>
void lower_addc(Lowering& b) {
  Num term = node(kOp.text, arg(b, 1), arg(b, 2));
  if (!is_one(b, 3)) term = term * arg(b, 3);
  b.result(arg(b) + term);
}

// aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor: 0 where x is 0, unless y is NaN
template <bool kPlusOne>
void lower_xlogy(Lowering& b) {
  const Num x = arg(b), y = arg(b, 1);
  const Num value = x * (kPlusOne ? log1p(y) : node("Log", y));
  b.result(where(both(x == 0.0, !node("IsNaN", y)), 0, value));
}

// aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor
void lower_copysign(Lowering& b) {
  const Num size = node("Abs", arg(b));
  b.result(where(signbit(arg(b, 1)), -size, size));
}

// aten::logaddexp(Tensor self, Tensor other) -> Tensor
template <bool kBase2>
void lower_logaddexp(Lowering& b) {
  const double unit = kBase2 ? std::numbers::ln2 : 1;
  const Num x = arg(b), y = arg(b, 1);
  const Num gap = node("Abs", where(x == y, 0, x - y));  // equal infinities have no difference
  const Num tail = node("Log", 1.0 + node("Exp", gap * -unit));
  b.result(max(x, y) + (kBase2 ? tail / unit : tail));
}

// aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor: self * 2^other
void lower_ldexp(Lowering& b) {
  const Num x = arg(b), n = arg(b, 1);
  b.result(x * node("Pow", x.is(2), n));
}

// aten::heaviside(Tensor self, Tensor values) -> Tensor
void lower_heaviside(Lowering& b) {
  const Num x = arg(b);
  b.result(where(x == 0.0, arg(b, 1), cast(x > 0.0, x.dtype())));
}

constexpr std::string_view kWhole =
    "integers exact up to 2^53 where the exponent is 64 or more, or negative";

constexpr OpRow kRows[] = {
    {"aten.add.Scalar", lower_add<false, 0, 1>, "Add", ""},
    {"aten.add.Tensor", lower_add<false, 0, 1>, "Add", ""},
    {"aten.addcdiv.default", lower_addc<"Div">, "Div, Add", ""},
    {"aten.addcmul.default", lower_addc<"Mul">, "Mul, Add", ""},
    {"aten.atan2.default", lower_atan2, "Div, Atan, Where", "-0.0 counts as 0"},
    {"aten.clamp.Tensor", lower_clamp<1, 2>, "Max, Min", ""},
    {"aten.clamp.default", lower_clamp<1, 2>, "Clip", ""},
    {"aten.clamp_max.Tensor", lower_clamp<-1, 1>, "Min", ""},
    {"aten.clamp_max.default", lower_clamp<-1, 1>, "Min", ""},
    {"aten.clamp_min.Tensor", lower_clamp<1, -1>, "Max", ""},
    {"aten.clamp_min.default", lower_clamp<1, -1>, "Max", ""},
    {"aten.clip.Tensor", lower_clamp<1, 2>, "Max, Min", ""},
    {"aten.clip.default", lower_clamp<1, 2>, "Clip", ""},
    {"aten.copysign.Scalar", lower_copysign, "Abs, Less, Where", ""},
    {"aten.copysign.Tensor", lower_copysign, "Abs, Less, Where", ""},
    {"aten.div.Scalar", lower_div, "Div", ""},
    {"aten.div.Scalar_mode", lower_div_mode, "Div, Mod, Floor", ""},
    {"aten.div.Tensor", lower_div, "Div", ""},
    {"aten.div.Tensor_mode", lower_div_mode, "Div, Mod, Floor", ""},
    {"aten.divide.Tensor", lower_div, "Div", ""},
    {"aten.float_power.Scalar", lower_float_power, "Pow", ""},
    {"aten.float_power.Tensor_Scalar", lower_float_power, "Pow", ""},
    {"aten.float_power.Tensor_Tensor", lower_float_power, "Pow", ""},
    {"aten.floor_divide.Scalar", lower_floor_divide, "Mod, Sub, Div", ""},
    {"aten.floor_divide.Tensor", lower_floor_divide, "Mod, Sub, Div", ""},
    {"aten.floor_divide.default", lower_floor_divide, "Mod, Sub, Div", ""},
    {"aten.fmax.default", lower_fmax<"Max", "Or">, "Max, IsNaN, Where", ""},
    {"aten.fmin.default", lower_fmax<"Min", "And">, "Min, IsNaN, Where", ""},
    {"aten.fmod.Scalar", lower_fmod, "Mod", ""},
    {"aten.fmod.Tensor", lower_fmod, "Mod", ""},
    {"aten.heaviside.default", lower_heaviside, "Greater, Equal, Where", ""},
    {"aten.hypot.default", lower_hypot, "Mul, Add, Sqrt in float64", ""},
    {"aten.ldexp.Tensor", lower_ldexp, "Pow, Mul", ""},
    {"aten.lerp.Scalar", lower_lerp, "Sub, Mul, Add", ""},
    {"aten.lerp.Tensor", lower_lerp, "Sub, Mul, Add", ""},
    {"aten.logaddexp.default", lower_logaddexp<false>, "Max, Exp, Log, Add", ""},
    {"aten.logaddexp2.default", lower_logaddexp<true>, "Max, Exp, Log, Add", ""},
    {"aten.max.other", lower_extremum<"Max", "Or">, "Max", ""},
    {"aten.maximum.default", lower_extremum<"Max", "Or">, "Max", ""},
    {"aten.min.other", lower_extremum<"Min", "And">, "Min", ""},
    {"aten.minimum.default", lower_extremum<"Min", "And">, "Min", ""},
    {"aten.mul.Scalar", lower_mul, "Mul", ""},
    {"aten.mul.Tensor", lower_mul, "Mul", ""},
    {"aten.multiply.Tensor", lower_mul, "Mul", ""},
    {"aten.pow.Scalar", lower_pow, "Pow", kWhole},
    {"aten.pow.Tensor_Scalar", lower_pow_scalar, "Mul, Sqrt, Reciprocal, Pow", ""},
    {"aten.pow.Tensor_Tensor", lower_pow, "Pow", kWhole},
    {"aten.remainder.Scalar", lower_remainder, "Mod", ""},
    {"aten.remainder.Scalar_Tensor", lower_remainder, "Mod", ""},
    {"aten.remainder.Tensor", lower_remainder, "Mod", ""},
    {"aten.rsub.Scalar", lower_add<true, 1, 0>, "Sub", ""},
    {"aten.rsub.Tensor", lower_add<true, 1, 0>, "Sub", ""},
    {"aten.special_xlog1py.default", lower_xlogy<true>, "Log, Mul, Where", ""},
    {"aten.sub.Scalar", lower_add<true, 0, 1>, "Sub", ""},
    {"aten.sub.Tensor", lower_add<true, 0, 1>, "Sub", ""},
    {"aten.subtract.Tensor", lower_add<true, 0, 1>, "Sub", ""},
    {"aten.true_divide.Tensor", lower_div, "Div", ""},
    {"aten.xlogy.Scalar_Other", lower_xlogy<false>, "Log, Mul, Where", ""},
    {"aten.xlogy.Scalar_Self", lower_xlogy<false>, "Log, Mul, Where", ""},
    {"aten.xlogy.Tensor", lower_xlogy<false>, "Log, Mul, Where", ""},
};

}  // namespace

std::span<const OpRow> math_ops() { return kRows; }

}  // namespace fairlead::onnx
