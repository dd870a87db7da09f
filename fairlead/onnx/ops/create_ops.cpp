// Tensors made from nothing but sizes and numbers.
#include <cstring>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/index_forms.h"

namespace fairlead::onnx {
namespace {

Val fill(Lowering& b, Val value) { return b.expand(value, {}, b.out_shape()); }

template <int kValue>
void lower_constant(Lowering& b) {
  b.result(fill(b, b.scalar(static_cast<double>(kValue), b.out_dtype())));
}

// aten::full(SymInt[] size, Scalar fill_value, ...) -> Tensor; new_full and full_like alike
template <std::size_t kValue>
void lower_full(Lowering& b) {
  b.result(fill(b, b.in(kValue, b.out_dtype())));
}

// aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, ...) -> Tensor
template <int kStart, int kEnd, int kStep>
void lower_arange(Lowering& b) {
  // Integer bounds count exactly; other bounds count in float64 as PyTorch does.
  const Dtype d = b.out_dtype();
  bool integral = true;
  for (const int k : {kStart, kEnd, kStep}) {
    if (k >= 0 && b.has(static_cast<std::size_t>(k))) {
      integral = integral && b.node().args[static_cast<std::size_t>(k)].kind != ArgKind::kFloat;
    }
  }
  const Dtype work = integral ? Dtype::kInt64 : is_float(d) ? Dtype::kFloat64 : d;
  const auto bound = [&](int k, double otherwise) {
    return k >= 0 && b.has(static_cast<std::size_t>(k)) ? b.in(static_cast<std::size_t>(k), work)
                                                        : b.scalar(otherwise, work);
  };
  const auto whole = [&](int k, std::int64_t otherwise) -> Expr {
    if (k < 0 || !b.has(static_cast<std::size_t>(k))) return b.expr(otherwise);
    const ArgKind kind = b.node().args[static_cast<std::size_t>(k)].kind;
    return kind == ArgKind::kInt ? b.integer(static_cast<std::size_t>(k)) : nullptr;
  };
  const Expr start = whole(kStart, 0), step = whole(kStep, 1);
  // Where places of a Range become ends of a Slice, one that may go below 0 is counted from 0.
  const bool upward = start != nullptr && step != nullptr && is_const(step) && step->value > 0 &&
                      b.pool().never_below_zero(start);
  if (integral && start != nullptr && step != nullptr && !upward &&
      b.avoids(Fault::kRangeAsSlice)) {
    const Val counted = range(b, b.expr(0), b.out_shape()[0], b.expr(1));
    const Val scaled = b.op("Mul", {counted, b.size_scalar(step)});
    b.result(b.op("Add", {scaled, b.size_scalar(start)}));
    return;
  }
  b.result(b.op("Range", {bound(kStart, 0), bound(kEnd, 0), bound(kStep, 1)}, {}, work));
}

// aten::linspace(Scalar start, Scalar end, int steps, ...) -> Tensor; bounds may be 0-d tensors
//
// As PyTorch: counted from the start in the first half and from the end in the second.
Num linspace(Lowering& b) {
  const Dtype d = Dtype::kFloat64;
  const Num start = {&b, b.in(0, d)}, end = {&b, b.in(1, d)};
  const Expr steps = b.integer(2);
  const Val range =
      b.op("Range", {b.size_scalar(b.expr(0)), b.size_scalar(steps), b.size_scalar(b.expr(1))});
  const Num i = {&b, b.cast(range, d)};
  const Expr gaps = b.pool().max(b.pool().sub(steps, b.expr(1)), b.expr(1));
  const Num last = {&b, b.size_scalar(gaps, d)};
  const Num step = (end - start) / last;
  return where(i < last * 0.5, start + step * i, end - step * (last - i));
}

void lower_linspace(Lowering& b) { b.result(linspace(b)); }

// aten::fft_fftfreq(int n, float d=1.0, ...) -> Tensor; fft_rfftfreq has no negative half
template <bool kHalf>
void lower_fftfreq(Lowering& b) {
  const Dtype d = Dtype::kFloat64;
  const Num k = {&b, b.cast(range(b, b.out_shape()[0]), d)};
  const Num n = {&b, b.size_scalar(b.integer(0), d)};
  const Num turns = kHalf ? k : where(k * 2.0 < n, k, k - n);
  b.result(turns / (n * b.number(1, 1)));
}

// aten::logspace(Scalar start, Scalar end, int steps, float base=10., ...) -> Tensor
void lower_logspace(Lowering& b) {
  const Num x = linspace(b);
  b.result(node("Pow", x.is(b.number(3, 10)), x));
}

// aten::eye(SymInt n, ...) -> Tensor; eye.m(SymInt n, SymInt m, ...)
void lower_eye(Lowering& b) {
  const Val plain = b.expand(b.scalar(0, Dtype::kFloat32), {}, b.out_shape());
  b.result(b.op("EyeLike", {plain}));
}

// aten::scalar_tensor(Scalar s, ...) -> Tensor
void lower_scalar_tensor(Lowering& b) { b.result(b.in(0, b.out_dtype())); }

// fairlead::tensor(Scalar[] elements, int[] size, dtype): a tensor that Python made from sizes
void lower_tensor(Lowering& b) {
  const Arg& elements = b.node().args[0];
  const Dtype d = b.out_dtype();
  Inputs parts;
  for (const Arg& element : elements.items) {
    if (element.kind == ArgKind::kInt) {
      parts.push_back(b.cast(b.dim(element.expr), d));
      continue;
    }
    Val v = b.scalar(element.number, Dtype::kFloat64);
    if (element.expr != nullptr) {
      Val base = b.size_scalar(element.expr, Dtype::kFloat64);
      if (element.power != 1) base = b.op("Pow", {base, b.scalar(element.power, Dtype::kFloat64)});
      v = b.op("Mul", {base, v});
    }
    parts.push_back(b.cast(b.unsqueeze(v, {0}), d));
  }
  const Val flat = b.concat(parts, 0);
  if (b.out_rank() == 1) return b.result(flat);
  b.result(b.op("Reshape", {flat, b.shape_tensor(b.out_shape())}));
}

constexpr OpRow kRows[] = {
    {"aten.arange.default", lower_arange<-1, 0, -1>, "Range", ""},
    {"aten.arange.start", lower_arange<0, 1, -1>, "Range", ""},
    {"aten.arange.start_step", lower_arange<0, 1, 2>, "Range", ""},
    {"aten.empty.memory_format", lower_constant<0>, "Expand", "uninitialised memory becomes zeros"},
    {"aten.empty_like.default", lower_constant<0>, "Expand", "uninitialised memory becomes zeros"},
    {"aten.empty_permuted.default", lower_constant<0>, "Expand",
     "uninitialised memory becomes zeros"},
    {"aten.empty_strided.default", lower_constant<0>, "Expand",
     "uninitialised memory becomes zeros"},
    {"aten.eye.default", lower_eye, "Expand, EyeLike", ""},
    {"aten.eye.m", lower_eye, "Expand, EyeLike", ""},
    {"aten.fft_fftfreq.default", lower_fftfreq<false>, "Range, Where, Div in float64", ""},
    {"aten.fft_rfftfreq.default", lower_fftfreq<true>, "Range, Div in float64", ""},
    {"aten.fill.Scalar", lower_full<1>, "Expand", ""},
    {"aten.fill.Tensor", lower_full<1>, "Expand", ""},
    {"aten.full.default", lower_full<1>, "Expand", ""},
    {"aten.full_like.default", lower_full<1>, "Expand", ""},
    {"aten.linspace.Scalar_Tensor", lower_linspace, "Range, Mul, Add, Where in float64", ""},
    {"aten.linspace.Tensor_Scalar", lower_linspace, "Range, Mul, Add, Where in float64", ""},
    {"aten.linspace.Tensor_Tensor", lower_linspace, "Range, Mul, Add, Where in float64", ""},
    {"aten.linspace.default", lower_linspace, "Range, Mul, Add, Where in float64", ""},
    {"aten.logspace.Scalar_Tensor", lower_logspace, "Range, Mul, Add, Where, Pow in float64", ""},
    {"aten.logspace.Tensor_Scalar", lower_logspace, "Range, Mul, Add, Where, Pow in float64", ""},
    {"aten.logspace.Tensor_Tensor", lower_logspace, "Range, Mul, Add, Where, Pow in float64", ""},
    {"aten.logspace.default", lower_logspace, "Range, Mul, Add, Where, Pow in float64", ""},
    {"aten.new_empty.default", lower_constant<0>, "Expand", "uninitialised memory becomes zeros"},
    {"aten.new_empty_strided.default", lower_constant<0>, "Expand",
     "uninitialised memory becomes zeros"},
    {"aten.new_full.default", lower_full<2>, "Expand", ""},
    {"aten.new_ones.default", lower_constant<1>, "Expand", ""},
    {"aten.new_zeros.default", lower_constant<0>, "Expand", ""},
    {"aten.ones.default", lower_constant<1>, "Expand", ""},
    {"aten.ones_like.default", lower_constant<1>, "Expand", ""},
    {"aten.scalar_tensor.default", lower_scalar_tensor, "Constant", ""},
    {"aten.zero.default", lower_constant<0>, "Expand", ""},
    {"aten.zeros.default", lower_constant<0>, "Expand", ""},
    {"aten.zeros_like.default", lower_constant<0>, "Expand", ""},
    {"fairlead.tensor", lower_tensor, "Concat", ""},
};

}  // namespace

std::span<const OpRow> create_ops() { return kRows; }

}  // namespace fairlead::onnx
