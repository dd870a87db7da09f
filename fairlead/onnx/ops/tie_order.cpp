// std::sort and std::nth_element of the standard library in the file, for all rows at once.
//
// Both partition ranges until they are short, and insert what is left in order, which is stable.
// So the order of equal elements is that of the ranges once they are short, and one stable TopK
// does the rest:
//
// 1. A range [first, last): the median of first + 1, the middle and last - 1 changes places with
//    first, and is the pivot of (first, last).
// 2. From the left those that are not before the pivot, from the right those that it is not before:
//    the t-th of the one changes places with the t-th of the other while it stands left of it.
// 3. The range is cut at the first that is not before the pivot now: the t + 1-th from the left as
//    it was, or the t-th from the right, whichever comes first.
//
// std::sort goes on with both parts while they have more than 16 elements, std::nth_element with
// the one of its place while it has more than 3. Ranges do not overlap, so a step does all of them:
// every place has the ends of its own range. What stands in them is counted by sums along the rows.
// This runs where elements are equal: without, any order of the kernel is the same.
#include "fairlead/onnx/ops/tie_order.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/index_forms.h"
#include "fairlead/onnx/ops/nan_forms.h"

namespace fairlead::onnx {
namespace {

constexpr double kSortLeft = 16, kSelectLeft = 3, kMostSteps = 128, kPartialSort = 64;

// Rows of keys, ordered along their last axis.
struct Rows {
  Lowering* b;
  Num key;  // float NaN as infinity, as `ordered_top` has it
  int rank;
  Expr n;
  bool largest;

  [[nodiscard]] Num number(double v) const { return {b, b->scalar(v, Dtype::kInt64)}; }
  [[nodiscard]] Num size() const { return {b, b->size_scalar(n)}; }
  // Places of one row, spread over all rows.
  [[nodiscard]] Num spread(Val row) const {
    return {b, b->op("Expand", {row, b->op("Shape", {key.v}, {}, Dtype::kInt64)})};
  }
  [[nodiscard]] Num places() const { return spread(range(*b, n)); }
  [[nodiscard]] Num at(Num v, Num place) const {
    return {b, b->op("GatherElements", {v.v, place.v}, {attr("axis", rank - 1)})};
  }
  [[nodiscard]] Num counted(Num marks) const {
    return {b, b->op("CumSum", {cast(marks, Dtype::kInt64).v, number(rank - 1).v})};
  }
  [[nodiscard]] Num before(Num x, Num y) const { return largest ? x > y : x < y; }
  [[nodiscard]] Num any(Num marks) const {
    Ints axes(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    const Num ones{b, b->reduce("ReduceSum", cast(marks, Dtype::kInt64).v, axes, false)};
    return ones > 0.0;
  }
};

struct Ranges {
  Num order, first, last;
};

// Which ranges are not short yet; of std::nth_element, the one that holds the place.
Num open_ranges(Num first, Num last, double short_one, const Num* nth) {
  const Num wide = last - first > short_one;
  return nth == nullptr ? wide : both(wide, both(first <= *nth, *nth < last));
}

// Rules 1 to 3, once.
Ranges partitioned(const Rows& rows, Num place, Num limit, const Ranges& in, Num open) {
  const Num order = in.order, first = in.first, last = in.last;
  const Num value = rows.at(rows.key, order);
  const Num second = where(first + 1.0 < limit, first + 1.0, first), end = last - 1.0;
  const Num middle = first + (last - first) / 2.0;
  const Num a = rows.at(value, second), m = rows.at(value, middle), z = rows.at(value, end);
  const Num a_z = rows.before(a, z), m_z = rows.before(m, z);
  const Num pivot = where(rows.before(a, m), where(m_z, middle, where(a_z, end, second)),
                          where(a_z, second, where(m_z, end, middle)));
  const Num turned =
      where(both(open, place == first), pivot, where(both(open, place == pivot), first, place));
  const Num v = rows.at(value, turned), p = rows.at(v, first);

  const Num inside = both(open, place > first);
  const Num from_left = both(inside, !rows.before(v, p)),
            from_right = both(inside, !rows.before(p, v));
  const Num lefts = rows.counted(from_left), rights = rows.counted(from_right);
  const Num rank_left = lefts - rows.at(lefts, first);  // those up to here
  const Num behind = rows.at(rights, end) - rights;     // those after here
  const Num rank_right = behind + 1.0;
  const Num goes_right = both(from_left, behind >= rank_left);
  const Num goes_left = both(from_right, rank_left - cast(from_left, Dtype::kInt64) >= rank_right);
  // Where the t-th stands is written to place first + t; the others write beyond the row.
  const Num beyond = place + limit;
  const Num none{rows.b, rows.b->concat({place.v, place.v}, rows.rank - 1)};
  const auto partner = [&](Num goes, Num rank, Num asked) {
    const Val slots =
        scatter_elements(*rows.b, none, where(goes, first + rank, beyond), place, rows.rank - 1);
    return rows.at({rows.b, slots}, first + asked);
  };
  const Num of_left = partner(goes_left, rank_right, rank_left);
  const Num of_right = partner(goes_right, rank_left, rank_right);
  const Num from = where(goes_right, of_left, where(goes_left, of_right, place));

  const Num moved = rows.counted(goes_left);
  const Num pairs = rows.at(moved, end) - rows.at(moved, first);
  const Num part = both(inside, both(rank_left <= pairs, rows.at(moved, end) - moved == pairs));
  const Num parts = rows.counted(part);
  const Num cut = (first + 1.0) + (rows.at(parts, end) - rows.at(parts, first));
  return {rows.at(rows.at(order, turned), from), where(both(open, place >= cut), cut, first),
          where(both(open, place < cut), cut, last)};
}

Ranges until_short(const Rows& rows, const Ranges& start, double short_one, const Num* nth) {
  Lowering& b = *rows.b;
  const Num place = rows.places(), limit = rows.size();
  const auto open = [&](const Ranges& r) { return open_ranges(r.first, r.last, short_one, nth); };
  const TensorInfo table{"", Dtype::kInt64, std::nullopt};
  const auto body =
      b.body({{"", Dtype::kInt64, Shape{}}, {"", Dtype::kBool, Shape{}}, table, table, table},
             [&](const Inputs& in) -> Inputs {
               const Ranges now{{&b, in[2]}, {&b, in[3]}, {&b, in[4]}};
               const Ranges next = partitioned(rows, place, limit, now, open(now));
               return {rows.any(open(next)), next.order, next.first, next.last};
             });
  const Inputs found =
      b.ops("Loop",
            {rows.number(kMostSteps), rows.any(open(start)), start.order, start.first, start.last},
            {Dtype::kInt64, Dtype::kInt64, Dtype::kInt64}, {{"body", body}});
  return {{&b, found[0]}, {&b, found[1]}, {&b, found[2]}};
}

// The stable end of it: the places that TopK gives of the keys in this order.
Num ended(const Rows& rows, Num order, Val k) {
  Lowering& b = *rows.b;
  const Num keys = rows.at(rows.key, order);
  const Val top =
      b.ops("TopK", {keys.v, k}, {keys.dtype(), Dtype::kInt64},
            {attr("axis", rows.rank - 1), attr("largest", rows.largest), attr("sorted", 1)})[1];
  return rows.at(order, {&b, top});
}

Num sorted_places(const Rows& rows) {
  const Num place = rows.places();
  const Ranges whole{place, place * 0.0, place * 0.0 + rows.size()};
  return ended(rows, until_short(rows, whole, kSortLeft, nullptr).order, rows.b->dim(rows.n));
}

// The last range of std::nth_element, of at most three elements, put in order.
Num inserted(const Rows& rows, const Ranges& in, Num nth, Num place) {
  Num order = in.order;
  const Num row_first = rows.at(in.first, nth), row_last = rows.at(in.last, nth);
  for (const double offset : {0.0, 1.0, 0.0}) {
    const Num left = row_first + offset;
    const Num there = left + 1.0 < row_last;
    const Num one = where(there, left, row_first), other = where(there, left + 1.0, row_first);
    const Num value = rows.at(rows.key, order);
    const Num turn = both(there, rows.before(rows.at(value, other), rows.at(value, one)));
    order = rows.at(order, where(both(turn, place == one), other,
                                 where(both(turn, place == other), one, place)));
  }
  return order;
}

// `sorted`: those before the k-th are put in order among themselves.
Num top_places(const Rows& rows, Expr k, bool sorted) {
  Lowering& b = *rows.b;
  const Num place = rows.places();
  const Num last_one{&b, b.size_scalar(b.pool().sub(k, b.expr(1)))};
  const Ranges whole{place, place * 0.0, place * 0.0 + rows.size()};
  const Ranges selected = until_short(rows, whole, kSelectLeft, &last_one);
  // One index for each row, in a tensor of the same rank.
  const Val zero = b.ints({0}), one = b.ints({1});
  const Num nth = Num{&b, b.slice(place, rows.rank - 1, zero, one)} + last_one;
  const Num order = inserted(rows, selected, nth, place);
  const Num head{&b, b.slice(order, rows.rank - 1, zero, b.dim(k))};
  if (!sorted) return head;
  const Rows chosen{&b, rows.at(rows.key, head), rows.rank, k, rows.largest};
  const Num at = chosen.places();
  const Num before = at < last_one;
  const Ranges start{at, where(before, 0.0, at), where(before, at * 0.0 + last_one, at)};
  return rows.at(head,
                 ended(chosen, until_short(chosen, start, kSortLeft, nullptr).order, b.dim(k)));
}

// The axis comes last, and back.
Ints axis_last(std::int64_t axis, int rank) {
  Ints perm = to_front(axis, rank);
  std::rotate(perm.begin(), perm.begin() + 1, perm.end());
  return perm;
}

Rows rows_of(Lowering& b, Val x, std::int64_t axis, bool largest) {
  const int rank = b.rank(0);
  Num key{&b, x};
  if (key.dtype() == Dtype::kFloat16) key = cast(key, Dtype::kFloat32);
  if (is_float(key.dtype())) {
    key = where(node("IsNaN", key), kInfinity, min(key, Lowering::highest(key.dtype())));
  } else if (key.dtype() != Dtype::kInt64) {
    key = cast(key, Dtype::kInt32);
  }
  return {&b, {&b, b.transpose(key, axis_last(axis, rank))}, rank, b.shape(0)[axis], largest};
}

// What `places` gives where `condition` holds, else `plain`.
Inputs where_wanted(Lowering& b, Val x, const Rows& rows, const Inputs& plain, Num condition,
                    std::int64_t axis, const std::function<Num()>& places) {
  const auto as_eager = b.body({}, [&](const Inputs&) -> Inputs {
    const Val found = b.transpose(places(), inverse(axis_last(axis, rows.rank)));
    return {b.op("GatherElements", {x, found}, {attr("axis", axis)}), found};
  });
  const auto as_it_is = b.body({}, [&](const Inputs&) -> Inputs {
    return {b.op("Identity", {plain[0]}), b.op("Identity", {plain[1]})};
  });
  return b.ops("If", {condition}, {b.dtype_of(plain[0]), Dtype::kInt64},
               {{"then_branch", as_eager}, {"else_branch", as_it_is}});
}

// `plain`, or what `places` gives where two of the first k + 1 elements are equal.
Inputs unless_equal(Lowering& b, Val x, const Rows& rows, const Inputs& plain, Val count, Num asked,
                    std::int64_t axis, const std::function<Num()>& places) {
  const Val sorted =
      b.ops("TopK", {rows.key.v, count}, {rows.key.dtype(), Dtype::kInt64},
            {attr("axis", rows.rank - 1), attr("largest", rows.largest), attr("sorted", 1)})[0];
  const std::int64_t last = rows.rank - 1;
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  const Num left{&b, b.slice(sorted, last, b.ints({0}), b.ints({-1}))};
  const Num right{&b, b.slice(sorted, last, b.ints({1}), b.ints({kEnd}))};
  return where_wanted(b, x, rows, plain, both(asked, rows.any(left == right)), axis, places);
}

}  // namespace

Val order_of_heap(Lowering& b, Expr n, std::int64_t k) {
  Ints heaped(static_cast<std::size_t>(k));
  std::iota(heaped.begin(), heaped.end(), 0);
  std::partial_sort(heaped.begin(), heaped.end(), heaped.end(),
                    [](std::int64_t, std::int64_t) { return false; });
  if (std::is_sorted(heaped.begin(), heaped.end())) return {};
  const Expr rest = b.pool().sub(n, b.expr(k));
  return b.concat({b.ints(heaped), range(b, b.expr(k), rest, b.expr(1))}, 0);
}

Inputs sorted_as_eager(Lowering& b, Val x, const Inputs& plain, std::int64_t axis, bool largest) {
  const Rows rows = rows_of(b, x, axis, largest);
  return unless_equal(b, x, rows, plain, b.dim(rows.n), rows.size() > kSortLeft, axis,
                      [&] { return sorted_places(rows); });
}

Inputs top_as_eager(Lowering& b, Val x, const Inputs& plain, Expr k, std::int64_t axis,
                    bool largest) {
  const Rows rows = rows_of(b, x, axis, largest);
  const Num asked{&b, b.size_scalar(k)};
  const Expr one_more = b.pool().min(rows.n, b.pool().add(k, b.expr(1)));
  return unless_equal(b, x, rows, plain, b.dim(one_more),
                      both(asked > 0.0, asked * kPartialSort > rows.size()), axis,
                      [&] { return top_places(rows, k, true); });
}

Inputs unsorted_top(Lowering& b, Val x, const Inputs& plain, Expr k, std::int64_t axis,
                    bool largest) {
  const Rows rows = rows_of(b, x, axis, largest);
  const Num asked{&b, b.size_scalar(k)};
  return where_wanted(b, x, rows, plain, both(asked > 0.0, asked * kPartialSort > rows.size()),
                      axis, [&] { return top_places(rows, k, false); });
}

}  // namespace fairlead::onnx
