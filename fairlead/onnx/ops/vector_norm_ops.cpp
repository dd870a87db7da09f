// Norms of vectors.
#include <cmath>
#include <numeric>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/kernels.h"
#include "fairlead/onnx/ops/nan_forms.h"

namespace fairlead::onnx {
namespace {

// sum(|x|^p)^(1/p) over the axes; the limits of p at 0 and at both infinities.
Val p_norm(Lowering& b, Val x, double p, const Ints& axes, bool keepdim) {
  const Dtype d = b.dtype_of(x);
  if (axes.empty()) {  // a tensor without dimensions
    return p == 0 ? b.cast(b.cast(x, Dtype::kBool), d) : b.op("Abs", {x});
  }
  if (p == 2) return b.reduce("ReduceL2", x, axes, keepdim);
  if (p == 1) return b.reduce("ReduceL1", x, axes, keepdim);
  if (p == 0) return b.reduce("ReduceSum", b.cast(b.cast(x, Dtype::kBool), d), axes, keepdim);
  const Val size = b.op("Abs", {x});
  if (std::isinf(p)) return extreme(b, p > 0, size, axes, keepdim);
  const Val sum = b.reduce("ReduceSum", b.op("Pow", {size, b.scalar(p, d)}), axes, keepdim);
  return b.op("Pow", {sum, b.scalar(1 / p, d)});
}

void vector_norm(Lowering& b, double p, int dim, int keepdim) {
  const Dtype d = work_dtype(b.out_dtype());
  Ints axes;
  if (dim >= 0 && b.has(static_cast<std::size_t>(dim)))
    axes = b.axes(static_cast<std::size_t>(dim));
  if (b.rank(0) == 0) axes.clear();
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(b.rank(0)));
    std::iota(axes.begin(), axes.end(), 0);
  }
  b.result(
      p_norm(b, b.in(0, d), p, axes, keepdim >= 0 && b.flag(static_cast<std::size_t>(keepdim))));
}

// aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *,
//   ScalarType? dtype=None) -> Tensor
void lower_vector_norm(Lowering& b) { vector_norm(b, b.number(1, 2), 2, 3); }

// aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor
void lower_norm_dim(Lowering& b) { vector_norm(b, b.number(1, 2), 2, 3); }

// aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor
void lower_norm(Lowering& b) { vector_norm(b, b.number(1, 2), -1, -1); }

constexpr OpRow kRows[] = {
    {"aten.linalg_vector_norm.default", lower_vector_norm, "ReduceL2, ReduceL1, ReduceMax",
     "no complex numbers"},
    {"aten.norm.Scalar", lower_norm, "ReduceL2, ReduceL1, ReduceMax", "no complex numbers"},
    {"aten.norm.ScalarOpt_dim", lower_norm_dim, "ReduceL2, ReduceL1, ReduceMax",
     "no complex numbers"},
    {"aten.norm.ScalarOpt_dim_dtype", lower_norm_dim, "ReduceL2, ReduceL1, ReduceMax",
     "no complex numbers"},
    {"aten.norm.ScalarOpt_dtype", lower_norm, "ReduceL2, ReduceL1, ReduceMax",
     "no complex numbers"},
};

}  // namespace

std::span<const OpRow> vector_norm_ops() { return kRows; }

}  // namespace fairlead::onnx
