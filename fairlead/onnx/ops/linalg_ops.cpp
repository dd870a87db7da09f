// Linear systems: elimination with pivots, and Cholesky's columns, one step of a Loop per row.
//
// ONNX has none of these but Det. Matrices of any number of leading dimensions are one batch.
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/index_forms.h"
#include "fairlead/onnx/ops/linalg_forms.h"

namespace fairlead::onnx {
namespace {

Dtype working(Dtype d) { return d == Dtype::kFloat64 ? d : Dtype::kFloat32; }

// [A | B] of n rows brought to [D | X], D a diagonal: by step k the row with the largest element of
// column k goes to place k, and its multiples take that column out of every other row.
struct Eliminated {
  Val rows;      // [batch, n, n + m]
  Val diagonal;  // [batch, n]
  Val sign;      // [batch], -1 after an odd number of exchanges
};

Eliminated eliminate(Lowering& b, Val a, Val right, Expr n) {
  const Dtype d = b.dtype_of(a);
  const Val rows = right.present() ? b.concat({a, right}, 2) : a;
  const Val each = range(b, n);  // [n]
  const Val batch = b.op("Shape", {a}, {attr("start", 0), attr("end", 1)});
  const Val one = b.op("Expand", {b.scalar(1, d), batch});
  const Inputs out = loop(b, b.size_scalar(n), {rows, one}, [&](Val k, const Inputs& in) -> Inputs {
    const Num column = {&b, at(b, in[0], k, 2)};  // [batch, n]
    const Val below = b.op("GreaterOrEqual", {each, k});
    const Val size = b.op("Where", {below, node("Abs", column), b.scalar(-1, d)});
    const Val best = b.op("ArgMax", {size}, {attr("axis", 1), attr("keepdims", 1)});  // [batch, 1]
    const Val is_k = b.op("Equal", {each, k}), is_best = b.op("Equal", {each, best});
    const Val order = b.op("Where", {is_k, best, b.op("Where", {is_best, k, each})});
    const Val moved = b.op("GatherND", {in[0], b.unsqueeze(order, {-1})}, {attr("batch_dims", 1)});
    const Val row = b.unsqueeze(at(b, moved, k, 1), {1});  // [batch, 1, n + m]
    const Num own = {&b, at(b, row, k, 2)};                // [batch, 1]
    // A column of zeros takes nothing from the others; the zero stays on the diagonal.
    const Num share = Num{&b, at(b, moved, k, 2)} / where(own == 0.0, 1.0, own);
    const Val others = b.op("Where", {is_k, b.scalar(0, d), share});
    const Num cleared = Num{&b, moved} - Num{&b, b.unsqueeze(others, {-1})} * Num{&b, row};
    const Val same = b.squeeze(b.op("Equal", {best, k}), {1});
    const Val turned = b.op("Where", {same, in[1], b.op("Neg", {in[1]})});
    return {cleared, turned};
  });
  Eliminated e{out[0], {}, out[1]};
  const Val eye = b.op("Equal", {b.unsqueeze(each, {1}), each});  // [n, n]
  const Val square = b.slice(out[0], 2, b.ints({0}), b.dim(n));
  e.diagonal = b.reduce("ReduceSum", b.op("Where", {eye, square, b.scalar(0, d)}), {2}, false);
  return e;
}

Val solution(Lowering& b, const Eliminated& e, Expr n) {
  const Val right = b.slice(e.rows, 2, b.dim(n), b.ints({INT64_MAX}));
  return b.op("Div", {right, b.unsqueeze(e.diagonal, {2})});
}

// aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)
void lower_inv(Lowering& b) {
  const Dtype d = working(b.out_dtype());
  const Shape& shape = b.shape(0);
  const Expr n = shape.back();
  const Val a = as_batch(b, b.in(0, d), shape);
  const Val each = range(b, n);
  const Val eye = b.cast(b.op("Equal", {b.unsqueeze(each, {1}), each}), d);
  const Val right = b.op("Expand", {eye, b.op("Shape", {a})});
  b.result(0, unbatched(b, solution(b, eliminate(b, a, right, n), n), b.out_shape()));
  no_info(b, 1);
}

// aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)
//   -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)
void lower_solve(Lowering& b) {
  if (!b.flag(2, true)) b.unsupported("a system from the right");
  not_used(b, 1, 2);
  const Dtype d = working(b.out_dtype());
  const Shape& shape = b.shape(0);
  const Expr n = shape.back();
  const bool vector = b.rank(1) == b.rank(0) - 1;
  Shape right_shape = b.shape(1);
  Val right = b.in(1, d);
  if (vector) {
    right = b.unsqueeze(right, {-1});
    right_shape.push_back(b.expr(1));
  }
  // Leading dimensions are broadcast.
  Shape lead =
      broadcast(b, {shape.begin(), shape.end() - 2}, {right_shape.begin(), right_shape.end() - 2});
  const auto spread = [&](Val v, const Shape& from) {
    Shape to = lead;
    to.insert(to.end(), from.end() - 2, from.end());
    return as_batch(b, b.expand(v, from, to), to);
  };
  const Val a = spread(b.in(0, d), shape);
  const Val x = solution(b, eliminate(b, a, spread(right, right_shape), n), n);
  b.result(0, b.op("Reshape", {x, b.shape_tensor(b.out_shape())}));
  no_info(b, 3);
}

// aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)
void lower_det(Lowering& b) {
  not_used(b, 1, 2);
  const Dtype d = working(b.out_dtype());
  const Expr n = b.shape(0).back();
  const Eliminated e = eliminate(b, as_batch(b, b.in(0, d), b.shape(0)), {}, n);
  const Val det = b.op("Mul", {b.reduce("ReduceProd", e.diagonal, {1}, false), e.sign});
  b.result(0, b.op("Reshape", {det, b.shape_tensor(b.out_shape())}));
}

// aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)
void lower_slogdet(Lowering& b) {
  not_used(b, 2, 3);
  const Dtype d = working(b.out_dtype());
  const Expr n = b.shape(0).back();
  const Eliminated e = eliminate(b, as_batch(b, b.in(0, d), b.shape(0)), {}, n);
  const Val signs = b.reduce("ReduceProd", b.op("Sign", {e.diagonal}), {1}, false);
  const Num sizes = node("Log", node("Abs", Num{&b, e.diagonal}));
  const Val sum = b.reduce("ReduceSum", sizes, {1}, false);
  b.result(0, b.op("Reshape", {b.op("Mul", {signs, e.sign}), b.shape_tensor(b.out_shape(0))}));
  b.result(1, b.op("Reshape", {sum, b.shape_tensor(b.out_shape(1))}));
}

// aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False)
//   -> (Tensor L, Tensor info)
//
// Column k of L is what the columns before it leave of A's, over the root of its element k.
void lower_cholesky(Lowering& b) {
  const Dtype d = working(b.out_dtype());
  const Shape& shape = b.shape(0);
  const Expr n = shape.back();
  const bool upper = b.flag(1);
  Val a = as_batch(b, b.in(0, d), shape);
  if (upper) a = b.transpose(a, {0, 2, 1});  // the half that is read
  const Val each = range(b, n);
  const Val none = b.op("Expand", {b.scalar(0, d), b.op("Shape", {a})});
  const Val lower = loop(b, b.size_scalar(n), {none}, [&](Val k, const Inputs& in) -> Inputs {
    const Val row = b.unsqueeze(at(b, in[0], k, 1), {-1});  // [batch, n, 1]
    const Num left =
        Num{&b, b.unsqueeze(at(b, a, k, 2), {-1})} - node("MatMul", {&b, in[0]}, {&b, row});
    const Num root = node("Sqrt", Num{&b, b.unsqueeze(at(b, left, k, 1), {1})});  // [batch, 1, 1]
    const Val below = b.unsqueeze(b.op("GreaterOrEqual", {each, k}), {-1});       // [n, 1]
    const Val column = b.op("Where", {below, left / root, b.scalar(0, d)});
    const Val is_k = b.op("Equal", {each, k});  // [n]
    return {b.op("Where", {is_k, column, in[0]})};
  })[0];
  b.result(0, unbatched(b, upper ? b.transpose(lower, {0, 2, 1}) : lower, b.out_shape()));
  no_info(b, 1);
}

// aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True,
//   bool unitriangular=False) -> Tensor: the other half and, where it is said, the diagonal are not
// looked at
void lower_solve_triangular(Lowering& b) {
  if (!b.flag(3, true)) b.unsupported("a system from the right");
  const Dtype d = working(b.out_dtype());
  const Expr n = b.shape(0).back();
  Shape lead(b.out_shape().begin(), b.out_shape().end() - 2);
  const auto spread = [&](Val v, const Shape& from) {
    Shape to = lead;
    to.insert(to.end(), from.end() - 2, from.end());
    return as_batch(b, b.expand(v, from, to), to);
  };
  Val a = b.op("Trilu", {spread(b.in(0, d), b.shape(0)), b.size_scalar(b.expr(0))},
               {attr("upper", b.flag(2))});
  if (b.flag(4)) {
    const Val each = range(b, n);
    a = b.op("Where", {b.op("Equal", {b.unsqueeze(each, {1}), each}), b.scalar(1, d), a});
  }
  const Val x = solution(b, eliminate(b, a, spread(b.in(1, d), b.shape(1)), n), n);
  b.result(unbatched(b, x, b.out_shape()));
}

// aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor: L y = self, then
// L' x = y
void lower_cholesky_solve(Lowering& b) {
  const Dtype d = working(b.out_dtype());
  const Expr n = b.shape(1).back();
  const bool upper = b.flag(2);
  const Shape lead(b.out_shape().begin(), b.out_shape().end() - 2);
  const auto spread = [&](Val v, const Shape& from) {
    Shape to = lead;
    to.insert(to.end(), from.end() - 2, from.end());
    return as_batch(b, b.expand(v, from, to), to);
  };
  const Val half = b.op("Trilu", {spread(b.in(1, d), b.shape(1)), b.size_scalar(b.expr(0))},
                        {attr("upper", upper)});
  const Val other = b.transpose(half, {0, 2, 1});
  const Val y =
      solution(b, eliminate(b, upper ? other : half, spread(b.in(0, d), b.shape(0)), n), n);
  const Val x = solution(b, eliminate(b, upper ? half : other, y, n), n);
  b.result(unbatched(b, x, b.out_shape()));
}

// aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor: of L L', by that of L
void lower_cholesky_inverse(Lowering& b) {
  const Dtype d = working(b.out_dtype());
  const Expr n = b.shape(0).back();
  const bool upper = b.flag(1);
  Val half = b.op("Trilu", {as_batch(b, b.in(0, d), b.shape(0)), b.size_scalar(b.expr(0))},
                  {attr("upper", upper)});
  if (upper) half = b.transpose(half, {0, 2, 1});
  const Val each = range(b, n);
  const Val eye = b.cast(b.op("Equal", {b.unsqueeze(each, {1}), each}), d);
  const Val right = b.op("Expand", {eye, b.op("Shape", {half})});
  const Val x = solution(b, eliminate(b, half, right, n), n);
  b.result(unbatched(b, b.op("MatMul", {b.transpose(x, {0, 2, 1}), x}), b.out_shape()));
}

// aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> (): gives nothing
void lower_check(Lowering&) {}

constexpr std::string_view kSingular =
    "a singular matrix gives infinities where PyTorch refuses it";

constexpr OpRow kRows[] = {
    {"aten._linalg_check_errors.default", lower_check, "nothing", kSingular},
    {"aten._linalg_det.default", lower_det, "Loop", "no factors"},
    {"aten._linalg_slogdet.default", lower_slogdet, "Loop", "no factors"},
    {"aten._linalg_solve_ex.default", lower_solve, "Loop", kSingular},
    {"aten.cholesky_inverse.default", lower_cholesky_inverse, "Loop", kSingular},
    {"aten.cholesky_solve.default", lower_cholesky_solve, "Loop", kSingular},
    {"aten.linalg_cholesky_ex.default", lower_cholesky, "Loop",
     "a matrix that is not positive gives NaN where PyTorch refuses it"},
    {"aten.linalg_inv_ex.default", lower_inv, "Loop", kSingular},
    {"aten.linalg_solve_triangular.default", lower_solve_triangular, "Loop", kSingular},
};

}  // namespace

std::span<const OpRow> linalg_ops() { return kRows; }

}  // namespace fairlead::onnx
