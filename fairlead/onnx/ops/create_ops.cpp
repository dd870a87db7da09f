// Tensors made from nothing but sizes and numbers.
#include <cstring>

#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

Val fill(Lowering& b, Val value) {
  return b.expand(value, {}, b.out_shape());
}

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
  b.result(b.op("Range", {bound(kStart, 0), bound(kEnd, 0), bound(kStep, 1)}, {}, work));
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
    {"aten.full.default", lower_full<1>, "Expand", ""},
    {"aten.full_like.default", lower_full<1>, "Expand", ""},
    {"aten.new_empty.default", lower_constant<0>, "Expand", "uninitialised memory becomes zeros"},
    {"aten.new_full.default", lower_full<2>, "Expand", ""},
    {"aten.new_ones.default", lower_constant<1>, "Expand", ""},
    {"aten.new_zeros.default", lower_constant<0>, "Expand", ""},
    {"aten.ones.default", lower_constant<1>, "Expand", ""},
    {"aten.ones_like.default", lower_constant<1>, "Expand", ""},
    {"aten.scalar_tensor.default", lower_scalar_tensor, "Constant", ""},
    {"aten.zeros.default", lower_constant<0>, "Expand", ""},
    {"aten.zeros_like.default", lower_constant<0>, "Expand", ""},
    {"fairlead.tensor", lower_tensor, "Concat", ""},
};

}  // namespace

std::span<const OpRow> create_ops() { return kRows; }

}  // namespace fairlead::onnx
