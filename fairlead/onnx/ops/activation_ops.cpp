// Activations.
#include <cmath>
#include <numbers>

#include "fairlead/graph/places.h"
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"

namespace fairlead::onnx {
namespace {

bool is_double(const Num& x) { return x.dtype() == Dtype::kFloat64; }

Num clip(Num x, double low, double high) {
  return {x.b, x.b->op("Clip", {x, x.is(low), x.is(high)})};
}

void lower_sigmoid(Lowering& b) {
  const Num x{&b, b.in(0, b.out_dtype())};
  const bool exact =
      x.dtype() == Dtype::kFloat32 && b.avoids(Fault::kSigmoidTails) && b.result_in_logarithm();
  b.result(exact ? node("Reciprocal", node("Exp", -x) + 1.0) : node("Sigmoid", x));
}

void lower_relu(Lowering& b) {
  const Num x = {&b, b.in(0)};
  b.result(is_float(x.dtype()) ? node("Relu", x) : max(x, 0));
}

// aten::gelu(Tensor self, *, str approximate='none') -> Tensor
void lower_gelu(Lowering& b) {
  const bool tanh = b.text(1) == "tanh";
  if (b.opset() >= 20 && !(tanh && b.dtype(0) == Dtype::kFloat64)) {
    return b.result(b.op("Gelu", {b.in(0)}, {attr("approximate", tanh ? "tanh" : "none")}));
  }
  const Num x = arg(b);
  if (tanh) {
    const Num inner = (x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi);
    return b.result(x * 0.5 * (node("Tanh", inner) + 1.0));
  }
  b.result(x * 0.5 * (node("Erf", x * (1 / std::numbers::sqrt2)) + 1.0));
}

void lower_silu(Lowering& b) {
  const Num x = arg(b);
  b.result(x * node("Sigmoid", x));
}

Num softplus(Num x) {
  if (!is_double(x)) return node("Softplus", x);
  return max(x, 0) + node("Log", 1.0 + node("Exp", -node("Abs", x)));
}

// aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor
void lower_softplus(Lowering& b) {
  const Num x = arg(b);
  const double beta = b.number(1, 1), threshold = b.number(2, 20);
  const Num scaled = beta == 1 ? x : x * beta;
  Num y = softplus(scaled);
  if (beta != 1) y = y / beta;
  // Above the threshold the identity, which the function is anyway from 20 on.
  b.result(threshold >= 20 ? y : where(scaled > threshold, x, y));
}

void lower_mish(Lowering& b) {
  const Num x = arg(b);
  b.result(is_double(x) ? x * node("Tanh", softplus(x)) : node("Mish", x));
}

// aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)
void lower_log_sigmoid(Lowering& b) {
  const Num x = arg(b);
  b.result(-softplus(-x));
  if (b.result_count() > 1 && b.result_used(1)) b.result(1, node("Exp", -node("Abs", x)));
}

// aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor
void lower_leaky_relu(Lowering& b) {
  const Num x = arg(b);
  const double slope = b.number(1, 0.01);
  if (is_double(x)) return b.result(where(x > 0.0, x, x * slope));
  b.result(b.op("LeakyRelu", {x}, {attr("alpha", static_cast<float>(slope))}));
}

// aten::rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.333...,
//   bool training=False, Generator? generator=None) -> Tensor: the middle of the slopes
void lower_rrelu(Lowering& b) {
  if (b.flag(4)) b.unsupported("training mode draws the slopes; call model.eval() first");
  const Num x = arg(b);
  b.result(where(x >= 0.0, x, x * ((b.number(2, 1.0 / 8) + b.number(3, 1.0 / 3)) / 2)));
}

// aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor
//
// scale * x above zero, scale * alpha * (exp(input_scale * x) - 1) below: Elu on input_scale * x.
Val elu(Lowering& b, double alpha, double scale, double input_scale) {
  Num x = arg(b);
  if (is_double(x)) {
    const Num below = (node("Exp", x * input_scale) - 1.0) * (alpha * scale);
    return where(x > 0.0, x * scale, below);
  }
  if (input_scale != 1) x = x * input_scale;
  Num y = {&b, b.op("Elu", {x}, {attr("alpha", static_cast<float>(alpha * input_scale))})};
  return scale == input_scale ? y : y * (scale / input_scale);
}

void lower_elu(Lowering& b) { b.result(elu(b, b.number(1, 1), b.number(2, 1), b.number(3, 1))); }

// aten::celu(Tensor self, Scalar alpha=1.0) -> Tensor
void lower_celu(Lowering& b) { b.result(elu(b, b.number(1, 1), 1, 1 / b.number(1, 1))); }

void lower_selu(Lowering& b) {
  b.result(elu(b, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1));
}

// aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor
void lower_hardtanh(Lowering& b) { b.result(clip({&b, b.in(0)}, b.number(1, -1), b.number(2, 1))); }

void lower_relu6(Lowering& b) { b.result(clip({&b, b.in(0)}, 0, 6)); }

void lower_hardsigmoid(Lowering& b) {
  const Num x = arg(b);
  if (is_double(x)) return b.result(clip(x + 3.0, 0, 6) / 6.0);
  b.result(b.op("HardSigmoid", {x}, {attr("alpha", 1.0F / 6), attr("beta", 0.5F)}));
}

void lower_hardswish(Lowering& b) {
  const Num x = arg(b);
  b.result(is_double(x) ? x * (clip(x + 3.0, 0, 6) / 6.0) : node("HardSwish", x));
}

// aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor
void lower_hardshrink(Lowering& b) {
  const Num x = {&b, b.in(0)};
  b.result(where(node("Abs", x) <= b.number(1, 0.5), 0, x));
}

// aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor
void lower_softshrink(Lowering& b) {
  const Num x = arg(b);
  b.result(x - clip(x, -b.number(1, 0.5), b.number(1, 0.5)));
}

// aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor
void lower_threshold(Lowering& b) {
  const Num x = {&b, b.in(0)};
  const Num at = {&b, b.in(1, x.dtype())}, value = {&b, b.in(2, x.dtype())};
  b.result(where(x <= at, value, x));
}

Val prelu(Lowering& b, Num x, Num weight) {
  if (is_double(x)) return where(x > 0.0, x, x * weight);
  return b.op("PRelu", {x, weight});
}

// aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor: the weight already broadcasts
void lower_prelu_kernel(Lowering& b) { b.result(prelu(b, arg(b), arg(b, 1))); }

// aten::prelu(Tensor self, Tensor weight) -> Tensor: one weight, or one per channel
void lower_prelu(Lowering& b) {
  Num weight = arg(b, 1);
  if (b.rank(0) > 2 && b.rank(1) == 1 && !is_const(b.shape(1)[0], 1)) {
    Shape to(static_cast<std::size_t>(b.rank(0)) - 1, b.expr(1));
    to[0] = b.shape(1)[0];
    weight = {&b, b.reshape(weight, b.shape(1), to)};
  }
  b.result(prelu(b, arg(b), weight));
}

// aten::glu(Tensor self, int dim=-1) -> Tensor
void lower_glu(Lowering& b) {
  const std::int64_t axis = b.has(1) ? b.axis(1) : b.rank(0) - 1;
  const Dtype d = work_dtype(b.out_dtype());
  const Val x = b.in(0, d);
  const Expr size = b.shape(0)[static_cast<std::size_t>(axis)];
  Inputs halves;
  if (least_value(b.pool(), size) > 0) {
    halves = b.ops("Split", {x}, {d, d}, {attr("axis", axis), attr("num_outputs", 2)});
  } else {  // of nothing there are no parts
    const Val half = b.dim(b.pool().floordiv(size, b.expr(2)));
    halves = {b.slice(x, axis, b.ints({0}), half), b.slice(x, axis, half, b.ints({INT64_MAX}))};
  }
  b.result(Num{&b, halves[0]} * node("Sigmoid", Num{&b, halves[1]}));
}

constexpr OpRow kRows[] = {
    {"aten._prelu_kernel.default", lower_prelu_kernel, "PRelu", ""},
    {"aten.celu.default", lower_celu, "Elu", ""},
    {"aten.elu.default", lower_elu, "Elu", ""},
    {"aten.gelu.default", lower_gelu, "Gelu", "float64 is computed in single precision"},
    {"aten.glu.default", lower_glu, "Split, Sigmoid, Mul", ""},
    {"aten.hardshrink.default", lower_hardshrink, "Abs, LessOrEqual, Where", ""},
    {"aten.hardsigmoid.default", lower_hardsigmoid, "HardSigmoid", ""},
    {"aten.hardswish.default", lower_hardswish, "HardSwish", ""},
    {"aten.hardtanh.default", lower_hardtanh, "Clip", ""},
    {"aten.leaky_relu.default", lower_leaky_relu, "LeakyRelu", ""},
    {"aten.log_sigmoid.default", lower_log_sigmoid, "Neg, Softplus, Neg", ""},
    {"aten.log_sigmoid_forward.default", lower_log_sigmoid, "Neg, Softplus, Neg", ""},
    {"aten.mish.default", lower_mish, "Mish", ""},
    {"aten.prelu.default", lower_prelu, "PRelu", ""},
    {"aten.relu.default", lower_relu, "Relu", ""},
    {"aten.relu6.default", lower_relu6, "Clip", ""},
    {"aten.rrelu_with_noise.default", lower_rrelu, "Mul, Where", "not in training"},
    {"aten.selu.default", lower_selu, "Elu, Mul", ""},
    {"aten.sigmoid.default", lower_sigmoid, "Sigmoid", ""},
    {"aten.silu.default", lower_silu, "Sigmoid, Mul", ""},
    {"aten.softplus.default", lower_softplus, "Softplus", ""},
    {"aten.softshrink.default", lower_softshrink, "Clip, Sub", ""},
    {"aten.threshold.default", lower_threshold, "LessOrEqual, Where", ""},
};

}  // namespace

std::span<const OpRow> activation_ops() { return kRows; }

}  // namespace fairlead::onnx
