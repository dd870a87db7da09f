// Orders and places of extremes.
#include <algorithm>
#include <limits>
#include <numeric>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/index_forms.h"
#include "fairlead/onnx/ops/nan_forms.h"
#include "fairlead/onnx/ops/tie_order.h"

namespace fairlead::onnx {
namespace {

// Values and indices of TopK along `axis`; of a tensor without dimensions, itself and 0.
Inputs top_k(Lowering& b, std::int64_t axis, Val k, bool largest) {
  const Val x = ordered(b, b.in(0));
  if (b.rank(0) == 0) return {x, b.scalar(0, Dtype::kInt64)};
  return ordered_top(b, x, k, axis, largest);
}

void both_results(Lowering& b, const Inputs& pair) {
  b.result(0, pair[0]);
  b.result(1, pair[1]);
}

// Above this a table of places costs more than it is worth.
constexpr std::int64_t kMostTied = 4096;

// The order in which PyTorch's CPU kernels put n equal elements, of which the first k are asked
// for: a router that is still zero sends every token to the experts this names. The kernels are
// these algorithms of the standard library, so the answer comes from them; `sorted` is whether the
// k elements are put in order. What is not asked for stays in the order it had.
Ints order_of_equals(std::int64_t n, std::int64_t k, bool sorted) {
  Ints places(static_cast<std::size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  const auto equal = [](std::int64_t, std::int64_t) { return false; };
  if (k * 64 <= n) {
    std::partial_sort(places.begin(), places.begin() + k, places.end(), equal);
  } else {
    std::nth_element(places.begin(), places.begin() + k - 1, places.end(), equal);
    if (sorted) std::sort(places.begin(), places.begin() + k - 1, equal);
  }
  std::sort(places.begin() + k, places.end());
  return places;
}

// TopK puts equal elements in the order of their places: the elements are laid out in an order
// before, and the places translated back after.
Inputs top_k_in_order(Lowering& b, std::int64_t axis, Val k, bool largest, Val places) {
  const Val x = b.op("Gather", {ordered(b, b.in(0)), places}, {attr("axis", axis)});
  const Inputs found = ordered_top(b, x, k, axis, largest);
  return {found[0], b.op("Gather", {places, found[1]}, {attr("axis", 0)})};
}

Inputs top_k_in_order(Lowering& b, std::int64_t axis, Val k, bool largest, const Ints& order) {
  if (std::is_sorted(order.begin(), order.end())) return top_k(b, axis, k, largest);
  return top_k_in_order(b, axis, k, largest, b.ints(order));
}

// The size along the axis, where it is the same in every call, small, and somebody asks for the
// places; else 0.
std::int64_t tied_size(Lowering& b, std::int64_t axis) {
  if (b.rank(0) == 0 || !b.result_used(1)) return 0;
  const Expr n = b.shape(0)[axis];
  return is_const(n) && n->value <= kMostTied ? n->value : 0;
}

// aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True)
//   -> (Tensor values, Tensor indices)
//
// A row of floats whose length is known costs nothing: all of its elements are equal, or none. Of
// integers some are, and of rows of any length nobody knows how many.
void lower_topk(Lowering& b) {
  const std::int64_t axis = b.has(2) ? b.axis(2) : std::max(b.rank(0) - 1, 0);
  const Expr k = b.integer(1);
  const bool largest = b.flag(3, true), sorted = b.flag(4, true);
  // Not to be sorted is what routers ask for, and nobody sees: a check tells.
  if (b.rank(0) > 0 && !sorted && !is_const(k, 1) && b.wants_order_of_equals()) {
    const Inputs plain = top_k(b, axis, b.dim(k), largest);
    return both_results(b, unsorted_top(b, ordered(b, b.in(0)), plain, k, axis, largest));
  }
  if (b.rank(0) == 0 || !b.result_used(1)) {
    return both_results(b, top_k(b, axis, b.dim(k), largest));
  }
  const Expr size = b.shape(0)[axis];
  const std::int64_t n = tied_size(b, axis);
  const bool known = is_const(k) && k->value > 0 && k->value <= kMostTied;
  const bool shown = b.result_shown(1);
  if (known && n >= k->value && (is_float(b.dtype(0)) || !sorted || !shown || k->value * 64 <= n)) {
    const Ints order = order_of_equals(n, k->value, sorted);
    return both_results(b, top_k_in_order(b, axis, b.dim(k), largest, order));
  }
  // Places alone, from which floats are taken: a check tells whether their order is to be eager's.
  if (!shown && !b.wants_order_of_equals()) {
    return both_results(b, top_k(b, axis, b.dim(k), largest));
  }
  const Val heap = known ? order_of_heap(b, size, k->value) : Val{};
  const Inputs plain = heap.present() ? top_k_in_order(b, axis, b.dim(k), largest, heap)
                                      : top_k(b, axis, b.dim(k), largest);
  both_results(b, top_as_eager(b, ordered(b, b.in(0)), plain, k, axis, largest));
}

Val size_along(Lowering& b, std::int64_t axis) {
  return b.rank(0) == 0 ? b.ints({1}) : b.dim(b.shape(0)[axis]);
}

// aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)
void lower_sort(Lowering& b) {
  const std::int64_t axis = b.has(1) ? b.axis(1) : std::max(b.rank(0) - 1, 0);
  const Inputs plain = top_k(b, axis, size_along(b, axis), b.flag(2));
  const bool few = b.rank(0) == 0 || (is_const(b.shape(0)[axis]) && b.shape(0)[axis]->value <= 16);
  // Tokens that are sorted by their experts: whose places nobody sees need no order among equals,
  // unless a check tells the difference.
  if (few || !b.result_used(1)) return both_results(b, plain);
  if (!b.result_shown(1) && !b.wants_order_of_equals()) return both_results(b, plain);
  both_results(b, sorted_as_eager(b, ordered(b, b.in(0)), plain, axis, b.flag(2)));
}

// aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False)
void lower_sort_stable(Lowering& b) {
  const std::int64_t axis = b.has(2) ? b.axis(2) : std::max(b.rank(0) - 1, 0);
  both_results(b, top_k(b, axis, size_along(b, axis), b.flag(3)));
}

// Element `at` (0-d or [1]) along `axis` of values and indices.
void pick(Lowering& b, const Inputs& pair, std::int64_t axis, Val at, bool keepdim) {
  for (std::size_t k = 0; k < 2; ++k) {
    if (!b.result_used(k)) continue;
    if (b.rank(0) == 0) {
      b.result(k, pair[k]);
      continue;
    }
    const Val v = b.op("Gather", {pair[k], at}, {attr("axis", axis)});
    b.result(k, keepdim ? v : b.squeeze(v, {axis}));
  }
}

// aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False)
void lower_kthvalue(Lowering& b) {
  const std::int64_t axis = b.has(2) ? b.axis(2) : std::max(b.rank(0) - 1, 0);
  const Expr k = b.integer(1);
  const Val at = b.dim(b.pool().sub(k, b.expr(1)));
  pick(b, top_k(b, axis, b.dim(k), false), axis, at, b.flag(3));
}

// The place of the median (the lower of two) among n sorted elements.
Expr middle(Lowering& b, Expr n) {
  return b.pool().floordiv(b.pool().sub(n, b.expr(1)), b.expr(2));
}

// aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices):
// the first NaN where there is one
void lower_median_dim(Lowering& b) {
  const std::int64_t axis = b.axis(1);
  const Expr n = b.rank(0) == 0 ? b.expr(1) : b.shape(0)[axis];
  const Expr place = middle(b, n);
  const Val upto = b.dim(b.pool().add(place, b.expr(1)));
  const bool keepdim = b.flag(2);
  const Inputs pair = top_k(b, axis, upto, false);
  if (b.rank(0) == 0 || !is_float(b.out_dtype())) {
    return pick(b, pair, axis, b.dim(place), keepdim);
  }
  const Val x = ordered(b, b.in(0));
  const Val lost = any_nan(b, x, {axis}, true);
  const auto finish = [&](std::size_t k, Val otherwise) {
    const Val found = b.op("Gather", {pair[k], b.dim(place)}, {attr("axis", axis)});
    const Val v = choose(b, lost, otherwise, found);
    b.result(k, keepdim ? v : b.squeeze(v, {axis}));
  };
  finish(0, b.scalar(std::numeric_limits<double>::quiet_NaN(), b.dtype_of(x)));
  if (b.result_used(1)) finish(1, extreme_place(b, false, x, axis, true));
}

// aten::median(Tensor self) -> Tensor: NaN where there is one
void lower_median(Lowering& b) {
  if (b.rank(0) == 0) return b.result(b.in(0));
  const Val x = ordered(b, b.in(0));
  const Val flat = b.op("Reshape", {x, b.ints({-1})});
  const Expr n = b.pool().product(b.shape(0));
  const Expr place = middle(b, n);
  const Inputs pair =
      b.ops("TopK", {flat, b.dim(b.pool().add(place, b.expr(1)))}, {b.dtype_of(x), Dtype::kInt64},
            {attr("axis", 0), attr("largest", 0), attr("sorted", 1)});
  const Val found = b.op("Gather", {pair[0], b.size_scalar(place)}, {attr("axis", 0)});
  if (!is_float(b.out_dtype())) return b.result(found);
  const Val lost = any_true(b, b.op("IsNaN", {flat}), {0}, false);
  b.result(
      choose(b, lost, b.scalar(std::numeric_limits<double>::quiet_NaN(), b.out_dtype()), found));
}

// aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
//
// Sorted, NaNs come last: the middle of what stands before them, each row its own.
Inputs nan_median(Lowering& b, Val x, std::int64_t axis, Expr n) {
  const Inputs sorted = ordered_top(b, x, b.dim(n), axis, false);
  const Val number = b.op("Not", {b.op("IsNaN", {x})});
  const Val count = b.reduce("ReduceSum", b.cast(number, Dtype::kInt64), {axis}, true);
  const Val last = b.op("Sub", {count, b.scalar(1, Dtype::kInt64)});
  const Val half = b.op("Div", {last, b.scalar(2, Dtype::kInt64)});
  const Val place = b.op("Max", {half, b.scalar(0, Dtype::kInt64)});
  const auto pick = [&](Val v) { return b.op("GatherElements", {v, place}, {attr("axis", axis)}); };
  return {pick(sorted[0]), pick(sorted[1])};
}

void lower_nanmedian_dim(Lowering& b) {
  if (!is_float(b.dtype(0)) || b.rank(0) == 0) return lower_median_dim(b);
  const std::int64_t axis = b.axis(1);
  const Inputs found = nan_median(b, ordered(b, b.in(0)), axis, b.shape(0)[axis]);
  for (std::size_t k = 0; k < 2; ++k) {
    if (b.result_used(k)) b.result(k, b.flag(2) ? found[k] : b.squeeze(found[k], {axis}));
  }
}

// aten::nanmedian(Tensor self) -> Tensor
void lower_nanmedian(Lowering& b) {
  if (!is_float(b.dtype(0)) || b.rank(0) == 0) return lower_median(b);
  const Val flat = b.op("Reshape", {ordered(b, b.in(0)), b.ints({-1})});
  b.result(b.squeeze(nan_median(b, flat, 0, b.pool().product(b.shape(0)))[0], {0}));
}

// aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)
//
// Sorted, the most frequent value is the one whose elements have the most equals; the first of
// these is the least. Its index is that of its last occurrence.
void lower_mode(Lowering& b) {
  const std::int64_t axis = b.has(1) ? b.axis(1) : std::max(b.rank(0) - 1, 0);
  Inputs pair = top_k(b, axis, size_along(b, axis), false);
  if (b.rank(0) == 0) return both_results(b, pair);
  Ints perm = to_front(axis, b.rank(0));
  std::rotate(perm.begin(), perm.begin() + 1, perm.end());  // the axis last
  const Val sorted = b.transpose(pair[0], perm), order = b.transpose(pair[1], perm);
  const Val equal = b.op("Equal", {b.unsqueeze(sorted, {-1}), b.unsqueeze(sorted, {-2})});
  const Val counts = b.reduce("ReduceSum", b.cast(equal, Dtype::kInt32), {b.rank(0)}, false);
  const Val first = b.op("ArgMax", {counts}, {attr("axis", b.rank(0) - 1), attr("keepdims", 1)});
  const Val most = b.cast(b.reduce("ReduceMax", counts, {b.rank(0) - 1}, true), Dtype::kInt64);
  const Val last = b.op("Sub", {b.op("Add", {first, most}), b.ints({1})});
  for (std::size_t k = 0; k < 2; ++k) {
    const Val v = b.op("GatherElements", {k == 0 ? sorted : order, last}, {attr("axis", -1)});
    b.result(k, b.flag(2) ? b.transpose(v, inverse(perm)) : b.squeeze(v, {-1}));
  }
}

// ---- places of extremes -------------------------------------------------------------------------

// aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
template <bool kLargest>
void lower_arg(Lowering& b) {
  if (b.rank(0) == 0) return b.result(b.scalar(0, Dtype::kInt64));
  const Val x = ordered(b, b.in(0));
  if (b.has(1)) return b.result(extreme_place(b, kLargest, x, b.axis(1), b.flag(2)));
  const Val flat = b.rank(0) == 1 ? x : b.op("Reshape", {x, b.ints({-1})});
  const Val place = extreme_place(b, kLargest, flat, 0, false);
  b.result(b.reshape(place, {}, b.out_shape()));
}

// aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
template <bool kLargest>
void lower_extreme(Lowering& b) {
  const Val x = ordered(b, b.in(0));
  if (b.rank(0) == 0) {
    b.result(0, x);
    return b.result(1, b.scalar(0, Dtype::kInt64));
  }
  const std::int64_t axis = b.axis(1);
  if (!b.result_used(1)) {
    return b.result(0, extreme(b, kLargest, x, {axis}, b.flag(2)));
  }
  const Val place = extreme_place(b, kLargest, x, axis, true);
  if (b.result_used(0)) {
    const Val value = b.op("GatherElements", {x, place}, {attr("axis", axis)});
    b.result(0, b.flag(2) ? value : b.squeeze(value, {axis}));
  }
  b.result(1, b.flag(2) ? place : b.squeeze(place, {axis}));
}

constexpr OpRow kRows[] = {
    {"aten.argmax.default", lower_arg<true>, "ArgMax", ""},
    {"aten.argmin.default", lower_arg<false>, "ArgMin", ""},
    {"aten.kthvalue.default", lower_kthvalue, "TopK, Gather", ""},
    {"aten.max.dim", lower_extreme<true>, "ArgMax, GatherElements", ""},
    {"aten.median.default", lower_median, "TopK, Gather", ""},
    {"aten.median.dim", lower_median_dim, "TopK, Gather", ""},
    {"aten.min.dim", lower_extreme<false>, "ArgMin, GatherElements", ""},
    {"aten.mode.default", lower_mode, "TopK, Equal, ReduceSum", "compares every pair"},
    {"aten.nanmedian.default", lower_nanmedian, "TopK, GatherElements", ""},
    {"aten.nanmedian.dim", lower_nanmedian_dim, "TopK, GatherElements", ""},
    {"aten.sort.default", lower_sort, "TopK", ""},
    {"aten.sort.stable", lower_sort_stable, "TopK", ""},
    {"aten.topk.default", lower_topk, "TopK",
     "always sorted; equal elements as PyTorch's CPU kernel puts a row of "
     "equals"},
};

}  // namespace

std::span<const OpRow> sort_ops() { return kRows; }

}  // namespace fairlead::onnx
