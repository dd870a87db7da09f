// Products and distances of vectors and matrices beside the plain matrix product.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/nan_forms.h"
#include "fairlead/onnx/ops/product_forms.h"

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
  if (std::isinf(p)) return {x.b, extreme(*x.b, p > 0, size, axes, false)};
  return node("Pow", reduce("ReduceSum", node("Pow", size, p), std::move(axes)), 1 / p);
}

// aten::_pdist_forward(Tensor self, float p=2) -> Tensor: the distances of every pair of rows
void lower_pdist(Lowering& b) {
  const Num x = arg(b);
  const Num gap = Num{&b, b.unsqueeze(x, {1})} - Num{&b, b.unsqueeze(x, {0})};
  const Num all = norm(gap, b.number(1, 2), {2});
  const Expr n = b.shape(0)[0];
  const Val ones = b.expand(b.scalar(1, Dtype::kInt64), {}, {n, n});
  const Val above = b.op("Trilu", {ones, b.size_scalar(b.expr(1))}, {attr("upper", 1)});
  const Val pairs = b.transpose(b.op("NonZero", {above}), {1, 0});
  b.result(b.op("GatherND", {all, pairs}));
}

// aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3,
//   int[] sumdim, int unroll_dim=1) -> Tensor
void lower_trilinear(Lowering& b) {
  const auto wide = [&](std::size_t i) {
    const int rank = b.rank(i) + static_cast<int>(b.constant_ints(i + 3).size());
    std::vector<std::int64_t> axes = b.axes(i + 3, rank);
    const Num x = arg(b, i);
    return axes.empty() ? x : Num{&b, b.unsqueeze(x, axes)};
  };
  const int rank = b.rank(0) + static_cast<int>(b.constant_ints(3).size());
  b.result(reduce("ReduceSum", wide(0) * wide(1) * wide(2), b.axes(6, rank)));
}

// Rows (along the first axis) whose norm is greater than `most` are scaled down to it.
Num renormed(Num rows, double p, double most, std::vector<std::int64_t> axes) {
  Num size = norm(rows, p, axes);
  size = {rows.b, rows.b->unsqueeze(size, std::move(axes))};
  return rows * where(size > most, most / (size + 1e-7), size.is(1));
}

std::vector<std::int64_t> other_axes(std::int64_t axis, int rank) {
  std::vector<std::int64_t> axes;
  for (std::int64_t k = 0; k < rank; ++k) {
    if (k != axis) axes.push_back(k);
  }
  return axes;
}

// aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor
void lower_renorm(Lowering& b) {
  b.result(renormed(arg(b), b.number(1), b.number(3), other_axes(b.axis(2), b.rank(0))));
}

// aten::embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor:
// only the rows that are asked for
void lower_embedding_renorm(Lowering& b) {
  const Num rows = arg(b);
  const Expr n = b.shape(0)[0];
  const Val asked = b.op("Reshape", {b.in(1, Dtype::kInt64), b.ints({-1})});
  const Val none = b.expand(b.scalar(0, Dtype::kInt32), {}, {n});
  const Val one = b.op("Expand", {b.scalar(1, Dtype::kInt32), b.op("Shape", {asked})});
  const Val marks = b.op("ScatterElements", {none, asked, one}, {attr("axis", 0)});
  const Val touched = b.unsqueeze(b.cast(marks, Dtype::kBool), {1});
  b.result(where({&b, touched}, renormed(rows, b.number(3), b.number(2), {1}), rows));
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

using Labels = std::string;

// The operand with its labels in this order; those that it does not have are left out, and several
// of one group become one dimension.
Val arranged(Lowering& b, Val v, const Labels& own, const std::map<char, Expr>& sizes,
             const Labels& batch, const Labels& first, const Labels& second) {
  Ints perm;
  Shape from, to;
  for (const Labels* group : {&batch, &first, &second}) {
    Expr merged = b.expr(1);
    for (const char c : *group) {
      perm.push_back(static_cast<std::int64_t>(own.find(c)));
      from.push_back(sizes.at(c));
      if (group == &batch) to.push_back(sizes.at(c));
      merged = b.pool().mul(merged, sizes.at(c));
    }
    if (group != &batch) to.push_back(merged);
  }
  return b.reshape(b.transpose(v, perm), from, to);
}

// Two operands as MatMul, for a runtime that has no Einsum of nothing. No value where the equation
// has another form, or nothing can be empty: not even an input, which the contract does not have
// empty (may_be_empty), because the whole process would end by it.
std::optional<Val> as_matmul(Lowering& b, const std::string& equation, const Inputs& inputs) {
  if (!b.avoids(Fault::kEinsumOfNothing)) return std::nullopt;
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  if (inputs.size() != 2 || arrow == std::string::npos || equation.find('.') != std::string::npos) {
    return std::nullopt;
  }
  const Labels spaced[] = {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1),
                           equation.substr(arrow + 2)};
  Labels parts[3];
  for (int k = 0; k < 3; ++k) {
    for (const char c : spaced[k]) {
      if (c == ' ') continue;
      if (parts[k].find(c) != std::string::npos) return std::nullopt;  // a diagonal
      parts[k] += c;
    }
  }
  std::map<char, Expr> sizes;
  bool ends = false;
  for (std::size_t k = 0; k < 2; ++k) {
    const Shape& shape = b.graph().values[b.node().args[1].items[k].value].shape;
    if (parts[k].size() != shape.size()) {
      b.unsupported("expected an equation with a letter for each axis, got '" + equation + "'");
    }
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const auto [it, fresh] = sizes.emplace(parts[k][axis], shape[axis]);
      if (!fresh && it->second != shape[axis]) return std::nullopt;  // broadcast, maybe
      ends = ends || !b.pool().never_below_zero(b.pool().sub(shape[axis], b.expr(1)));
    }
  }
  for (const char c : parts[2]) {
    if (!sizes.contains(c)) {
      b.unsupported("expected an equation whose results are axes of its operands, got '" +
                    equation + "'");
    }
  }
  if (!ends) return std::nullopt;
  const auto has = [&](int k, char c) { return parts[k].find(c) != std::string::npos; };
  Labels batch, left, right, summed;
  for (const auto& [c, size] : sizes) {
    const bool both = has(0, c) && has(1, c), kept = has(2, c);
    if (!both && !kept) return std::nullopt;  // summed alone
    (both ? (kept ? batch : summed) : has(0, c) ? left : right) += c;
  }
  const Val multiplied =
      product(b, arranged(b, inputs[0], parts[0], sizes, batch, left, summed),
              arranged(b, inputs[1], parts[1], sizes, batch, summed, right), ends);
  const Labels order = batch + left + right;
  Shape from, to;
  Expr rows = b.expr(1), columns = b.expr(1);
  for (const char c : batch) from.push_back(sizes.at(c));
  for (const char c : left) rows = b.pool().mul(rows, sizes.at(c));
  for (const char c : right) columns = b.pool().mul(columns, sizes.at(c));
  from.push_back(rows);
  from.push_back(columns);
  for (const char c : order) to.push_back(sizes.at(c));
  Ints perm;
  for (const char c : parts[2]) perm.push_back(static_cast<std::int64_t>(order.find(c)));
  return b.transpose(b.reshape(multiplied, from, to), perm);
}

void lower_einsum(Lowering& b) { b.result(einsum(b, b.ins(1), b.out_dtype())); }

constexpr OpRow kRows[] = {
    {"aten._cdist_forward.default", lower_cdist, "Sub, ReduceL2", ""},
    {"aten._euclidean_dist.default", lower_euclidean_dist, "MatMul, Sqrt in float64", ""},
    {"aten._pdist_forward.default", lower_pdist, "Sub, ReduceL2, GatherND", "compares every pair"},
    {"aten._trilinear.default", lower_trilinear, "Mul, ReduceSum", ""},
    {"aten.addbmm.default", lower_addbmm, "MatMul, ReduceSum, Add", ""},
    {"aten.addmv.default", lower_addmv, "MatMul, Add", ""},
    {"aten.addr.default", lower_addr, "Mul, Add", ""},
    {"aten.cdist.default", lower_cdist, "Sub, ReduceL2", ""},
    {"aten.cross.default", lower_cross, "Gather, Mul, Sub", ""},
    {"aten.dist.default", lower_dist, "Sub, ReduceL2", ""},
    {"aten.einsum.default", lower_einsum, "Einsum; MatMul where a dimension may be empty", ""},
    {"aten.embedding_renorm.default", lower_embedding_renorm, "ReduceL2, Where, Mul", ""},
    {"aten.ger.default", lower_outer, "Unsqueeze, Mul", ""},
    {"aten.linalg_cross.default", lower_cross, "Gather, Mul, Sub", ""},
    {"aten.outer.default", lower_outer, "Unsqueeze, Mul", ""},
    {"aten.renorm.default", lower_renorm, "ReduceL2, Where, Mul", ""},
    {"aten.vdot.default", lower_vdot, "MatMul", ""},
};
}  // namespace

// aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor
//
// Letters of both cases are different in PyTorch and not in every runtime: capital ones become
// small ones that are not in use. Kernels are there for float, double and the two common integers.
Val einsum(Lowering& b, Inputs inputs, Dtype d) {
  std::string equation(b.text(0));
  for (char& c : equation) {
    if (c < 'A' || c > 'Z') continue;
    char free = 'a';
    while (free <= 'z' && equation.find(free) != std::string::npos) ++free;
    if (free > 'z') b.unsupported("an equation with more letters than the alphabet has");
    const char capital = c;
    std::replace(equation.begin(), equation.end(), capital, free);
  }
  const bool narrow = dtype_size(d) < 4;
  const Dtype wide = !narrow ? d : is_float(d) ? Dtype::kFloat32 : Dtype::kInt64;
  for (Val& v : inputs) v = b.cast(v, wide);
  if (const std::optional<Val> product = as_matmul(b, equation, inputs)) return *product;
  return b.op("Einsum", inputs, {attr("equation", std::string_view(equation))});
}

std::span<const OpRow> product_ops() { return kRows; }

}  // namespace fairlead::onnx
