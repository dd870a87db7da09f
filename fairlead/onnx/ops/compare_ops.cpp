// Comparisons, logic and choice.
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/op_name.h"

namespace fairlead::onnx {
namespace {

// Compared in the promoted type; ONNX compares bools only for equality, so they become integers.
template <OpName kOp, bool kNegate>
void lower_compare(Lowering& b) {
  Dtype d = b.promoted({0, 1});
  if (d == Dtype::kBool && std::string_view(kOp.text) != "Equal") d = Dtype::kInt32;
  const Val v = b.op(kOp.text, {b.in(0, d), b.in(1, d)});
  b.result(kNegate ? b.op("Not", {v}) : v);
}

// aten::bitwise_and.Tensor and its kin: logic on bools, bits on integers
template <OpName kLogic, OpName kBits>
void lower_bitwise(Lowering& b) {
  const Dtype d = b.out_dtype();
  b.result(b.op(d == Dtype::kBool ? kLogic.text : kBits.text, {b.in(0, d), b.in(1, d)}));
}

void lower_bitwise_not(Lowering& b) {
  b.result(b.op(b.out_dtype() == Dtype::kBool ? "Not" : "BitwiseNot", {b.in(0)}));
}

template <OpName kOp>
void lower_logical(Lowering& b) {
  b.result(b.op(kOp.text, {b.in(0, Dtype::kBool), b.in(1, Dtype::kBool)}));
}

void lower_logical_not(Lowering& b) { b.result(b.op("Not", {b.in(0, Dtype::kBool)})); }

// aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor
void lower_where(Lowering& b) {
  const Dtype d = b.out_dtype();
  b.result(b.op("Where", {b.in(0, Dtype::kBool), b.in(1, d), b.in(2, d)}));
}

// aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor
void lower_masked_fill(Lowering& b) {
  const Dtype d = b.out_dtype();
  b.result(b.op("Where", {b.in(1, Dtype::kBool), b.in(2, d), b.in(0, d)}));
}

constexpr OpRow kRows[] = {
    {"aten.bitwise_and.Tensor", lower_bitwise<"And", "BitwiseAnd">, "And, BitwiseAnd", ""},
    {"aten.bitwise_not.default", lower_bitwise_not, "Not, BitwiseNot", ""},
    {"aten.bitwise_or.Tensor", lower_bitwise<"Or", "BitwiseOr">, "Or, BitwiseOr", ""},
    {"aten.bitwise_xor.Tensor", lower_bitwise<"Xor", "BitwiseXor">, "Xor, BitwiseXor", ""},
    {"aten.eq.Scalar", lower_compare<"Equal", false>, "Equal", ""},
    {"aten.eq.Tensor", lower_compare<"Equal", false>, "Equal", ""},
    {"aten.ge.Scalar", lower_compare<"GreaterOrEqual", false>, "GreaterOrEqual", ""},
    {"aten.ge.Tensor", lower_compare<"GreaterOrEqual", false>, "GreaterOrEqual", ""},
    {"aten.gt.Scalar", lower_compare<"Greater", false>, "Greater", ""},
    {"aten.gt.Tensor", lower_compare<"Greater", false>, "Greater", ""},
    {"aten.le.Scalar", lower_compare<"LessOrEqual", false>, "LessOrEqual", ""},
    {"aten.le.Tensor", lower_compare<"LessOrEqual", false>, "LessOrEqual", ""},
    {"aten.logical_and.default", lower_logical<"And">, "And", ""},
    {"aten.logical_not.default", lower_logical_not, "Not", ""},
    {"aten.logical_or.default", lower_logical<"Or">, "Or", ""},
    {"aten.logical_xor.default", lower_logical<"Xor">, "Xor", ""},
    {"aten.lt.Scalar", lower_compare<"Less", false>, "Less", ""},
    {"aten.lt.Tensor", lower_compare<"Less", false>, "Less", ""},
    {"aten.masked_fill.Scalar", lower_masked_fill, "Where", ""},
    {"aten.masked_fill.Tensor", lower_masked_fill, "Where", ""},
    {"aten.ne.Scalar", lower_compare<"Equal", true>, "Equal, Not", ""},
    {"aten.ne.Tensor", lower_compare<"Equal", true>, "Equal, Not", ""},
    {"aten.where.self", lower_where, "Where", ""},
};

}  // namespace

std::span<const OpRow> compare_ops() { return kRows; }

}  // namespace fairlead::onnx
