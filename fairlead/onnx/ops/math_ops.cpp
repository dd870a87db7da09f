// Arithmetic of two or more tensors, element by element, with PyTorch's type promotion.
#include <cmath>

#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

// aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor; `sub` alike
template <bool kMinus>
void lower_add(Lowering& b) {
  const Dtype d = b.out_dtype();
  Val other = b.in(1, d);
  if (b.has(2) && !(b.node().args[2].kind == ArgKind::kInt && is_const(b.integer(2), 1)) &&
      !(b.node().args[2].kind == ArgKind::kFloat && b.number(2) == 1)) {
    other = b.op("Mul", {other, b.in(2, d)});
  }
  if (d == Dtype::kBool) return b.result(b.op("Or", {b.in(0, d), other}));
  b.result(b.op(kMinus ? "Sub" : "Add", {b.in(0, d), other}));
}

// aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
void lower_rsub(Lowering& b) {
  const Dtype d = b.out_dtype();
  Val self = b.in(0, d);
  if (b.has(2) && b.number(2) != 1) self = b.op("Mul", {self, b.in(2, d)});
  b.result(b.op("Sub", {b.in(1, d), self}));
}

void lower_mul(Lowering& b) {
  const Dtype d = b.out_dtype();
  b.result(b.op(d == Dtype::kBool ? "And" : "Mul", {b.in(0, d), b.in(1, d)}));
}

void lower_div(Lowering& b) {
  const Dtype d = b.out_dtype();
  b.result(b.op("Div", {b.in(0, d), b.in(1, d)}));
}

// aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
void lower_pow_scalar(Lowering& b) {
  const Dtype d = b.out_dtype();
  const Val x = b.in(0, d);
  if (b.node().args[1].expr == nullptr || b.node().args[1].kind == ArgKind::kInt) {
    const double p = b.number(1);
    if (p == 2) return b.result(b.op("Mul", {x, x}));
    if (p == 1) return b.result(x);
    if (p == 0.5 && is_float(d)) return b.result(b.op("Sqrt", {x}));
  }
  b.result(b.op("Pow", {x, b.in(1, d)}));
}

void lower_pow(Lowering& b) {
  const Dtype d = b.out_dtype();
  b.result(b.op("Pow", {b.in(0, d), b.in(1, d)}));
}

constexpr OpRow kRows[] = {
    {"aten.add.Scalar", lower_add<false>, "Add", ""},
    {"aten.add.Tensor", lower_add<false>, "Add", ""},
    {"aten.div.Scalar", lower_div, "Div", ""},
    {"aten.div.Tensor", lower_div, "Div", ""},
    {"aten.mul.Scalar", lower_mul, "Mul", ""},
    {"aten.mul.Tensor", lower_mul, "Mul", ""},
    {"aten.pow.Scalar", lower_pow, "Pow", ""},
    {"aten.pow.Tensor_Scalar", lower_pow_scalar, "Mul, Sqrt, Pow", ""},
    {"aten.pow.Tensor_Tensor", lower_pow, "Pow", ""},
    {"aten.rsub.Scalar", lower_rsub, "Sub", ""},
    {"aten.sub.Scalar", lower_add<true>, "Sub", ""},
    {"aten.sub.Tensor", lower_add<true>, "Sub", ""},
};

}  // namespace

std::span<const OpRow> math_ops() { return kRows; }

}  // namespace fairlead::onnx
