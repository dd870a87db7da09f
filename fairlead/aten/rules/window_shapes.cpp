// Convolutions, pools and their relatives: (x + 2*padding - dilation*(kernel - 1) - 1) // stride
// + 1.
#include "fairlead/aten/rules/shape_call.h"

namespace fairlead {
namespace {

// The integer of a list for this axis: of one that is shorter, its last.
Expr at(const ShapeCall& call, std::size_t k, std::size_t axis, Expr otherwise) {
  if (k >= call.node.args.size()) return otherwise;
  const Arg& list = call.node.args[k];
  if (list.kind == ArgKind::kInt) return list.expr;
  if (list.items.empty()) return otherwise;
  const Arg& item = list.items[axis < list.items.size() ? axis : list.items.size() - 1];
  return item.kind == ArgKind::kInt ? item.expr : otherwise;
}

struct Window {
  Expr kernel, stride, padding, dilation;
  bool ceil = false;

  // What a window takes of the input, less one.
  [[nodiscard]] Expr reach(ExprPool& pool) const {
    return pool.mul(dilation, pool.sub(kernel, pool.constant(1)));
  }
  // Whether its sums and products are numbers of 64 bits.
  [[nodiscard]] bool counts() const {
    constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
    const auto beyond = [](Expr e) {
      return is_const(e) && (e->value > kMost || e->value < -kMost);
    };
    return !beyond(kernel) && !beyond(stride) && !beyond(padding) && !beyond(dilation);
  }
};

Expr slide(ExprPool& pool, Expr x, const Window& w) {
  if ((is_const(w.stride) && w.stride->value < 1) || !w.counts()) return nullptr;
  const Expr one = pool.constant(1);
  const Expr both_sides = pool.mul(pool.constant(2), w.padding);
  Expr shift = pool.sub(pool.sub(both_sides, w.reach(pool)), one);
  // Rounded up, but the last window starts within the input or its left padding.
  if (w.ceil) {
    shift = pool.min(pool.add(shift, pool.sub(w.stride, one)), pool.sub(w.padding, one));
  }
  return pool.add(pool.floordiv(pool.add(x, shift), w.stride), one);
}

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
// batch and channels, then a formula for each dimension that windows slide along
ResultShapes convolution(const ShapeCall& call) {
  if (!call.is_value(0) || !call.is_value(1) || call.rank(1) < 3) return {};
  ExprPool& pool = call.pool;
  const Shape& weight = call.shape(1);
  const std::size_t spatial = weight.size() - 2;
  if (call.rank(0) < spatial + 1) return {};
  const bool transposed = call.flag(6);
  const Expr none = pool.constant(0), one = pool.constant(1);
  std::vector<Expr> shape = list_of(call.shape(0));
  const std::size_t first = shape.size() - spatial;
  // Transposed, the channels are those of all groups.
  shape[first - 1] = transposed ? pool.mul(weight[1], at(call, 8, 0, one)) : weight[0];
  for (std::size_t k = 0; k < spatial; ++k) {
    Expr& x = shape[first + k];
    const Window w{weight[k + 2], at(call, 3, k, one), at(call, 4, k, none), at(call, 5, k, one)};
    if (!w.counts()) return {};
    if (!transposed) {
      x = slide(pool, x, w);
      continue;
    }
    const Expr grown = pool.add(pool.add(at(call, 7, k, none), w.reach(pool)), one);
    const Expr cut = pool.mul(pool.constant(2), w.padding);
    x = pool.add(pool.mul(pool.sub(x, one), w.stride), pool.sub(grown, cut));
  }
  return {shape};
}

// (self, kernel_size, stride, padding, dilation or ceil_mode, ...); some have the indices, too
template <std::size_t spatial, bool largest>
ResultShapes pool(const ShapeCall& call) {
  if (!call.is_value(0) || call.rank(0) < spatial) return {};
  const Expr none = call.pool.constant(0), one = call.pool.constant(1);
  std::vector<Expr> shape = list_of(call.shape(0));
  for (std::size_t k = 0; k < spatial; ++k) {
    const Expr kernel = at(call, 1, k, one);
    const Window w{kernel, at(call, 2, k, kernel), at(call, 3, k, none),
                   largest ? at(call, 4, k, one) : one, call.flag(largest ? 5 : 4)};
    Expr& x = shape[shape.size() - spatial + k];
    x = slide(call.pool, x, w);
  }
  return {shape, shape};
}

// unfold(self, dimension, size, step)
ResultShapes unfold(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  const auto axis = call.axis(1, shape.size());
  const auto size = call.fixed(2), step = call.fixed(3);
  if (!axis || !size || !step) return {};
  ExprPool& pool = call.pool;
  const Expr width = pool.constant(*size);
  shape[*axis] =
      slide(pool, shape[*axis], {width, pool.constant(*step), pool.constant(0), pool.constant(1)});
  shape.push_back(width);
  return {shape};
}

// im2col(self, kernel_size, dilation, padding, stride): a column for each window
ResultShapes im2col(const ShapeCall& call) {
  if (!call.is_value(0) || call.rank(0) < 3) return {};
  ExprPool& pool = call.pool;
  std::vector<Expr> shape = list_of(call.shape(0));
  Expr windows = pool.constant(1), channels = shape[shape.size() - 3];
  for (std::size_t k = 0; k < 2; ++k) {
    const Expr one = pool.constant(1);
    const Window w{at(call, 1, k, one), at(call, 4, k, one), at(call, 3, k, pool.constant(0)),
                   at(call, 2, k, one)};
    const Expr slid = slide(pool, shape[shape.size() - 2 + k], w);
    if (slid == nullptr) return {};
    windows = pool.mul(windows, slid);
    channels = pool.mul(channels, w.kernel);
  }
  shape.resize(shape.size() - 3);
  shape.push_back(channels);
  shape.push_back(windows);
  return {shape};
}

// Blocks of channels become space: pixel_shuffle(self, factor), and back.
template <bool unshuffle>
ResultShapes shuffled(const ShapeCall& call) {
  const auto factor = call.fixed(1);
  if (!call.is_value(0) || call.rank(0) < 3 || !factor || *factor < 1) return {};
  ExprPool& pool = call.pool;
  std::vector<Expr> shape = list_of(call.shape(0));
  const Expr by = pool.constant(*factor), square = pool.mul(by, by);
  Expr& channels = shape[shape.size() - 3];
  channels = unshuffle ? pool.mul(channels, square) : pool.floordiv(channels, square);
  for (std::size_t k = shape.size() - 2; k < shape.size(); ++k) {
    shape[k] = unshuffle ? pool.floordiv(shape[k], by) : pool.mul(shape[k], by);
  }
  return {shape};
}

constexpr ShapeRow kRows[] = {
    {"aten._convolution.default", convolution},
    {"aten._convolution.deprecated", convolution},
    {"aten.avg_pool1d.default", pool<1, false>},
    {"aten.avg_pool2d.default", pool<2, false>},
    {"aten.avg_pool3d.default", pool<3, false>},
    {"aten.convolution.default", convolution},
    {"aten.im2col.default", im2col},
    {"aten.max_pool1d.default", pool<1, true>},
    {"aten.max_pool1d_with_indices.default", pool<1, true>},
    {"aten.max_pool2d.default", pool<2, true>},
    {"aten.max_pool2d_with_indices.default", pool<2, true>},
    {"aten.max_pool3d.default", pool<3, true>},
    {"aten.max_pool3d_with_indices.default", pool<3, true>},
    {"aten.pixel_shuffle.default", shuffled<false>},
    {"aten.pixel_unshuffle.default", shuffled<true>},
    {"aten.unfold.default", unfold},
    {"aten.unfold_copy.default", unfold},
};

}  // namespace

std::span<const ShapeRow> window_shapes() { return kRows; }

}  // namespace fairlead
