// Windows of signal processing, whose length may follow a size: hann, hamming, blackman, bartlett,
// kaiser.
#include <cmath>
#include <numbers>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/index_forms.h"

namespace fairlead::onnx {
namespace {

// How far each sample is along the window, from 0 to 1, in double. A periodic window is one longer
// and loses its last sample. A window of one sample is 1 everywhere.
struct Along {
  Num part;
  Expr length;
};

Along along(Lowering& b) {
  const Expr length = b.integer(0);
  const bool periodic = b.flag(1, true);
  const Expr last = periodic ? length : b.pool().sub(length, b.expr(1));
  const Num k = {&b, b.cast(range(b, length), Dtype::kFloat64)};
  const Expr divisor = b.pool().max(last, b.expr(1));
  return {k / Num{&b, b.size_scalar(divisor, Dtype::kFloat64)}, length};
}

void finish(Lowering& b, const Along& at, Num window) {
  const Val single = b.op("Equal", {b.size_scalar(at.length), b.size_scalar(b.expr(1))});
  b.result(where({&b, single}, 1.0, window));
}

Num wave(Num part, double turns) { return node("Cos", part * (2 * std::numbers::pi * turns)); }

// aten::hann_window.periodic(int window_length, bool periodic, ...) -> Tensor
void lower_hann(Lowering& b) {
  const Along at = along(b);
  finish(b, at, 0.5 - 0.5 * wave(at.part, 1));
}

// aten::hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float
// beta); kGiven: how many of alpha and beta an overload has
template <int kGiven>
void lower_hamming(Lowering& b) {
  const double alpha = kGiven > 0 ? b.number(2, 0.54) : 0.54;
  const double beta = kGiven > 1 ? b.number(3, 0.46) : 0.46;
  const Along at = along(b);
  finish(b, at, alpha - beta * wave(at.part, 1));
}

// aten::blackman_window.periodic(int window_length, bool periodic, ...) -> Tensor
void lower_blackman(Lowering& b) {
  const Along at = along(b);
  finish(b, at, 0.42 - 0.5 * wave(at.part, 1) + 0.08 * wave(at.part, 2));
}

// aten::bartlett_window.periodic(int window_length, bool periodic, ...) -> Tensor
void lower_bartlett(Lowering& b) {
  const Along at = along(b);
  finish(b, at, 1.0 - node("Abs", at.part * 2.0 - 1.0));
}

// The modified Bessel function of order 0: the sum of (x*x/4)^k / (k!)^2, as many terms as an
// argument up to `most` needs. `quarter` is x*x/4.
Num bessel(Num quarter, double most) {
  std::vector<double> terms = {1};
  double size = 1, sum = 1;
  for (int k = 1; size > 1e-18 * sum && k < 1000; ++k) {
    terms.push_back(terms.back() / (static_cast<double>(k) * k));
    size *= most * most / 4 / (static_cast<double>(k) * k);
    sum += size;
  }
  Num y = quarter * 0.0 + terms.back();
  for (std::size_t k = terms.size() - 1; k-- > 0;) y = y * quarter + terms[k];
  return y;
}

// aten::kaiser_window.beta(int window_length, bool periodic, float beta, ...) -> Tensor
template <bool kGiven>
void lower_kaiser(Lowering& b) {
  const double beta = kGiven ? b.number(2, 12) : 12;
  const Along at = along(b);
  const Num place = at.part * 2.0 - 1.0;
  const Num quarter = max(1.0 - place * place, 0.0) * (beta * beta / 4);
  const Num whole = bessel(quarter.is(beta * beta / 4), std::abs(beta));
  finish(b, at, bessel(quarter, std::abs(beta)) / whole);
}

constexpr std::string_view kForm = "Range, Cos in float64";

constexpr OpRow kRows[] = {
    {"aten.bartlett_window.default", lower_bartlett, "Range, Abs in float64", ""},
    {"aten.bartlett_window.periodic", lower_bartlett, "Range, Abs in float64", ""},
    {"aten.blackman_window.default", lower_blackman, kForm, ""},
    {"aten.blackman_window.periodic", lower_blackman, kForm, ""},
    {"aten.hamming_window.default", lower_hamming<0>, kForm, ""},
    {"aten.hamming_window.periodic", lower_hamming<0>, kForm, ""},
    {"aten.hamming_window.periodic_alpha", lower_hamming<1>, kForm, ""},
    {"aten.hamming_window.periodic_alpha_beta", lower_hamming<2>, kForm, ""},
    {"aten.hann_window.default", lower_hann, kForm, ""},
    {"aten.hann_window.periodic", lower_hann, kForm, ""},
    {"aten.kaiser_window.beta", lower_kaiser<true>, "Range, Mul, Add in float64", ""},
    {"aten.kaiser_window.default", lower_kaiser<false>, "Range, Mul, Add in float64", ""},
    {"aten.kaiser_window.periodic", lower_kaiser<false>, "Range, Mul, Add in float64", ""},
};

}  // namespace

std::span<const OpRow> taper_ops() { return kRows; }

}  // namespace fairlead::onnx
