// Operators that are told the sizes of their results.
#include <algorithm>
#include <cmath>

#include "fairlead/aten/rules/shape_call.h"

namespace fairlead {
namespace {

template <std::size_t k>
ResultShapes given(const ShapeCall& call) {
  auto sizes = call.sizes(k);
  if (!sizes) return {};
  return {std::move(*sizes)};
}

template <std::size_t k>
ResultShapes one(const ShapeCall& call) {
  return {{call.integer(k)}};
}

ResultShapes number(const ShapeCall&) { return {{}}; }

ResultShapes eye(const ShapeCall& call) { return {{call.integer(0), call.integer(0)}}; }

ResultShapes eye_of_two(const ShapeCall& call) { return {{call.integer(0), call.integer(1)}}; }

// expand(self, size): -1 keeps the size
ResultShapes expanded(const ShapeCall& call) {
  auto sizes = call.sizes(1);
  if (!sizes || !call.is_value(0) || call.rank(0) > sizes->size()) return {};
  const Shape& own = call.shape(0);
  const std::size_t more = sizes->size() - own.size();
  for (std::size_t k = more; k < sizes->size(); ++k) {
    if (is_const((*sizes)[k], -1)) (*sizes)[k] = own[k - more];
  }
  return {std::move(*sizes)};
}

// view(self, size): the size that is -1 takes up what the others leave
ResultShapes viewed(const ShapeCall& call) {
  auto sizes = call.sizes(1);
  if (!sizes || !call.is_value(0)) return {};
  Expr* rest = nullptr;
  for (Expr& size : *sizes) {
    if (!is_const(size, -1)) continue;
    if (rest != nullptr) return {};
    rest = &size;
  }
  if (rest == nullptr) return {std::move(*sizes)};
  ExprPool& pool = call.pool;
  Expr all = pool.constant(1), others = pool.constant(1);
  for (const Expr e : call.shape(0)) all = pool.mul(all, e);
  for (const Expr& e : *sizes) {
    if (&e != rest) others = pool.mul(others, e);
  }
  if (is_const(others) && others->value < 1) return {};
  *rest = pool.floordiv(all, others);
  return {std::move(*sizes)};
}

// adaptive pools (self, output_size): the last sizes
ResultShapes last_sizes(const ShapeCall& call, const std::vector<Expr>& sizes) {
  if (!call.is_value(0) || call.rank(0) < sizes.size()) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  std::copy(sizes.begin(), sizes.end(), shape.end() - static_cast<std::ptrdiff_t>(sizes.size()));
  return {shape, shape};  // some have the indices, too
}

ResultShapes adaptive(const ShapeCall& call) {
  const auto sizes = call.sizes(1);
  return sizes ? last_sizes(call, *sizes) : ResultShapes{};
}

Expr scaled(ExprPool& pool, Expr x, const Arg& by) {
  if (by.kind != ArgKind::kFloat || by.expr != nullptr || by.power != 1) return nullptr;
  constexpr double kMost = 1 << 20;
  if (by.number == std::floor(by.number) && by.number <= kMost) {
    return pool.mul(x, pool.constant(static_cast<std::int64_t>(by.number)));
  }
  const Expr exact = pool.real_op(ExprKind::kRealMul, pool.to_real(x), pool.real(by.number));
  return pool.rounded(ExprKind::kFloor, exact);
}

// upsample(self, output_size, ..., scale_factors): one of the two is given
template <std::size_t factors>
ResultShapes upsampled(const ShapeCall& call) {
  if (const auto sizes = call.sizes(1)) return last_sizes(call, *sizes);
  if (!call.is_value(0) || !call.has(factors)) return {};
  const CheckedList<Arg>& scales = call.node.args[factors].items;
  if (scales.empty() || call.rank(0) < scales.size()) return {};
  std::vector<Expr> sizes;
  for (std::size_t k = 0; k < scales.size(); ++k) {
    const Expr x = call.shape(0)[call.rank(0) - scales.size() + k];
    sizes.push_back(scaled(call.pool, x, scales[k]));
  }
  return last_sizes(call, sizes);
}

constexpr ShapeRow kRows[] = {
    {"aten._adaptive_avg_pool2d.default", adaptive},
    {"aten._adaptive_avg_pool3d.default", adaptive},
    {"aten._reshape_alias.default", given<1>},
    {"aten._unsafe_view.default", viewed},
    {"aten._upsample_bicubic2d_aa.default", adaptive},
    {"aten._upsample_bicubic2d_aa.vec", upsampled<3>},
    {"aten._upsample_bilinear2d_aa.default", adaptive},
    {"aten._upsample_bilinear2d_aa.vec", upsampled<3>},
    {"aten._upsample_nearest_exact1d.default", adaptive},
    {"aten._upsample_nearest_exact1d.vec", upsampled<2>},
    {"aten._upsample_nearest_exact2d.default", adaptive},
    {"aten._upsample_nearest_exact2d.vec", upsampled<2>},
    {"aten._upsample_nearest_exact3d.default", adaptive},
    {"aten._upsample_nearest_exact3d.vec", upsampled<2>},
    {"aten.adaptive_avg_pool1d.default", adaptive},
    {"aten.adaptive_avg_pool2d.default", adaptive},
    {"aten.adaptive_avg_pool3d.default", adaptive},
    {"aten.adaptive_max_pool1d.default", adaptive},
    {"aten.adaptive_max_pool2d.default", adaptive},
    {"aten.adaptive_max_pool3d.default", adaptive},
    {"aten.as_strided.default", given<1>},
    {"aten.as_strided_copy.default", given<1>},
    {"aten.empty.memory_format", given<0>},
    {"aten.empty_permuted.default", given<0>},
    {"aten.empty_strided.default", given<0>},
    {"aten.expand.default", expanded},
    {"aten.expand_copy.default", expanded},
    {"aten.eye.default", eye},
    {"aten.eye.m", eye_of_two},
    {"aten.full.default", given<0>},
    {"aten.linspace.Scalar_Tensor", one<2>},
    {"aten.linspace.Tensor_Scalar", one<2>},
    {"aten.linspace.Tensor_Tensor", one<2>},
    {"aten.linspace.default", one<2>},
    {"aten.logspace.default", one<2>},
    {"aten.new_empty.default", given<1>},
    {"aten.new_empty_strided.default", given<1>},
    {"aten.new_full.default", given<1>},
    {"aten.new_ones.default", given<1>},
    {"aten.new_zeros.default", given<1>},
    {"aten.ones.default", given<0>},
    {"aten.rand.default", given<0>},
    {"aten.rand.generator", given<0>},
    {"aten.randint.default", given<1>},
    {"aten.randint.generator", given<1>},
    {"aten.randint.low", given<2>},
    {"aten.randint.low_generator", given<2>},
    {"aten.randn.default", given<0>},
    {"aten.randn.generator", given<0>},
    {"aten.randperm.default", one<0>},
    {"aten.randperm.generator", one<0>},
    {"aten.reshape.default", viewed},
    {"aten.scalar_tensor.default", number},
    {"aten.upsample_bicubic2d.default", adaptive},
    {"aten.upsample_bicubic2d.vec", upsampled<3>},
    {"aten.upsample_bilinear2d.default", adaptive},
    {"aten.upsample_bilinear2d.vec", upsampled<3>},
    {"aten.upsample_linear1d.default", adaptive},
    {"aten.upsample_linear1d.vec", upsampled<3>},
    {"aten.upsample_nearest1d.default", adaptive},
    {"aten.upsample_nearest1d.vec", upsampled<2>},
    {"aten.upsample_nearest2d.default", adaptive},
    {"aten.upsample_nearest2d.vec", upsampled<2>},
    {"aten.upsample_nearest3d.default", adaptive},
    {"aten.upsample_nearest3d.vec", upsampled<2>},
    {"aten.upsample_trilinear3d.default", adaptive},
    {"aten.upsample_trilinear3d.vec", upsampled<3>},
    {"aten.view.default", viewed},
    {"aten.view_copy.default", viewed},
    {"aten.zeros.default", given<0>},
};

}  // namespace

std::span<const ShapeRow> given_shapes() { return kRows; }

}  // namespace fairlead
