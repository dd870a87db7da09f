// Functions of one tensor, element by element.
#include <cmath>
#include <numbers>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/op_name.h"

namespace fairlead::onnx {
namespace {

// One ONNX operator on the input in the result's dtype (integers become floats where PyTorch does so).
template <OpName kOp>
void lower_unary(Lowering& b) {
  b.result(b.op(kOp.text, {b.in(0, b.out_dtype())}));
}

void lower_rsqrt(Lowering& b) {
  b.result(b.op("Reciprocal", {b.op("Sqrt", {b.in(0, b.out_dtype())})}));
}

// aten::gelu(Tensor self, *, str approximate='none') -> Tensor
void lower_gelu(Lowering& b) {
  const Val x = b.in(0);
  if (b.opset() >= 20) {
    return b.result(b.op("Gelu", {x}, {attr("approximate", b.text(1).empty() ? "none" : b.text(1))}));
  }
  const Dtype d = b.out_dtype();
  if (b.text(1) == "tanh") {
    const Val cube = b.op("Mul", {b.op("Mul", {x, x}), x});
    const Val inner = b.op("Add", {x, b.op("Mul", {cube, b.scalar(0.044715, d)})});
    const Val t = b.op("Tanh", {b.op("Mul", {inner, b.scalar(std::sqrt(2 / std::numbers::pi), d)})});
    return b.result(b.op("Mul", {b.op("Mul", {x, b.scalar(0.5, d)}), b.op("Add", {t, b.scalar(1, d)})}));
  }
  const Val e = b.op("Erf", {b.op("Mul", {x, b.scalar(1 / std::numbers::sqrt2, d)})});
  b.result(b.op("Mul", {b.op("Mul", {x, b.scalar(0.5, d)}), b.op("Add", {e, b.scalar(1, d)})}));
}

void lower_silu(Lowering& b) { b.result(b.op("Mul", {b.in(0), b.op("Sigmoid", {b.in(0)})})); }

constexpr OpRow kRows[] = {
    {"aten.abs.default", lower_unary<"Abs">, "Abs", ""},
    {"aten.cos.default", lower_unary<"Cos">, "Cos", ""},
    {"aten.erf.default", lower_unary<"Erf">, "Erf", ""},
    {"aten.exp.default", lower_unary<"Exp">, "Exp", ""},
    {"aten.gelu.default", lower_gelu, "Gelu", ""},
    {"aten.log.default", lower_unary<"Log">, "Log", ""},
    {"aten.neg.default", lower_unary<"Neg">, "Neg", ""},
    {"aten.reciprocal.default", lower_unary<"Reciprocal">, "Reciprocal", ""},
    {"aten.relu.default", lower_unary<"Relu">, "Relu", ""},
    {"aten.rsqrt.default", lower_rsqrt, "Sqrt, Reciprocal", ""},
    {"aten.sigmoid.default", lower_unary<"Sigmoid">, "Sigmoid", ""},
    {"aten.silu.default", lower_silu, "Sigmoid, Mul", ""},
    {"aten.sin.default", lower_unary<"Sin">, "Sin", ""},
    {"aten.sqrt.default", lower_unary<"Sqrt">, "Sqrt", ""},
    {"aten.tanh.default", lower_unary<"Tanh">, "Tanh", ""},
};

}  // namespace

std::span<const OpRow> unary_ops() { return kRows; }

}  // namespace fairlead::onnx
