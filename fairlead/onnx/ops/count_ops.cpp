// Running sums and extremes, counts, bins and distinct values.
#include <algorithm>
#include <limits>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/index_forms.h"
#include "fairlead/onnx/ops/nan_forms.h"
#include "fairlead/onnx/ops/step_forms.h"

namespace fairlead::onnx {
namespace {

// aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
void lower_cumsum(Lowering& b) {
  const Dtype d = b.out_dtype();
  if (b.rank(0) == 0) return b.result(b.in(0));
  // As PyTorch's kernel does, float32 is summed in double and half precision in float32: a phase
  // that is summed over a thousand steps has no digits to lose. Narrow integers in int64.
  const Dtype work = is_float(d)          ? (dtype_size(d) < 4 ? Dtype::kFloat32 : Dtype::kFloat64)
                     : d == Dtype::kInt32 ? d
                                          : Dtype::kInt64;
  const Val x = b.cast(b.in(0, d), work);
  b.result(b.op("CumSum", {x, b.size_scalar(b.expr(b.axis(1)))}));
}

// [..., n] -> [..., n, n] whose row i holds the first i + 1 elements and `rest` after them, with
// the axis moved last. Running extremes and products have no ONNX operator: they reduce these rows.
struct Running {
  Val rows;
  Ints perm;  // axis last
};

Running running(Lowering& b, Val x, std::int64_t axis, double rest) {
  Running r;
  for (std::int64_t k = 0; k < b.rank(0); ++k) {
    if (k != axis) r.perm.push_back(k);
  }
  r.perm.push_back(axis);
  const Val all = range(b, b.shape(0)[axis]);
  const Val seen = b.op("LessOrEqual", {all, b.unsqueeze(all, {1})});
  const Val wide = b.unsqueeze(b.transpose(x, r.perm), {-2});
  r.rows = b.op("Where", {seen, wide, b.scalar(rest, b.dtype_of(x))});
  return r;
}

// aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
void lower_cumprod(Lowering& b) {
  const Dtype d = b.out_dtype();
  if (b.rank(0) == 0) return b.result(b.in(0));
  const Dtype work = is_float(d) && dtype_size(d) < 4 ? Dtype::kFloat32 : d;
  b.result(products(b, b.cast(b.in(0, d), work), b.shape(0), b.axis(1)).running);
}

// aten::logcumsumexp(Tensor self, int dim) -> Tensor
void lower_logcumsumexp(Lowering& b) {
  if (b.rank(0) == 0) return b.result(b.in(0));
  const Dtype work = b.out_dtype() == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
  const Running r = running(b, b.in(0, work), b.axis(1), -std::numeric_limits<double>::infinity());
  b.result(b.transpose(b.reduce("ReduceLogSumExp", r.rows, {b.rank(0)}, false), inverse(r.perm)));
}

// aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices): of equals, the last
template <bool kLargest>
void lower_cumulative(Lowering& b) {
  const Val x = ordered(b, b.in(0));
  if (b.rank(0) == 0) {
    b.result(0, x);
    return b.result(1, b.scalar(0, Dtype::kInt64));
  }
  const Dtype d = b.dtype_of(x);
  const double infinity = std::numeric_limits<double>::infinity();
  const double rest =
      is_float(d) ? (kLargest ? -infinity : infinity) : (kLargest ? b.lowest(d) : b.highest(d));
  const std::int64_t axis = b.axis(1);
  const Running r = running(b, x, axis, rest);
  if (b.result_used(0)) {
    const Val values = extreme(b, kLargest, r.rows, {b.rank(0)}, false);
    b.result(0, b.transpose(values, inverse(r.perm)));
  }
  if (!b.result_used(1)) return;
  // The last place whose element equals the running extreme, or the last NaN, among those seen.
  const Val top = is_float(d)
                      ? b.reduce(kLargest ? "ReduceMax" : "ReduceMin", r.rows, {b.rank(0)}, true)
                      : extreme(b, kLargest, r.rows, {b.rank(0)}, true);
  const Val all = range(b, b.shape(0)[axis]);
  const Val seen = b.op("LessOrEqual", {all, b.unsqueeze(all, {1})});
  Val equal = b.op("Equal", {r.rows, top});
  if (const Val lost = any_nan(b, r.rows, {b.rank(0)}, true); lost.present()) {
    equal = choose(b, lost, b.op("IsNaN", {r.rows}), equal);
  }
  const Val hit = b.op("And", {seen, equal});
  const Val place = b.op("Where", {hit, all, b.scalar(0, Dtype::kInt64)});
  b.result(1, b.transpose(b.reduce("ReduceMax", place, {b.rank(0)}, false), inverse(r.perm)));
}

// ---- bins ---------------------------------------------------------------------------------------

// The axis behind those of the result. Not -1: ONNX Runtime reduces empty tensors along a negative
// axis to their own shape.
std::int64_t behind_result(Lowering& b) { return static_cast<std::int64_t>(b.out_shape().size()); }

// How many of `edges` [..., m] lie before each of `values` [..., 1]: NaN comes after all.
Val count_before(Lowering& b, Val edges, Val values, bool right) {
  const Val after = b.op(right ? "Greater" : "GreaterOrEqual", {edges, values});
  const Val before = b.cast(b.op("Not", {after}), Dtype::kInt64);
  return b.reduce("ReduceSum", before, {behind_result(b)}, false);
}

Dtype comparable(Lowering& b, std::initializer_list<std::size_t> arguments) {
  const Dtype d = b.promoted(arguments);
  return d == Dtype::kBool ? Dtype::kInt32 : d;
}

// aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False,
//   bool right=False, str? side=None, Tensor? sorter=None) -> Tensor
void lower_searchsorted(Lowering& b) {
  const Dtype d = comparable(b, {0, 1});
  Val edges = b.in(0, d);
  if (b.has(5)) {
    edges = b.op("GatherElements", {edges, b.in(5, Dtype::kInt64)}, {attr("axis", -1)});
  }
  const bool right = b.flag(3) || b.text(4) == "right";
  const Val values = b.in(1, d);
  if (!b.is_tensor(1) || b.rank(1) == 0) {
    return b.result(count_before(b, edges, values, right));
  }
  if (b.rank(0) > 1) edges = b.unsqueeze(edges, {-2});
  b.result(count_before(b, edges, b.unsqueeze(values, {-1}), right));
}

// aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False)
void lower_bucketize(Lowering& b) {
  const Dtype d = comparable(b, {0, 1});
  const Val values = b.in(0, d);
  const Val column = b.is_tensor(0) && b.rank(0) > 0 ? b.unsqueeze(values, {-1}) : values;
  b.result(count_before(b, b.in(1, d), column, b.flag(3)));
}

// Sums `weights` [n] by `bins` [n] into a tensor of the given length [1].
Val sum_by_bin(Lowering& b, Val bins, Val weights, Val length) {
  const Val empty = b.op("Expand", {b.scalar(0, b.dtype_of(weights)), length});
  return scatter_elements(b, empty, bins, weights, 0, "add");
}

// aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor
void lower_histc(Lowering& b) {
  const Dtype d = b.out_dtype();
  const Dtype work = d == Dtype::kFloat64 || is_integer(d) ? Dtype::kFloat64 : Dtype::kFloat32;
  const Expr bins = b.integer(1, 100);
  const Val x = b.op("Reshape", {b.in(0, work), b.ints({-1})});
  const bool given = b.node().args[2].kind == ArgKind::kInt && !is_const(b.integer(2));
  const bool symbolic =
      given || (b.node().args[3].kind == ArgKind::kInt && !is_const(b.integer(3)));
  Val low, high;
  if (symbolic || b.number(2) != b.number(3)) {
    low = b.in(2, work);
    high = b.in(3, work);
  } else if (b.number(2) == 0) {
    // The data's own range; one that is a point is widened by 1 on both sides.
    const Val least = b.reduce("ReduceMin", x, {0}, false);
    const Val most = b.reduce("ReduceMax", x, {0}, false);
    const Val widen = b.cast(b.op("Equal", {least, most}), work);
    low = b.op("Sub", {least, widen});
    high = b.op("Add", {most, widen});
  } else {
    low = b.scalar(b.number(2) - 1, work);
    high = b.scalar(b.number(3) + 1, work);
  }
  const Val scaled = b.op("Div", {b.op("Mul", {b.op("Sub", {x, low}), b.size_scalar(bins, work)}),
                                  b.op("Sub", {high, low})});
  const Val inside =
      b.op("And", {b.op("GreaterOrEqual", {x, low}), b.op("LessOrEqual", {x, high})});
  const Val safe = b.op("Where", {inside, scaled, b.scalar(0, work)});
  const Val last = b.size_scalar(b.pool().sub(bins, b.expr(1)));
  const Val place = b.op("Min", {b.cast(safe, Dtype::kInt64), last});
  b.result(sum_by_bin(b, place, b.cast(inside, work), b.dim(bins)));
}

// aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor
void lower_bincount(Lowering& b) {
  const Val x = b.in(0, Dtype::kInt64);
  const Val least = b.dim(b.pool().sub(b.integer(2, 0), b.expr(1)));
  const Val most = b.reduce("ReduceMax", b.concat({x, least}, 0), {0}, true);
  const Val weights = b.has(1) ? b.in(1, b.out_dtype())
                               : b.op("Expand", {b.scalar(1, Dtype::kInt64), b.op("Shape", {x})});
  b.result(sum_by_bin(b, x, weights, b.op("Add", {most, b.ints({1})})));
}

// aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False,
//   bool invert=False) -> Tensor
void lower_isin(Lowering& b) {
  const Dtype d = b.promoted({0, 1});
  Val elements = b.in(0, d), tests = b.in(1, d);
  Val found;
  if (!b.is_tensor(1) || b.rank(1) == 0) {
    found = b.op("Equal", {elements, tests});
  } else {
    tests = b.rank(1) == 1 ? tests : b.op("Reshape", {tests, b.ints({-1})});
    // Summed, not reduced by maximum: an empty list has none.
    const Val hit = b.op("Equal", {b.unsqueeze(elements, {-1}), tests});
    const Val hits = b.reduce("ReduceSum", b.cast(hit, Dtype::kInt32), {behind_result(b)}, false);
    found = b.op("Greater", {hits, b.scalar(0, Dtype::kInt32)});
  }
  b.result(b.flag(3) ? b.op("Not", {found}) : found);
}

// aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor
//
// Place j of the result counts how many of the running sums of `repeats` are at most j.
void lower_repeat_interleave(Lowering& b) {
  const Val repeats = b.in(0, Dtype::kInt64);
  const Val ends = b.op("CumSum", {repeats, b.size_scalar(b.expr(0))});
  const Val total = b.reduce("ReduceSum", repeats, {0}, true);
  const Val ones = b.op("Expand", {b.scalar(1, Dtype::kInt64), b.op("Shape", {repeats})});
  const Val marks = sum_by_bin(b, ends, ones, b.op("Add", {total, b.ints({1})}));
  const Val steps = b.op("CumSum", {marks, b.size_scalar(b.expr(0))});
  b.result(b.slice(steps, 0, b.ints({0}), total));
}

// ---- distinct values ----------------------------------------------------------------------------

// aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool
// return_counts=False)
//   -> (Tensor, Tensor, Tensor)
void unique(Lowering& b, Attributes attributes, bool flat) {
  const Dtype d = b.dtype(0);
  const Val x = is_float(d) && d != Dtype::kBfloat16 ? b.in(0) : b.in(0, Dtype::kInt64);
  attributes.push_back(attr("sorted", 1));
  const Inputs found =
      b.ops("Unique", {x}, {b.dtype_of(x), Dtype::kInt64, Dtype::kInt64, Dtype::kInt64},
            std::move(attributes));
  b.result(0, found[0]);
  const Shape& inverse = b.out_shape(1);
  b.result(1, flat && inverse.size() != 1 ? b.op("Reshape", {found[2], b.shape_tensor(inverse)})
                                          : found[2]);
  b.result(2, found[3]);
}

void lower_unique2(Lowering& b) { unique(b, {}, true); }

// aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, ...)
void lower_unique_dim(Lowering& b) { unique(b, {attr("axis", b.axis(1))}, false); }

// aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False,
//   int? dim=None) -> (Tensor, Tensor, Tensor)
void lower_unique_consecutive(Lowering& b) {
  const bool along = b.has(3) && b.rank(0) > 0;
  const std::int64_t axis = along ? b.axis(3) : 0;
  const Val x = along ? b.in(0) : b.op("Reshape", {b.in(0), b.ints({-1})});
  const Expr n = along ? b.shape(0)[axis] : b.pool().product(b.shape(0));
  const Val after = b.slice(x, axis, b.ints({1}), b.ints({INT64_MAX}));
  const Val before = b.slice(x, axis, b.ints({0}), b.ints({-1}));
  Val differs = b.op("Not", {b.op("Equal", {after, before})});
  if (along && b.rank(0) > 1) {
    Ints others = to_front(axis, b.rank(0));
    others.erase(others.begin());
    differs = any_true(b, differs, others, false);
  }
  const std::int64_t one[] = {1};
  const Val marks = b.concat({b.filled(1, Dtype::kBool, one), differs}, 0);
  const Val starts = b.slice(marks, 0, b.ints({0}), b.dim(n));
  b.result(0, b.op("Compress", {x, starts}, {attr("axis", axis)}));
  if (b.result_used(1)) {
    const Val groups = b.op("CumSum", {b.cast(starts, Dtype::kInt64), b.size_scalar(b.expr(0))});
    const Val inverse = b.op("Sub", {groups, b.scalar(1, Dtype::kInt64)});
    const Shape& shape = b.out_shape(1);
    b.result(1, shape.size() == 1 ? inverse : b.op("Reshape", {inverse, b.shape_tensor(shape)}));
  }
  if (b.result_used(2)) {
    const Val places = b.squeeze(b.op("NonZero", {starts}), {0});
    const Val next = b.slice(b.concat({places, b.dim(n)}, 0), 0, b.ints({1}), b.ints({INT64_MAX}));
    b.result(2, b.op("Sub", {next, places}));
  }
}

constexpr std::string_view kSquare = "memory grows with the square of the size";
constexpr std::string_view kProduct = "compares every pair";

constexpr OpRow kRows[] = {
    {"aten._unique2.default", lower_unique2, "Unique", "always sorted"},
    {"aten.bincount.default", lower_bincount, "ScatterElements", ""},
    {"aten.bucketize.Scalar", lower_bucketize, "GreaterOrEqual, ReduceSum", kProduct},
    {"aten.bucketize.Tensor", lower_bucketize, "GreaterOrEqual, ReduceSum", kProduct},
    {"aten.cummax.default", lower_cumulative<true>, "Where, ReduceMax", kSquare},
    {"aten.cummin.default", lower_cumulative<false>, "Where, ReduceMin", kSquare},
    {"aten.cumprod.default", lower_cumprod, "Scan", ""},
    {"aten.cumsum.default", lower_cumsum, "CumSum", ""},
    {"aten.histc.default", lower_histc, "ScatterElements", ""},
    {"aten.isin.Scalar_Tensor", lower_isin, "Equal, ReduceSum", kProduct},
    {"aten.isin.Tensor_Scalar", lower_isin, "Equal", ""},
    {"aten.isin.Tensor_Tensor", lower_isin, "Equal, ReduceSum", kProduct},
    {"aten.logcumsumexp.default", lower_logcumsumexp, "Where, ReduceLogSumExp", kSquare},
    {"aten.repeat_interleave.Tensor", lower_repeat_interleave, "CumSum, ScatterElements", ""},
    {"aten.searchsorted.Scalar", lower_searchsorted, "GreaterOrEqual, ReduceSum", kProduct},
    {"aten.searchsorted.Tensor", lower_searchsorted, "GreaterOrEqual, ReduceSum", kProduct},
    {"aten.unique_consecutive.default", lower_unique_consecutive, "Equal, Compress", ""},
    {"aten.unique_dim.default", lower_unique_dim, "Unique", "always sorted"},
};

}  // namespace

std::span<const OpRow> count_ops() { return kRows; }

}  // namespace fairlead::onnx
