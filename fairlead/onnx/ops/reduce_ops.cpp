// Reductions over dimensions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/nan_forms.h"
#include "fairlead/onnx/ops/op_name.h"
#include "fairlead/onnx/ops/step_forms.h"

namespace fairlead::onnx {
namespace {

using Axes = Ints;

Axes all_axes(int rank) {
  Axes axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Axes of argument i; none or an empty list means all.
Axes axes_or_all(Lowering& b, int i) {
  Axes axes;
  if (i >= 0 && b.has(static_cast<std::size_t>(i))) axes = b.axes(static_cast<std::size_t>(i));
  return axes.empty() ? all_axes(b.rank(0)) : axes;
}

// How many elements are reduced into one.
Expr count(Lowering& b, const Axes& axes) {
  Expr n = b.expr(1);
  if (b.rank(0) == 0) return n;
  for (const std::int64_t a : axes) n = b.pool().mul(n, b.shape(0)[static_cast<std::size_t>(a)]);
  return n;
}

Num reduced(Lowering& b, std::string_view op, Val v, const Axes& axes, bool keepdim) {
  return {&b, b.rank(0) == 0 ? v : b.reduce(op, v, axes, keepdim)};
}

// A few integers are combined one by one, for a runtime that rounds them to double. Absent where
// there are more, or along several axes.
Val one_by_one(Lowering& b, std::string_view op, Val x, const Axes& axes, bool keepdim) {
  const Expr n = count(b, axes);
  if (!b.avoids(Fault::kIntegersThroughDouble)) return {};
  if (b.rank(0) == 0 || axes.size() != 1 || !is_integer(b.dtype_of(x))) return {};
  if (!is_const(n) || n->value < 1 || n->value > 8) return {};
  Val y;
  for (std::int64_t k = 0; k < n->value; ++k) {
    const Val part = b.op("Gather", {x, b.size_scalar(b.expr(k))}, {attr("axis", axes[0])});
    y = k == 0 ? part : b.op(op, {y, part});
  }
  return keepdim ? b.unsqueeze(y, axes) : y;
}

// aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)
template <int kDim, std::size_t kKeep>
void lower_sum(Lowering& b) {
  const Axes axes = axes_or_all(b, kDim);
  const Val x = b.in(0, b.out_dtype());
  // What was narrower before cannot be large.
  const Val few =
      b.dtype(0) == Dtype::kInt64 ? one_by_one(b, "Add", x, axes, b.flag(kKeep)) : Val{};
  b.result(few.present() ? few : reduced(b, "ReduceSum", x, axes, b.flag(kKeep)).v);
}

// aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
Val found_extreme(Lowering& b, bool largest, const Axes& axes, bool keepdim) {
  const Val x = b.in(0);
  return b.rank(0) == 0 ? x : extreme(b, largest, x, axes, keepdim);
}

template <bool kLargest, int kDim, std::size_t kKeep>
void lower_extreme(Lowering& b) {
  b.result(found_extreme(b, kLargest, axes_or_all(b, kDim), b.flag(kKeep)));
}

// The mean of nothing is NaN, which the standard leaves open.
template <int kDim, std::size_t kKeep>
void lower_mean(Lowering& b) {
  const Axes axes = axes_or_all(b, kDim);
  const Dtype d = b.out_dtype();
  const Expr n = count(b, axes);
  if (is_const(n, 0)) return b.result(b.expand(b.scalar(kNan, d), {}, b.out_shape()));
  const Num mean = reduced(b, "ReduceMean", b.in(0, d), axes, b.flag(kKeep));
  if (!may_be_zero(b, n)) return b.result(mean);
  const Val nothing = b.op("Equal", {b.size_scalar(n), b.size_scalar(b.expr(0))});
  b.result(where({&b, nothing}, kNan, mean));
}

// aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
template <int kDim, std::size_t kKeep>
void lower_prod(Lowering& b) {
  const Axes axes = axes_or_all(b, kDim);
  const Val x = b.in(0, b.out_dtype());
  if (!is_integer(b.out_dtype()) || b.rank(0) == 0 || !b.avoids(Fault::kIntegersThroughDouble)) {
    return b.result(reduced(b, "ReduceProd", x, axes, b.flag(kKeep)));
  }
  const Val few = one_by_one(b, "Mul", x, axes, b.flag(kKeep));
  if (few.present()) return b.result(few);
  if (axes.size() == 1) {
    const Val whole = products(b, x, b.shape(0), axes[0]).whole;
    return b.result(b.flag(kKeep) ? b.unsqueeze(whole, axes) : whole);
  }
  const Shape flat = {count(b, axes)};
  b.result(products(b, b.reshape(x, b.shape(0), flat), flat, 0).whole);
}

// aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)
void lower_aminmax(Lowering& b) {
  const Axes axes = axes_or_all(b, 1);
  b.result(0, found_extreme(b, false, axes, b.flag(2)));
  b.result(1, found_extreme(b, true, axes, b.flag(2)));
}

// aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor: the largest of 0 and 1
template <OpName kOp, int kDim, std::size_t kKeep>
void lower_any(Lowering& b) {
  const Val x = b.cast(b.in(0, Dtype::kBool), Dtype::kUint8);
  b.result(b.cast(reduced(b, kOp.text, x, axes_or_all(b, kDim), b.flag(kKeep)), Dtype::kBool));
}

// Sum of squared differences from the mean over n - correction.
struct Variance {
  Num var, mean;
};

Variance variance(Lowering& b, const Axes& axes, Val correction, bool keepdim) {
  const Num x = arg(b);
  const Dtype d = x.dtype();
  if (b.rank(0) == 0) {
    const Num zero = x - x;
    const Num divisor = max(1.0 - Num{&b, b.cast(correction, d)}, 0);
    return {zero / divisor, x};
  }
  const Num mean = {&b, b.reduce("ReduceMean", x, axes, true)};
  const Num squares = {&b, b.reduce("ReduceSumSquare", x - mean, axes, keepdim)};
  const Expr n = count(b, axes);
  Val divisor;
  const TensorData* known = b.data_of(correction);
  if (is_const(n) && known != nullptr && known->dtype == Dtype::kFloat64) {
    const double c = *reinterpret_cast<const double*>(known->data);
    divisor = b.scalar(std::max(static_cast<double>(n->value) - c, 0.0), d);
  } else {
    divisor = b.cast(max(Num{&b, b.size_scalar(n, Dtype::kFloat64)} - Num{&b, correction}, 0), d);
  }
  Val flat = mean;
  if (!keepdim) flat = b.squeeze(mean, axes);
  return {squares / Num{&b, divisor}, {&b, flat}};
}

enum class Spread { kVar, kStd, kVarMean, kStdMean };

// aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool
// keepdim=False); the older overloads say `unbiased` where this one says correction
template <Spread kWhat, int kDim, std::size_t kCorrection, std::size_t kKeep>
void lower_var(Lowering& b) {
  const Val correction =
      b.has(kCorrection) ? b.in(kCorrection, Dtype::kFloat64) : b.scalar(1, Dtype::kFloat64);
  const Variance v = variance(b, axes_or_all(b, kDim), correction, b.flag(kKeep));
  constexpr bool root = kWhat == Spread::kStd || kWhat == Spread::kStdMean;
  b.result(0, root ? node("Sqrt", v.var) : v.var);
  if (kWhat == Spread::kVarMean || kWhat == Spread::kStdMean) b.result(1, v.mean);
}

// aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor
void lower_logsumexp(Lowering& b) {
  b.result(reduced(b, "ReduceLogSumExp", arg(b), axes_or_all(b, 1), b.flag(2)));
}

// aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor
template <int kDim>
void lower_count_nonzero(Lowering& b) {
  const Val ones = b.cast(b.in(0, Dtype::kBool), Dtype::kInt64);
  b.result(reduced(b, "ReduceSum", ones, axes_or_all(b, kDim), false));
}

// aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) ->
// Tensor
void lower_nansum(Lowering& b) {
  Num x = arg(b);
  if (is_float(b.dtype(0))) x = where(node("IsNaN", x), 0, x);
  b.result(reduced(b, "ReduceSum", x, axes_or_all(b, 1), b.flag(2)));
}

void lower_nanmean(Lowering& b) {
  const Num x = arg(b);
  const Num nan = node("IsNaN", x);
  const Axes axes = axes_or_all(b, 1);
  const Num n = reduced(b, "ReduceSum", cast(!nan, x.dtype()), axes, b.flag(2));
  b.result(reduced(b, "ReduceSum", where(nan, 0, x), axes, b.flag(2)) / n);
}

constexpr std::size_t kNone = 99;
constexpr std::string_view kSums =
    "int64 beyond 2^53 is rounded by ONNX Runtime where more than 8 are combined";
using enum Spread;

constexpr OpRow kRows[] = {
    {"aten._is_all_true.default", lower_any<"ReduceMin", -1, kNone>, "ReduceMin", ""},
    {"aten._is_any_true.default", lower_any<"ReduceMax", -1, kNone>, "ReduceMax", ""},
    {"aten.all.default", lower_any<"ReduceMin", -1, kNone>, "ReduceMin", ""},
    {"aten.all.dim", lower_any<"ReduceMin", 1, 2>, "ReduceMin", ""},
    {"aten.all.dims", lower_any<"ReduceMin", 1, 2>, "ReduceMin", ""},
    {"aten.amax.default", lower_extreme<true, 1, 2>, "ReduceMax", ""},
    {"aten.amin.default", lower_extreme<false, 1, 2>, "ReduceMin", ""},
    {"aten.aminmax.default", lower_aminmax, "ReduceMin, ReduceMax", ""},
    {"aten.any.default", lower_any<"ReduceMax", -1, kNone>, "ReduceMax", ""},
    {"aten.any.dim", lower_any<"ReduceMax", 1, 2>, "ReduceMax", ""},
    {"aten.any.dims", lower_any<"ReduceMax", 1, 2>, "ReduceMax", ""},
    {"aten.count_nonzero.default", lower_count_nonzero<1>, "Cast, ReduceSum", ""},
    {"aten.count_nonzero.dim_IntList", lower_count_nonzero<1>, "Cast, ReduceSum", ""},
    {"aten.logsumexp.default", lower_logsumexp, "ReduceLogSumExp", ""},
    {"aten.max.default", lower_extreme<true, -1, kNone>, "ReduceMax", ""},
    {"aten.mean.default", lower_mean<-1, kNone>, "ReduceMean", ""},
    {"aten.mean.dim", lower_mean<1, 2>, "ReduceMean", ""},
    {"aten.min.default", lower_extreme<false, -1, kNone>, "ReduceMin", ""},
    {"aten.nanmean.default", lower_nanmean, "IsNaN, Where, ReduceSum, Div", ""},
    {"aten.nansum.default", lower_nansum, "IsNaN, Where, ReduceSum", ""},
    {"aten.prod.default", lower_prod<-1, kNone>, "ReduceProd; Scan of integers", kSums},
    {"aten.prod.dim_int", lower_prod<1, 2>, "ReduceProd; Mul or Scan of integers", kSums},
    {"aten.std.correction", lower_var<kStd, 1, 2, 3>, "ReduceMean, ReduceSumSquare, Sqrt", ""},
    {"aten.std.default", lower_var<kStd, -1, 1, kNone>, "ReduceMean, ReduceSumSquare, Sqrt", ""},
    {"aten.std.dim", lower_var<kStd, 1, 2, 3>, "ReduceMean, ReduceSumSquare, Sqrt", ""},
    {"aten.std_mean.correction", lower_var<kStdMean, 1, 2, 3>, "ReduceMean, ReduceSumSquare, Sqrt",
     ""},
    {"aten.std_mean.default", lower_var<kStdMean, -1, 1, kNone>,
     "ReduceMean, ReduceSumSquare, Sqrt", ""},
    {"aten.std_mean.dim", lower_var<kStdMean, 1, 2, 3>, "ReduceMean, ReduceSumSquare, Sqrt", ""},
    {"aten.sum.default", lower_sum<-1, kNone>, "ReduceSum", kSums},
    {"aten.sum.dim_IntList", lower_sum<1, 2>, "ReduceSum", kSums},
    {"aten.var.correction", lower_var<kVar, 1, 2, 3>, "ReduceMean, ReduceSumSquare", ""},
    {"aten.var.default", lower_var<kVar, -1, 1, kNone>, "ReduceMean, ReduceSumSquare", ""},
    {"aten.var.dim", lower_var<kVar, 1, 2, 3>, "ReduceMean, ReduceSumSquare", ""},
    {"aten.var_mean.correction", lower_var<kVarMean, 1, 2, 3>, "ReduceMean, ReduceSumSquare", ""},
    {"aten.var_mean.default", lower_var<kVarMean, -1, 1, kNone>, "ReduceMean, ReduceSumSquare", ""},
    {"aten.var_mean.dim", lower_var<kVarMean, 1, 2, 3>, "ReduceMean, ReduceSumSquare", ""},
};

}  // namespace

std::span<const OpRow> reduce_ops() { return kRows; }

}  // namespace fairlead::onnx
