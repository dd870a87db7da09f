// Complex numbers, which ONNX has only as pairs of real ones.
#include <cmath>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/fft_ops.h"
#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/product_forms.h"

namespace fairlead::onnx {
namespace {

struct Complex {
  Num re, im;
};

Complex operator+(Complex x, Complex y) { return {x.re + y.re, x.im + y.im}; }
Complex operator-(Complex x, Complex y) { return {x.re - y.re, x.im - y.im}; }
Complex operator*(Complex x, Complex y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
Complex operator*(Complex x, Num y) { return {x.re * y, x.im * y}; }
Complex operator/(Complex x, Num y) { return {x.re / y, x.im / y}; }
Complex conj(Complex x) { return {x.re, -x.im}; }
Num norm(Complex x) { return x.re * x.re + x.im * x.im; }

// Argument i; a real one has the imaginary part 0.
Complex parts(Lowering& b, std::size_t i, Dtype d) {
  if (b.is_complex_arg(i)) return {{&b, b.cast(b.part(i, 0), d)}, {&b, b.cast(b.part(i, 1), d)}};
  return {{&b, b.in(i, d)}, {&b, b.expand(b.scalar(0, d), {}, b.shape(i))}};
}

Dtype real_dtype(Lowering& b) { return part_dtype(b.out_dtype()); }
Complex parts(Lowering& b, std::size_t i = 0) { return parts(b, i, real_dtype(b)); }
Num real(Lowering& b, std::size_t i) { return {&b, b.in(i, real_dtype(b))}; }

void result(Lowering& b, Complex x) { b.result_parts(0, x.re, x.im); }

// aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor; sub and rsub alike
template <bool kMinus, std::size_t kFirst, std::size_t kSecond>
void lower_add(Lowering& b) {
  const Complex x = parts(b, kFirst);
  Complex y = parts(b, kSecond);
  if (b.has(2) && b.number(2) != 1) y = y * real(b, 2);
  result(b, kMinus ? x - y : x + y);
}

void lower_mul(Lowering& b) {
  if (!b.is_complex_arg(1)) return result(b, parts(b, 0) * real(b, 1));
  if (!b.is_complex_arg(0)) return result(b, parts(b, 1) * real(b, 0));
  result(b, parts(b, 0) * parts(b, 1));
}

void lower_div(Lowering& b) {
  if (!b.is_complex_arg(1)) return result(b, parts(b, 0) / real(b, 1));
  const Complex y = parts(b, 1);
  const Complex x = b.is_complex_arg(0) ? parts(b, 0) * conj(y) : conj(y) * real(b, 0);
  result(b, x / norm(y));
}

void lower_reciprocal(Lowering& b) {
  const Complex x = parts(b);
  result(b, conj(x) / norm(x));
}

void lower_neg(Lowering& b) {
  const Complex x = parts(b);
  result(b, {-x.re, -x.im});
}

// aten::_conj(Tensor(a) self) -> Tensor(a)
void lower_conj(Lowering& b) { result(b, conj(parts(b))); }

void lower_exp(Lowering& b) {
  const Complex x = parts(b);
  const Num size = node("Exp", x.re);
  result(b, {size * node("Cos", x.im), size * node("Sin", x.im)});
}

void lower_sin(Lowering& b) {
  const Complex x = parts(b);
  result(b, {node("Sin", x.re) * node("Cosh", x.im), node("Cos", x.re) * node("Sinh", x.im)});
}

void lower_cos(Lowering& b) {
  const Complex x = parts(b);
  result(b, {node("Cos", x.re) * node("Cosh", x.im), -(node("Sin", x.re) * node("Sinh", x.im))});
}

// Both parts of the quotient divided by cosh(re), which overflows.
Complex tanh(Complex x) {
  const Num t = node("Tanh", x.re), c = node("Cos", x.im), s = node("Sin", x.im);
  const Num size = c * c + t * t * s * s;
  return {t / size, s * c * (1.0 - t * t) / size};
}

void lower_tanh(Lowering& b) { result(b, tanh(parts(b))); }

void lower_sigmoid(Lowering& b) {
  const Complex half = tanh(parts(b) * Num{&b, b.scalar(0.5, real_dtype(b))});
  result(b, {half.re * 0.5 + 0.5, half.im * 0.5});
}

void lower_square(Lowering& b) { result(b, parts(b) * parts(b)); }

// aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor: small whole exponents
void lower_pow(Lowering& b) {
  const double p = b.number(1);
  if (p != std::floor(p) || p < 1 || p > 8)
    b.unsupported("a complex number to the power " + std::to_string(p));
  Complex y = parts(b);
  for (int k = 1; k < static_cast<int>(p); ++k) y = y * parts(b);
  result(b, y);
}

Num angle(Complex x) { return angle_of(x.im, x.re, x.im / x.re); }

// In double, whose squares do not overflow.
Num size(Complex x) {
  const Complex wide = {cast(x.re, Dtype::kFloat64), cast(x.im, Dtype::kFloat64)};
  return cast(node("Sqrt", norm(wide)), x.re.dtype());
}

void lower_abs(Lowering& b) { b.result(size(parts(b))); }
void lower_angle(Lowering& b) { b.result(angle(parts(b))); }

void lower_sqrt(Lowering& b) {
  const Complex x = parts(b);
  const Num length = size(x);
  const Num im = node("Sqrt", max((length - x.re) * 0.5, 0.0));
  result(b, {node("Sqrt", max((length + x.re) * 0.5, 0.0)), where(x.im < 0.0, -im, im)});
}

void lower_log(Lowering& b) {
  const Complex x = parts(b);
  result(b, {node("Log", size(x)), angle(x)});
}

// aten::sgn(Tensor self) -> Tensor: x / |x|, 0 for 0
void lower_sgn(Lowering& b) {
  const Complex x = parts(b);
  const Num length = size(x);
  result(b, x / where(length == 0.0, 1, length));
}

template <bool kEqual>
void lower_eq(Lowering& b) {
  const Complex x = parts(b, 0, Dtype::kFloat64), y = parts(b, 1, Dtype::kFloat64);
  const Num same = both(x.re == y.re, x.im == y.im);
  b.result(kEqual ? same : !same);
}

Num matmul(Num x, Num y) { return node("MatMul", x, y); }

void lower_matmul(Lowering& b) {
  const Complex x = parts(b, 0), y = parts(b, 1);
  result(b, {matmul(x.re, y.re) - matmul(x.im, y.im), matmul(x.re, y.im) + matmul(x.im, y.re)});
}

// Every product of a part of each tensor; two imaginary ones make -1.
void lower_einsum(Lowering& b) {
  const auto& items = b.node().args[1].items;
  const Dtype d = real_dtype(b);
  std::vector<Inputs> products = {{}};
  std::vector<int> imaginary = {0};
  for (const Arg& item : items) {
    const bool parts = is_complex(b.graph().values[item.value].dtype);
    const std::size_t before = products.size();
    for (std::size_t k = 0; k < before; ++k) {
      if (parts) {
        products.push_back(products[k]);
        products.back().push_back(b.cast(b.part_of(item.value, 1), d));
        imaginary.push_back(imaginary[k] + 1);
      }
      products[k].push_back(b.cast(parts ? b.part_of(item.value, 0) : b.value(item.value), d));
    }
  }
  std::optional<Num> sums[2];
  for (std::size_t k = 0; k < products.size(); ++k) {
    const Num product = {&b, einsum(b, products[k], d)};
    std::optional<Num>& sum = sums[imaginary[k] % 2];
    const bool minus = imaginary[k] % 4 >= 2;
    sum = !sum ? (minus ? -product : product) : minus ? *sum - product : *sum + product;
  }
  b.result_parts(0, *sums[0], *sums[1]);
}

// aten::complex(Tensor real, Tensor imag) -> Tensor
void lower_complex_of(Lowering& b) {
  const auto wide = [&](std::size_t i) { return b.expand(real(b, i), b.shape(i), b.out_shape()); };
  b.result_parts(0, wide(0), wide(1));
}

// aten::polar(Tensor abs, Tensor angle) -> Tensor
void lower_polar(Lowering& b) {
  const Num r = real(b, 0), t = real(b, 1);
  result(b, {r * node("Cos", t), r * node("Sin", t)});
}

// aten::view_as_complex(Tensor(a) self) -> Tensor(a): the pairs are already what is kept
void lower_same(Lowering& b) { b.result(b.in(0)); }

template <int kPart>
void lower_part(Lowering& b) {
  b.result(b.is_complex_arg(0) ? b.part(0, kPart) : b.in(0));
}

// aten::_to_copy: between complex types, from a real one, or to a real one, which drops the
// imaginary part
void lower_to(Lowering& b) {
  if (!is_complex(b.out_dtype())) return b.result(b.part(0, 0));
  if (b.is_complex_arg(0)) return result(b, parts(b));
  b.result_parts(0, real(b, 0), b.expand(b.scalar(0, real_dtype(b)), {}, b.out_shape()));
}

// aten::ones and full: the number is the real part
template <std::size_t kValue>
void lower_full(Lowering& b) {
  const Dtype d = real_dtype(b);
  if (kValue > 0 && b.is_complex_arg(kValue)) {
    const Complex x = parts(b, kValue);
    return b.result_parts(0, b.expand(x.re, {}, b.out_shape()), b.expand(x.im, {}, b.out_shape()));
  }
  const Val number = kValue == 0 ? b.scalar(1, d) : b.in(kValue, d);
  b.result_parts(0, b.expand(number, {}, b.out_shape()),
                 b.expand(b.scalar(0, d), {}, b.out_shape()));
}

// Operators that have a row for real numbers too.
constexpr OpRow kForms[] = {
    {"aten._to_copy.default", lower_to, "", ""},
    {"aten.abs.default", lower_abs, "", ""},
    {"aten.add.Tensor", lower_add<false, 0, 1>, "", ""},
    {"aten.angle.default", lower_angle, "", ""},
    {"aten.bmm.default", lower_matmul, "", ""},
    {"aten.conj.default", lower_conj, "", ""},
    {"aten.conj_physical.default", lower_conj, "", ""},
    {"aten.cos.default", lower_cos, "", ""},
    {"aten.div.Tensor", lower_div, "", ""},
    {"aten.dot.default", lower_matmul, "", ""},
    {"aten.einsum.default", lower_einsum, "", ""},
    {"aten.eq.Tensor", lower_eq<true>, "", ""},
    {"aten.exp.default", lower_exp, "", ""},
    {"aten.fill.Scalar", lower_full<1>, "", ""},
    {"aten.fill.Tensor", lower_full<1>, "", ""},
    {"aten.full.default", lower_full<1>, "", ""},
    {"aten.full_like.default", lower_full<1>, "", ""},
    {"aten.log.default", lower_log, "", ""},
    {"aten.matmul.default", lower_matmul, "", ""},
    {"aten.mm.default", lower_matmul, "", ""},
    {"aten.mul.Scalar", lower_mul, "", ""},
    {"aten.mul.Tensor", lower_mul, "", ""},
    {"aten.mv.default", lower_matmul, "", ""},
    {"aten.ne.Tensor", lower_eq<false>, "", ""},
    {"aten._neg_view.default", lower_neg, "", ""},
    {"aten.neg.default", lower_neg, "", ""},
    {"aten.new_ones.default", lower_full<0>, "", ""},
    {"aten.ones.default", lower_full<0>, "", ""},
    {"aten.ones_like.default", lower_full<0>, "", ""},
    {"aten.pow.Tensor_Scalar", lower_pow, "", ""},
    {"aten.real.default", lower_part<0>, "", ""},
    {"aten.reciprocal.default", lower_reciprocal, "", ""},
    {"aten.rsub.Scalar", lower_add<true, 1, 0>, "", ""},
    {"aten.scalar_tensor.default", lower_to, "", ""},
    {"aten.sgn.default", lower_sgn, "", ""},
    {"aten.sigmoid.default", lower_sigmoid, "", ""},
    {"aten.sin.default", lower_sin, "", ""},
    {"aten.sqrt.default", lower_sqrt, "", ""},
    {"aten.square.default", lower_square, "", ""},
    {"aten.sub.Tensor", lower_add<true, 0, 1>, "", ""},
    {"aten.tanh.default", lower_tanh, "", ""},
    {"aten.to.dtype", lower_to, "", ""},
};

// Operators of complex numbers only.
constexpr OpRow kRows[] = {
    {"aten._conj.default", lower_conj, "Neg", ""},
    {"aten._fft_c2c.default", lower_fft_c2c, "DFT", ""},
    {"aten._fft_c2r.default", lower_fft_c2r, "DFT", ""},
    {"aten._fft_r2c.default", lower_fft_r2c, "DFT", ""},
    {"aten.complex.default", lower_complex_of, "nothing", ""},
    {"aten.imag.default", lower_part<1>, "nothing", ""},
    {"aten.polar.default", lower_polar, "Cos, Sin, Mul", ""},
    {"aten.view_as_complex.default", lower_same, "nothing", ""},
    {"aten.view_as_real.default", lower_same, "Concat", ""},
};

}  // namespace

std::span<const OpRow> complex_ops() { return kRows; }

void lower_complex(Lowering& b, LowerFn plain) {
  const std::string_view op = b.node().op;
  for (const OpRow& row : kForms) {
    if (row.aten == op) return row.lower(b);
  }
  for (const OpRow& row : kRows) {
    if (row.aten == op) return row.lower(b);
  }
  // What bodies take and give are the parts joined along a last dimension, as of inputs and outputs.
  if (!b.node().bodies.empty()) return plain(b);
  // Operators that move numbers or add them up do it to the parts one after the other.
  if (!b.node().op.has(Trait::kByParts)) b.unsupported("no form for complex numbers");
  for (std::size_t k = 0; k < b.node().args.size(); ++k) {
    if (b.is_tensor(k) && is_float(b.dtype(k))) b.unsupported("mixes real and complex numbers");
  }
  b.run_by_parts(plain);
}

}  // namespace fairlead::onnx
