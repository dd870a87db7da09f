// Factors of matrices that ONNX has not: eigenvalues and singular values by Jacobi's rotations, QR by
// reflections, each a Loop over a batch of matrices, in double.
//
// Vectors are unique up to their sign: where a result follows the signs that LAPACK happens to give,
// the check against PyTorch refuses the file.
#include <limits>
#include <string>
#include <string_view>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/index_forms.h"
#include "fairlead/onnx/ops/linalg_forms.h"

namespace fairlead::onnx {
namespace {

constexpr Dtype kWork = Dtype::kFloat64;
constexpr std::int64_t kSweeps = 14;  // over all pairs; a double is exact after fewer than ten
constexpr double kOff = 1e-31;        // what is left beside the diagonal, of its squares
constexpr std::int64_t kMost =
    64;  // columns: beyond, rotations in a Loop take longer than any model

Val turned(Lowering& b, Val x) { return b.transpose(x, {0, 2, 1}); }
Num product(Num x, Num y) { return node("MatMul", x, y); }
Num sum(Num x, std::int64_t axis, bool keep = false) {
  return {x.b, x.b->reduce("ReduceSum", x, {axis}, keep)};
}

Num matrices(Lowering& b, std::size_t i = 0) {
  if (b.is_complex_arg(i)) b.unsupported("complex matrices");
  return {&b, as_batch(b, b.in(i, kWork), b.shape(i))};
}

// The places of n rows, and what a Loop over pairs of them needs. In a round every row has one
// partner, or is its own; after as many rounds as there are, every pair has met once.
struct Pairs {
  Val each;    // 0 .. n - 1
  Num one;     // 1, [n, n]
  Val size;    // n, 0-d
  Val rounds;  // n, or n - 1 of an even n
  Val even;
};

Pairs pairs_of(Lowering& b, Expr n) {
  Pairs p;
  p.each = range(b, n);
  p.one = {&b, b.op("Equal", {b.unsqueeze(p.each, {1}), p.each})};
  p.size = b.size_scalar(n);
  const Val two = b.scalar(2, Dtype::kInt64), rest = b.op("Mod", {p.size, two});
  p.even = b.op("Equal", {rest, b.scalar(0, Dtype::kInt64)});
  p.rounds = b.op("Sub", {b.op("Add", {p.size, rest}), b.scalar(1, Dtype::kInt64)});
  return p;
}

// int64 [n]: i and j meet where i + j = 2 * round, modulo the number of rounds; the one that would
// meet itself meets the last of an even number.
Val partners(Lowering& b, const Pairs& p, Val round) {
  const Val twice = b.op("Add", {round, round});
  const Val met = b.op("Mod", {b.op("Sub", {twice, p.each}), p.rounds});
  const Val last = b.op("Sub", {p.size, b.scalar(1, Dtype::kInt64)});
  const Val own = b.op("Where", {p.even, last, p.each});
  const Val other = b.op("Where", {b.op("Equal", {met, p.each}), own, met});
  const Val is_last = b.op("And", {p.even, b.op("Equal", {p.each, last})});
  return b.op("Where", {is_last, b.op("Mod", {round, p.rounds}), other});
}

// By which cosine and sine columns are turned with their partners, [batch, n] each, so that what is
// between them goes: `own` and `others` stand on the diagonal of a symmetric matrix, `across` beside.
struct Turn {
  Num cosine, sine;
};
Turn turn_of(Lowering& b, const Pairs& p, Val partner, Num own, Num others, Num across) {
  const Num alone = {&b, b.op("Equal", {partner, p.each})};
  const Num none = either(across == 0.0, alone);
  const Num slope = (others - own) / (2.0 * where(none, 1.0, across));
  const Num first = {&b, b.cast(b.op("Less", {p.each, partner}), kWork)};
  const Num sign = where(slope == 0.0, 2.0 * first - 1.0, node("Sign", slope));
  const Num size = node("Abs", slope) + node("Sqrt", slope * slope + 1.0);
  const Num tangent = where(none, 0.0, sign / size);
  const Num cosine = 1.0 / node("Sqrt", tangent * tangent + 1.0);
  return {cosine, tangent * cosine};
}

Num partner_of(Lowering& b, Num x, Val partner, std::int64_t axis) {
  return {&b, b.op("Gather", {x, partner}, {attr("axis", axis)})};
}

// Columns (axis 2) or rows (axis 1) of [batch, ., .] turned with their partners.
Num turned_by(Lowering& b, Num x, const Turn& turn, Val partner, std::int64_t axis) {
  const auto wide = [&](Num v) { return Num{&b, b.unsqueeze(v, {axis == 2 ? 1 : 2})}; };
  return x * wide(turn.cosine) - partner_of(b, x, partner, axis) * wide(turn.sine);
}

// Whether anything is left beside the diagonal, 0-d.
Val is_left(Lowering& b, const Pairs& p, Num symmetric) {
  const Num squares = symmetric * symmetric;
  const Num whole = {&b, b.reduce("ReduceSum", squares, {1, 2}, false)};
  const Num beside = {&b, b.reduce("ReduceSum", where(p.one, 0.0, squares), {1, 2}, false)};
  const Val left = b.cast(beside > whole * kOff, Dtype::kInt32);
  const Val any = b.reduce("ReduceSum", left, {0}, false);
  return b.op("Greater", {any, b.scalar(0, Dtype::kInt32)});
}

Val steps_of(Lowering& b, const Pairs& p) {
  return b.op("Mul", {p.rounds, b.scalar(kSweeps, Dtype::kInt64)});
}

Val eye_like(Lowering& b, const Pairs& p, Num x) {
  const Val batch = b.op("Shape", {x}, {attr("start", 0), attr("end", 1)});
  const Val n = b.unsqueeze(p.size, {0});
  return b.op("Expand", {b.cast(p.one, kWork), b.concat({batch, n, n}, 0)});
}

// Rows of [batch, n, m] by decreasing, or increasing, values [batch, n].
struct Sorted {
  Val values, order;
};
Sorted sorted(Lowering& b, Num values, const Pairs& p, bool largest) {
  const Inputs out = b.ops("TopK", {values, b.unsqueeze(p.size, {0})}, {kWork, Dtype::kInt64},
                           {attr("axis", 1), attr("largest", largest ? 1 : 0)});
  return {out[0], b.unsqueeze(out[1], {-1})};
}
Val rows_of(Lowering& b, Val rows, const Sorted& by) {
  return b.op("GatherND", {rows, by.order}, {attr("batch_dims", 1)});
}

// How many columns are rotated: as many as there are in every call, and not many.
Expr columns_of(Lowering& b) {
  const Expr n = b.shape(0).back();
  if (!is_const(n)) b.must_be_constant("the number of columns", n);
  if (n->value > kMost)
    b.unsupported("a matrix of more than " + std::to_string(kMost) + " columns");
  return n;
}

void give(Lowering& b, std::size_t k, Val x) {
  if (k < b.result_count() && b.result_used(k))
    b.result(k, b.op("Reshape", {x, b.shape_tensor(b.out_shape(k))}));
}

// aten::_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True)
//   -> (Tensor eigenvalues, Tensor eigenvectors)
void lower_eigh(Lowering& b) {
  const Pairs p = pairs_of(b, columns_of(b));
  const Num given = matrices(b);
  const bool upper = b.has(1) && b.text(1) == "U";
  const Val half = b.op("Trilu", {given, b.size_scalar(b.expr(0))}, {attr("upper", upper)});
  const Num other = {&b, turned(b, half)};
  const Num whole = Num{&b, half} + where(p.one, 0.0, other);
  const Inputs out = loop(
      b, steps_of(b, p), {whole, eye_like(b, p, whole)},
      [&](Val k, const Inputs& in) -> Inputs {
        const Num a = {&b, in[0]};
        const Val partner = partners(b, p, k);
        const Num met = {&b, b.op("Equal", {b.unsqueeze(partner, {1}), p.each})};  // [n, n]
        const Num own = sum(where(p.one, a, 0.0), 2);
        const Turn turn =
            turn_of(b, p, partner, own, partner_of(b, own, partner, 1), sum(where(met, a, 0.0), 2));
        const Num columns = turned_by(b, a, turn, partner, 2);
        return {turned_by(b, columns, turn, partner, 1),
                turned_by(b, {&b, in[1]}, turn, partner, 2)};
      },
      [&](const Inputs& next) { return is_left(b, p, {&b, next[0]}); });
  const Num values = sum(where(p.one, {&b, out[0]}, 0.0), 2);
  const Sorted by = sorted(b, values, p, false);
  give(b, 0, by.values);
  give(b, 1, turned(b, rows_of(b, turned(b, out[1]), by)));
}

// A V = B with columns that are at right angles: their lengths are the singular values.
struct Turned {
  Pairs pairs;
  Num columns;  // B [batch, m, n]
  Num turns;    // V [batch, n, n]
  Num squares;  // of the singular values, [batch, n]
};

Turned one_sided(Lowering& b) {
  Turned t;
  t.pairs = pairs_of(b, columns_of(b));
  const Num a = matrices(b);
  const Pairs& p = t.pairs;
  const Val zero = b.op("Expand", {b.scalar(0, kWork), b.ints({1})});
  const Val yes = b.op("Expand", {b.scalar(1, Dtype::kBool), b.ints({1})});
  const Val last = b.op("Sub", {p.rounds, b.scalar(1, Dtype::kInt64)});
  const Inputs out = loop(
      b, steps_of(b, p), {a, eye_like(b, p, a), zero, yes},
      [&](Val k, const Inputs& in) -> Inputs {
        const Num columns = {&b, in[0]};
        const Val partner = partners(b, p, k);
        const Num own = sum(columns * columns, 1);
        const Num across = sum(columns * partner_of(b, columns, partner, 2), 1);
        const Turn turn = turn_of(b, p, partner, own, partner_of(b, own, partner, 1), across);
        // What was largest between two columns in this sweep, of the whole, squared.
        const Num alone = {&b, b.op("Equal", {partner, p.each})};
        const Num whole = sum(own, 1, true);
        const Num none = either(alone, whole == 0.0);
        const Num share = where(none, 0.0, across / where(none, 1.0, whole));
        const Val now = b.op("Reshape", {share * share, b.ints({-1})});
        const Val round = b.op("Mod", {k, p.rounds});
        const Val first = b.op("Equal", {round, b.scalar(0, Dtype::kInt64)});
        const Val before = b.op("Where", {first, zero, in[2]});
        const Num most = {&b, b.reduce("ReduceMax", b.concat({before, now}, 0), {0}, true)};
        const Val done = b.op("And", {b.op("Equal", {round, last}), most <= kOff});
        return {turned_by(b, columns, turn, partner, 2),
                turned_by(b, {&b, in[1]}, turn, partner, 2), most, b.op("Not", {done})};
      },
      [&](const Inputs& next) { return b.squeeze(next[3], {0}); });
  t.columns = {&b, out[0]};
  t.turns = {&b, out[1]};
  t.squares = sum(t.columns * t.columns, 1);
  return t;
}

// aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None)
//   -> (Tensor U, Tensor S, Tensor Vh)
void lower_svd(Lowering& b) {
  const Expr m = b.shape(0)[b.shape(0).size() - 2], n = b.shape(0).back();
  const bool full = b.flag(1);
  const bool wants_left = b.result_count() > 0 && b.result_used(0) && b.flag(2, true);
  if (full && wants_left && b.pool().min(m, n) != m)
    b.unsupported("all left vectors of a matrix with more rows than columns (full_matrices=True)");
  const Turned t = one_sided(b);
  const Sorted by = sorted(b, node("Sqrt", t.squares), t.pairs, true);
  const Val kept = b.dim(b.pool().min(m, n));
  const auto first = [&](Val x, std::int64_t axis) { return b.slice(x, axis, b.ints({0}), kept); };
  const Num values = {&b, first(by.values, 1)};
  give(b, 1, values);
  if (!b.flag(2, true)) return;
  if (wants_left) {
    const Num rows = {&b, first(rows_of(b, turned(b, t.columns), by), 1)};
    const Num length = {&b, b.unsqueeze(where(values == 0.0, 1.0, values), {2})};
    give(b, 0, turned(b, rows / length));
  }
  const Val right = rows_of(b, turned(b, t.turns), by);
  give(b, 2, full ? right : first(right, 1));
}

// Of singular values that are not above the larger of two bounds, the inverse is 0.
Num pseudo_inverse(Lowering& b, Val absolute, Val relative) {
  const Turned t = one_sided(b);
  const Num values = node("Sqrt", t.squares);
  const Num largest = {&b, b.reduce("ReduceMax", values, {1}, true)};
  const auto column = [&](Val bound) {  // one for each matrix, or one for all
    const Val flat = b.op("Reshape", {b.cast(bound, kWork), b.ints({-1, 1})});
    return Num{&b, flat};
  };
  Num bound = largest * column(relative);
  if (absolute.present()) bound = max(bound, column(absolute));
  const Num kept = values > bound;
  const Num inverse = where(kept, 1.0 / where(kept, t.squares, 1.0), 0.0);
  const Num scaled = t.turns * Num{&b, b.unsqueeze(inverse, {1})};
  return product(scaled, {&b, turned(b, t.columns)});
}

// The machine's step at 1, as often as the larger side is long.
Val default_bound(Lowering& b) {
  const double step = b.dtype(0) == Dtype::kFloat64 ? std::numeric_limits<double>::epsilon()
                                                    : std::numeric_limits<float>::epsilon();
  const Expr m = b.shape(0)[b.shape(0).size() - 2], n = b.shape(0).back();
  const Num side = {&b, b.cast(b.size_scalar(b.pool().max(m, n)), kWork)};
  return side * step;
}

// aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None,
//   bool hermitian=False) -> Tensor
void lower_pinv(Lowering& b) {
  const bool has_absolute = b.has(1), has_relative = b.has(2);
  const Val absolute = has_absolute ? b.in(1, kWork) : Val{};
  Val relative = has_relative ? b.in(2, kWork) : default_bound(b);
  if (has_absolute && !has_relative) {
    relative = where({&b, b.op("Greater", {absolute, b.scalar(0, kWork)})}, 0.0, {&b, relative});
  }
  give(b, 0, pseudo_inverse(b, absolute, relative));
}

// aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None)
//   -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)
void lower_lstsq(Lowering& b) {
  not_used(b, 1, 3);
  const bool vectors = b.rank(1) == b.rank(0) - 1;
  Shape shape = b.shape(1);
  Val right = b.in(1, kWork);
  if (vectors) {
    right = b.unsqueeze(right, {-1});
    shape.push_back(b.expr(1));
  }
  const Val relative = b.has(2) ? b.scalar(b.number(2), kWork) : default_bound(b);
  const Num inverse = pseudo_inverse(b, {}, relative);
  give(b, 0, product(inverse, {&b, as_batch(b, right, shape)}));
}

// aten::linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)
//
// Step k reflects what stands below element k of column k into that element, with the sign that
// LAPACK takes.
void lower_qr(Lowering& b) {
  const Expr m = b.shape(0)[b.shape(0).size() - 2], n = b.shape(0).back();
  const std::string_view mode = b.has(1) ? b.text(1) : "reduced";
  const Num a = matrices(b);
  const Pairs p = pairs_of(b, m);
  const Val steps = b.size_scalar(b.pool().min(m, n));
  const Inputs out = loop(b, steps, {a, eye_like(b, p, a)}, [&](Val k, const Inputs& in) -> Inputs {
    const Num column = {&b, at(b, in[0], k, 2)};                  // [batch, m]
    const Num own = {&b, b.unsqueeze(at(b, column, k, 1), {1})};  // [batch, 1]
    const Num below = where({&b, b.op("Greater", {p.each, k})}, column, 0.0);
    const Num rest = sum(below * below, 1, true);
    const Num length = node("Sqrt", own * own + rest);
    const Num target = where(own >= 0.0, -length, length);
    const Num is_k = {&b, b.op("Equal", {p.each, k})};
    const Num across = where(is_k, own - target, below);  // [batch, m]
    const Num square = sum(across * across, 1, true);
    const Num share = where(rest == 0.0, 0.0, 2.0 / where(square == 0.0, 1.0, square));
    const Num upright = {&b, b.unsqueeze(across, {2})},
              flat = {&b, b.unsqueeze(across * share, {1})};
    const Num upright_share = {&b, b.unsqueeze(across * share, {2})};
    const Num flat_plain = {&b, b.unsqueeze(across, {1})};
    const Num r = {&b, in[0]}, q = {&b, in[1]};
    return {r - upright_share * product(flat_plain, r), q - product(q, upright) * flat};
  });
  const Val kept = b.dim(b.pool().min(m, n));
  const auto first = [&](Val x, std::int64_t axis) {
    return mode == "complete" ? x : b.slice(x, axis, b.ints({0}), kept);
  };
  if (mode != "r") give(b, 0, first(out[1], 2));
  const Val upper = b.op("Trilu", {out[0], b.size_scalar(b.expr(0))}, {attr("upper", 1)});
  give(b, 1, first(upper, 1));
}

constexpr std::string_view kSigns =
    "up to 64 columns, of a fixed number; vectors are PyTorch's up to their sign, which the check "
    "looks at";

constexpr OpRow kRows[] = {
    {"aten._linalg_eigh.default", lower_eigh, "Loop", kSigns},
    {"aten._linalg_svd.default", lower_svd, "Loop", kSigns},
    {"aten.linalg_lstsq.default", lower_lstsq, "Loop",
     "only the solution; up to 64 columns, of a fixed number"},
    {"aten.linalg_pinv.atol_rtol_tensor", lower_pinv, "Loop",
     "up to 64 columns, of a fixed number"},
    {"aten.linalg_qr.default", lower_qr, "Loop", ""},
};

}  // namespace

std::span<const OpRow> factor_ops() { return kRows; }

}  // namespace fairlead::onnx
