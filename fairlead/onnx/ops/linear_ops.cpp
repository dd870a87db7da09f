// Matrix products.
#include <algorithm>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/product_forms.h"
#include "fairlead/onnx/ops/step_forms.h"

namespace fairlead::onnx {

namespace {

// The largest of one stands behind a Transpose of the first axis, which the product would take in.
Val apart(Lowering& b, Val v, bool may_be_empty) {
  const bool between = may_be_empty && b.avoids(Fault::kMovedMatrixOfNothing);
  return between && b.first_axis_moved(v) ? b.op("Max", {v}) : v;
}

}  // namespace

bool may_be_empty(Lowering& b, const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [&](Expr size) { return may_be_zero(b, size); });
}

Val product(Lowering& b, Val x, Val y, bool may_be_empty) {
  return b.op("MatMul", {apart(b, x, may_be_empty), apart(b, y, may_be_empty)});
}

namespace {

// Of two arguments of the node.
Val product_of(Lowering& b, std::size_t x, std::size_t y, Val left, Val right) {
  return product(b, left, right, may_be_empty(b, b.shape(x)) || may_be_empty(b, b.shape(y)));
}

// aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
void lower_linear(Lowering& b) {
  Val y;
  if (b.rank(1) == 1) {
    y = b.op("MatMul", {b.in(0), b.in(1)});
  } else {
    const Val x = apart(b, b.in(0), may_be_empty(b, b.shape(0)));
    y = b.op("MatMul", {x, b.transposed_weight(1)});
  }
  b.result(b.has(2) ? b.op("Add", {y, b.in(2)}) : y);
}

// aten::matmul, mm, bmm, mv, dot. Where an empty matrix times a vector is refused, the vector is
// taken as a matrix.
void lower_matmul(Lowering& b) {
  const Dtype d = b.out_dtype();
  const bool vector = b.rank(0) >= 2 && b.rank(1) == 1;
  if (!vector || !b.avoids(Fault::kMatrixOfNothing))
    return b.result(product_of(b, 0, 1, b.in(0, d), b.in(1, d)));
  b.result(b.squeeze(b.op("MatMul", {b.in(0, d), b.unsqueeze(b.in(1, d), {1})}), {-1}));
}

// aten::_int_mm(Tensor self, Tensor mat2) -> Tensor: of int8, sums in int32
void lower_int_mm(Lowering& b) { b.result(b.op("MatMulInteger", {b.in(0), b.in(1)})); }

// beta*self + alpha*(a @ b); ONNX has no product of integers with scales, so they are multiplied
// in.
Val scaled(Lowering& b, Val v, std::size_t i, Dtype d) {
  return !b.has(i) || b.number(i) == 1 ? v : b.op("Mul", {v, b.scalar(b.number(i), d)});
}

// aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor;
// baddbmm alike
void lower_addmm(Lowering& b) {
  const Dtype d = b.out_dtype();
  const Val whole = scaled(b, product_of(b, 1, 2, b.in(1), b.in(2)), 4, d);
  if (b.has(3) && b.number(3) == 0) return b.result(whole);
  b.result(b.op("Add", {scaled(b, b.in(0), 3, d), whole}));
}

constexpr OpRow kRows[] = {
    {"aten._int_mm.default", lower_int_mm, "MatMulInteger", ""},
    {"aten.addmm.default", lower_addmm, "MatMul, Add", ""},
    {"aten.baddbmm.default", lower_addmm, "MatMul, Add", ""},
    {"aten.bmm.default", lower_matmul, "MatMul", ""},
    {"aten.dot.default", lower_matmul, "MatMul", ""},
    {"aten.linear.default", lower_linear, "MatMul, Add", ""},
    {"aten.matmul.default", lower_matmul, "MatMul", ""},
    {"aten.mm.default", lower_matmul, "MatMul", ""},
    {"aten.mv.default", lower_matmul, "MatMul", ""},
};

}  // namespace

std::span<const OpRow> linear_ops() { return kRows; }

}  // namespace fairlead::onnx
