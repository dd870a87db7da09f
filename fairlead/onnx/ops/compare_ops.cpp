// Comparisons, logic and choice.
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"
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

// aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor
//
// BitShift takes unsigned integers only; as uint64 the bits that leave on the left are cut by the
// cast back.
void lower_left_shift(Lowering& b) {
  const Dtype u = Dtype::kUint64;
  b.result(b.op("BitShift", {b.in(0, u), b.in(1, u)}, {attr("direction", "LEFT")}));
}

// The right shift of a signed integer is its division by a power of two, rounded down.
void lower_right_shift(Lowering& b) {
  const Dtype u = Dtype::kUint64;
  if (dtype_kind(b.out_dtype()) == DtypeKind::kUint) {
    return b.result(b.op("BitShift", {b.in(0, u), b.in(1, u)}, {attr("direction", "RIGHT")}));
  }
  const Val power = b.op("BitShift", {b.scalar(1, u), b.in(1, u)}, {attr("direction", "LEFT")});
  const Num x = {&b, b.in(0, Dtype::kInt64)}, p = {&b, b.cast(power, Dtype::kInt64)};
  b.result((x - node("Mod", x, p)) / p);
}

template <OpName kOp>
void lower_logical(Lowering& b) {
  b.result(b.op(kOp.text, {b.in(0, Dtype::kBool), b.in(1, Dtype::kBool)}));
}

void lower_logical_not(Lowering& b) { b.result(b.op("Not", {b.in(0, Dtype::kBool)})); }

// aten::isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool
// equal_nan=False)
void lower_isclose(Lowering& b) {
  const Dtype d = is_float(b.dtype(0)) ? work_dtype(b.dtype(0)) : Dtype::kFloat64;
  const Num x = {&b, b.in(0, d)}, y = {&b, b.in(1, d)};
  const Num gap = node("Abs", x - y);
  const Num allowed = b.number(3, 1e-8) + b.number(2, 1e-5) * node("Abs", y);
  Num close = either(x == y, both(gap <= allowed, gap < kInfinity));
  if (b.flag(4)) close = either(close, both(node("IsNaN", x), node("IsNaN", y)));
  b.result(close);
}

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
    {"aten.__and__.Scalar", lower_bitwise<"And", "BitwiseAnd">, "And, BitwiseAnd", ""},
    {"aten.__and__.Tensor", lower_bitwise<"And", "BitwiseAnd">, "And, BitwiseAnd", ""},
    {"aten.__lshift__.Scalar", lower_left_shift, "BitShift", ""},
    {"aten.__lshift__.Tensor", lower_left_shift, "BitShift", ""},
    {"aten.__or__.Scalar", lower_bitwise<"Or", "BitwiseOr">, "Or, BitwiseOr", ""},
    {"aten.__or__.Tensor", lower_bitwise<"Or", "BitwiseOr">, "Or, BitwiseOr", ""},
    {"aten.__rshift__.Scalar", lower_right_shift, "BitShift, Mod, Div", ""},
    {"aten.__rshift__.Tensor", lower_right_shift, "BitShift, Mod, Div", ""},
    {"aten.__xor__.Scalar", lower_bitwise<"Xor", "BitwiseXor">, "Xor, BitwiseXor", ""},
    {"aten.__xor__.Tensor", lower_bitwise<"Xor", "BitwiseXor">, "Xor, BitwiseXor", ""},
    {"aten.bitwise_and.Scalar", lower_bitwise<"And", "BitwiseAnd">, "And, BitwiseAnd", ""},
    {"aten.bitwise_and.Scalar_Tensor", lower_bitwise<"And", "BitwiseAnd">, "And, BitwiseAnd", ""},
    {"aten.bitwise_and.Tensor", lower_bitwise<"And", "BitwiseAnd">, "And, BitwiseAnd", ""},
    {"aten.bitwise_left_shift.Scalar_Tensor", lower_left_shift, "BitShift", ""},
    {"aten.bitwise_left_shift.Tensor", lower_left_shift, "BitShift", ""},
    {"aten.bitwise_left_shift.Tensor_Scalar", lower_left_shift, "BitShift", ""},
    {"aten.bitwise_not.default", lower_bitwise_not, "Not, BitwiseNot", ""},
    {"aten.bitwise_or.Scalar", lower_bitwise<"Or", "BitwiseOr">, "Or, BitwiseOr", ""},
    {"aten.bitwise_or.Scalar_Tensor", lower_bitwise<"Or", "BitwiseOr">, "Or, BitwiseOr", ""},
    {"aten.bitwise_or.Tensor", lower_bitwise<"Or", "BitwiseOr">, "Or, BitwiseOr", ""},
    {"aten.bitwise_right_shift.Scalar_Tensor", lower_right_shift, "BitShift, Mod, Div", ""},
    {"aten.bitwise_right_shift.Tensor", lower_right_shift, "BitShift, Mod, Div", ""},
    {"aten.bitwise_right_shift.Tensor_Scalar", lower_right_shift, "BitShift, Mod, Div", ""},
    {"aten.bitwise_xor.Scalar", lower_bitwise<"Xor", "BitwiseXor">, "Xor, BitwiseXor", ""},
    {"aten.bitwise_xor.Scalar_Tensor", lower_bitwise<"Xor", "BitwiseXor">, "Xor, BitwiseXor", ""},
    {"aten.bitwise_xor.Tensor", lower_bitwise<"Xor", "BitwiseXor">, "Xor, BitwiseXor", ""},
    {"aten.eq.Scalar", lower_compare<"Equal", false>, "Equal", ""},
    {"aten.eq.Tensor", lower_compare<"Equal", false>, "Equal", ""},
    {"aten.ge.Scalar", lower_compare<"GreaterOrEqual", false>, "GreaterOrEqual", ""},
    {"aten.ge.Tensor", lower_compare<"GreaterOrEqual", false>, "GreaterOrEqual", ""},
    {"aten.gt.Scalar", lower_compare<"Greater", false>, "Greater", ""},
    {"aten.gt.Tensor", lower_compare<"Greater", false>, "Greater", ""},
    {"aten.isclose.default", lower_isclose, "Sub, Abs, LessOrEqual", ""},
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
    {"aten.where.Scalar", lower_where, "Where", ""},
    {"aten.where.ScalarOther", lower_where, "Where", ""},
    {"aten.where.ScalarSelf", lower_where, "Where", ""},
    {"aten.where.self", lower_where, "Where", ""},
};

}  // namespace

std::span<const OpRow> compare_ops() { return kRows; }

}  // namespace fairlead::onnx
