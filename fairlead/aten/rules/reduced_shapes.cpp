// Reductions: the dimensions that they are told, or all, are left out or kept as 1.
#include <algorithm>

#include "fairlead/aten/rules/shape_call.h"

namespace fairlead {
namespace {

// keep: the place of keepdim; kNever where the operator has none.
constexpr std::size_t kNever = 99;

template <std::size_t dims, std::size_t keep, std::size_t results = 1>
ResultShapes reduced(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  const auto axes = call.axes(dims, call.rank(0));
  if (!axes) return {};
  std::vector<Expr> shape;
  for (std::size_t axis = 0; axis < call.rank(0); ++axis) {
    if (std::find(axes->begin(), axes->end(), axis) == axes->end()) {
      shape.push_back(call.shape(0)[axis]);
    } else if (keep != kNever && call.flag(keep)) {
      shape.push_back(call.pool.constant(1));
    }
  }
  return ResultShapes(results, shape);
}

ResultShapes number(const ShapeCall&) { return {{}}; }

ResultShapes two_numbers(const ShapeCall&) { return {{}, {}}; }

// topk(self, k, dim)
ResultShapes largest(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  const auto axis = call.axis(2, shape.size());
  if (!shape.empty()) {
    if (!axis) return {};
    shape[*axis] = call.integer(1);
  }
  return {shape, shape};
}

constexpr ShapeRow kRows[] = {
    {"aten._is_all_true.default", number},
    {"aten._is_any_true.default", number},
    {"aten.all.default", number},
    {"aten.all.dim", reduced<1, 2>},
    {"aten.all.dims", reduced<1, 2>},
    {"aten.amax.default", reduced<1, 2>},
    {"aten.amin.default", reduced<1, 2>},
    {"aten.aminmax.default", reduced<1, 2, 2>},
    {"aten.any.default", number},
    {"aten.any.dim", reduced<1, 2>},
    {"aten.any.dims", reduced<1, 2>},
    {"aten.argmax.default", reduced<1, 2>},
    {"aten.argmin.default", reduced<1, 2>},
    {"aten.count_nonzero.default", reduced<1, kNever>},
    {"aten.count_nonzero.dim_IntList", reduced<1, kNever>},
    {"aten.dist.default", number},
    {"aten.dot.default", number},
    {"aten.kthvalue.default", reduced<2, 3, 2>},
    {"aten.linalg_vector_norm.default", reduced<2, 3>},
    {"aten.logsumexp.default", reduced<1, 2>},
    {"aten.max.default", number},
    {"aten.max.dim", reduced<1, 2, 2>},
    {"aten.mean.default", number},
    {"aten.mean.dim", reduced<1, 2>},
    {"aten.median.default", number},
    {"aten.median.dim", reduced<1, 2, 2>},
    {"aten.min.default", number},
    {"aten.min.dim", reduced<1, 2, 2>},
    {"aten.mode.default", reduced<1, 2, 2>},
    {"aten.nanmean.default", reduced<1, 2>},
    {"aten.nanmedian.default", number},
    {"aten.nanmedian.dim", reduced<1, 2, 2>},
    {"aten.nansum.default", reduced<1, 2>},
    {"aten.norm.Scalar", number},
    {"aten.norm.ScalarOpt_dim", reduced<2, 3>},
    {"aten.norm.ScalarOpt_dim_dtype", reduced<2, 3>},
    {"aten.norm.ScalarOpt_dtype", number},
    {"aten.prod.default", number},
    {"aten.prod.dim_int", reduced<1, 2>},
    {"aten.std.correction", reduced<1, 3>},
    {"aten.std.default", number},
    {"aten.std.dim", reduced<1, 3>},
    {"aten.std_mean.correction", reduced<1, 3, 2>},
    {"aten.std_mean.default", two_numbers},
    {"aten.std_mean.dim", reduced<1, 3, 2>},
    {"aten.sum.default", number},
    {"aten.sum.dim_IntList", reduced<1, 2>},
    {"aten.topk.default", largest},
    {"aten.trace.default", number},
    {"aten.var.correction", reduced<1, 3>},
    {"aten.var.default", number},
    {"aten.var.dim", reduced<1, 3>},
    {"aten.var_mean.correction", reduced<1, 3, 2>},
    {"aten.var_mean.default", two_numbers},
    {"aten.var_mean.dim", reduced<1, 3, 2>},
    {"aten.vdot.default", number},
};

}  // namespace

std::span<const ShapeRow> reduced_shapes() { return kRows; }

}  // namespace fairlead
