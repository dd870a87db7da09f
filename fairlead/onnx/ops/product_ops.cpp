// Products and distances of vectors and matrices beside the plain matrix product.
#include <cmath>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"

namespace fairlead::onnx {
namespace {

Num matmul(Num x, Num y) { return node("MatMul", x, y); }

Num reduce(std::string_view op, Num x, Ints axes, bool keepdim = false) {
  return {x.b, x.b->reduce(op, x, std::move(axes), keepdim)};
}

// beta * self + alpha * product; self counts for nothing where beta is 0, even where it is NaN.
void scaled_sum(Lowering& b, Num product, std::size_t beta, std::size_t alpha) {
  if (b.has(alpha) && b.number(alpha) != 1) product = product * b.number(alpha);
  const double scale = b.number(beta, 1);
  if (scale == 0) return b.result(Num{&b, b.expand(product, b.out_shape(), b.out_shape())});
  b.result((scale == 1 ? arg(b) : arg(b) * scale) + product);
}

// aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor
void lower_addmv(Lowering& b) { scaled_sum(b, matmul(arg(b, 1), arg(b, 2)), 3, 4); }

Num outer(Num x, Num y) { return Num{x.b, x.b->unsqueeze(x, {1})} * y; }

// aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
void lower_addr(Lowering& b) { scaled_sum(b, outer(arg(b, 1), arg(b, 2)), 3, 4); }

// aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) ->
// Tensor
void lower_addbmm(Lowering& b) {
  scaled_sum(b, reduce("ReduceSum", matmul(arg(b, 1), arg(b, 2)), {0}), 3, 4);
}

// aten::ger(Tensor self, Tensor vec2) -> Tensor; outer alike
void lower_outer(Lowering& b) { b.result(outer(arg(b), arg(b, 1))); }

void lower_vdot(Lowering& b) { b.result(matmul(arg(b), arg(b, 1))); }

// aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor; cross alike
//
// Its parts are (1, 2, 0) of x times (2, 0, 1) of y, less the same the other way round.
void lower_cross(Lowering& b) {
  const Dtype d = work_dtype(b.out_dtype());
  std::int64_t axis = b.rank(0) - 1;
  if (b.has(2)) {
    axis = b.axis(2, b.out_rank()) - (b.out_rank() - b.rank(0));
  } else if (b.node().op == "aten.cross.default") {
    axis = 0;
    while (axis + 1 < b.rank(0) && !is_const(b.shape(0)[static_cast<std::size_t>(axis)], 3)) ++axis;
  }
  const std::int64_t back = axis - b.rank(0);  // counted from the end, the same for both
  const auto turned = [&](std::size_t i, std::initializer_list<std::int64_t> order) {
    return Num{&b, b.op("Gather", {b.in(i, d), b.ints(order)}, {attr("axis", back)})};
  };
  b.result(turned(0, {1, 2, 0}) * turned(1, {2, 0, 1}) -
           turned(0, {2, 0, 1}) * turned(1, {1, 2, 0}));
}

// The p-norm over the axes.
Num norm(Num x, double p, Ints axes) {
  if (p == 2) return reduce("ReduceL2", x, std::move(axes));
  const Num size = node("Abs", x);
  if (p == 1) return reduce("ReduceSum", size, std::move(axes));
  if (p == 0) return reduce("ReduceSum", cast(!(x == 0.0), x.dtype()), std::move(axes));
  if (std::isinf(p)) return reduce(p > 0 ? "ReduceMax" : "ReduceMin", size, std::move(axes));
  return node("Pow", reduce("ReduceSum", node("Pow", size, p), std::move(axes)), 1 / p);
}

// aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor
void lower_dist(Lowering& b) {
  const Num gap = arg(b) - arg(b, 1);
  const int rank = std::max(b.rank(0), b.rank(1));
  Ints axes;
  for (int k = 0; k < rank; ++k) axes.push_back(k);
  b.result(rank == 0 ? node("Abs", gap) : norm(gap, b.number(2, 2), axes));
}

// aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor; cdist alike
void lower_cdist(Lowering& b) {
  const Num x = {&b, b.unsqueeze(arg(b), {-2})}, y = {&b, b.unsqueeze(arg(b, 1), {-3})};
  b.result(norm(x - y, b.number(2, 2), {b.out_rank()}));
}

// aten::_euclidean_dist(Tensor x1, Tensor x2) -> Tensor: by a matrix product, as PyTorch does
void lower_euclidean_dist(Lowering& b) {
  const Num x = cast(arg(b), Dtype::kFloat64), y = cast(arg(b, 1), Dtype::kFloat64);
  Ints perm;
  for (int k = 0; k < b.rank(1); ++k) perm.push_back(k);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const Num turned = {&b, b.transpose(y, perm)};
  const Num squares = reduce("ReduceSumSquare", x, {b.rank(0) - 1}, true) +
                      reduce("ReduceSumSquare", turned, {b.rank(1) - 2}, true);
  b.result(node("Sqrt", max(squares - 2.0 * matmul(x, turned), 0)));
}

// aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor
void lower_einsum(Lowering& b) {
  const std::string equation(b.text(0));
  for (const char c : equation) {
    // Letters of both cases are different in PyTorch and not in every runtime.
    if (c >= 'A' && c <= 'Z') b.unsupported("an equation with capital letters");
  }
  const Dtype wide =
      dtype_size(b.out_dtype()) < 4 && is_float(b.out_dtype()) ? Dtype::kFloat32 : b.out_dtype();
  Inputs inputs = b.ins(1);
  for (Val& v : inputs) v = b.cast(v, wide);
  b.result(b.op("Einsum", inputs, {attr("equation", std::string_view(equation))}));
}

constexpr OpRow kRows[] = {
    {"aten._cdist_forward.default", lower_cdist, "Sub, ReduceL2", ""},
    {"aten._euclidean_dist.default", lower_euclidean_dist, "MatMul, Sqrt in float64", ""},
    {"aten.addbmm.default", lower_addbmm, "MatMul, ReduceSum, Add", ""},
    {"aten.addmv.default", lower_addmv, "MatMul, Add", ""},
    {"aten.addr.default", lower_addr, "Mul, Add", ""},
    {"aten.cdist.default", lower_cdist, "Sub, ReduceL2", ""},
    {"aten.cross.default", lower_cross, "Gather, Mul, Sub", ""},
    {"aten.dist.default", lower_dist, "Sub, ReduceL2", ""},
    {"aten.einsum.default", lower_einsum, "Einsum", "equations of small letters"},
    {"aten.ger.default", lower_outer, "Unsqueeze, Mul", ""},
    {"aten.linalg_cross.default", lower_cross, "Gather, Mul, Sub", ""},
    {"aten.outer.default", lower_outer, "Unsqueeze, Mul", ""},
    {"aten.vdot.default", lower_vdot, "MatMul", ""},
};

}  // namespace

std::span<const OpRow> product_ops() { return kRows; }

}  // namespace fairlead::onnx
