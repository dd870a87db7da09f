// Reductions over dimensions.
#include <numeric>

#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

std::vector<std::int64_t> all_axes(int rank) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Axes of argument i; none or an empty list means all.
std::vector<std::int64_t> axes_or_all(Lowering& b, std::size_t i) {
  auto axes = b.has(i) ? b.axes(i) : std::vector<std::int64_t>{};
  return axes.empty() ? all_axes(b.rank(0)) : axes;
}

// aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
void lower_mean(Lowering& b) {
  const Val x = b.in(0, b.out_dtype());
  b.result(b.rank(0) == 0 ? x : b.reduce("ReduceMean", x, axes_or_all(b, 1), b.flag(2)));
}

// aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)
void lower_sum(Lowering& b) {
  const Val x = b.in(0, b.out_dtype());
  b.result(b.rank(0) == 0 ? x : b.reduce("ReduceSum", x, axes_or_all(b, 1), b.flag(2)));
}

constexpr OpRow kRows[] = {
    {"aten.mean.dim", lower_mean, "ReduceMean", ""},
    {"aten.sum.dim_IntList", lower_sum, "ReduceSum", ""},
};

}  // namespace

std::span<const OpRow> reduce_ops() { return kRows; }

}  // namespace fairlead::onnx
