// Operators that cut, join, move or repeat dimensions.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "fairlead/aten/rules/shape_call.h"
#include "fairlead/graph/places.h"

namespace fairlead {
namespace {

// slice.Tensor(self, dim, start, end, step)
struct Sliced {
  std::size_t axis;
  Expr size, start, end, step;  // null places are open
};

std::optional<Sliced> read_slice(const ShapeCall& call) {
  if (!call.is_value(0)) return std::nullopt;
  const auto axis = call.axis(1, call.rank(0));
  if (!axis) return std::nullopt;
  Sliced s{*axis, call.shape(0)[*axis], call.integer(2), call.integer(3), call.integer(4)};
  if (s.step == nullptr) s.step = call.pool.constant(1);
  return s;
}

// Places count from the end where they are negative, and are cut to the dimension.
ResultShapes sliced(const ShapeCall& call) {
  const auto s = read_slice(call);
  if (!s || !is_const(s->step) || s->step->value < 1) return {};
  ExprPool& pool = call.pool;
  std::vector<Expr> shape = list_of(call.shape(0));
  Expr& size = shape[s->axis];
  if (const Span span = slice_span(pool, size, s->start, s->end, s->step); span.length != nullptr) {
    size = span.length;
    return {shape};
  }
  // A place whose sign is not known: it counts from the end where it is negative.
  const Expr zero = pool.constant(0);
  const auto place = [&](Expr e, Expr otherwise) {
    if (e == nullptr) return otherwise;
    if (is_const(e) && e->value > (std::int64_t{1} << 40)) return size;
    return pool.min(pool.max(pool.add(e, pool.mul(size, pool.less(e, zero))), zero), size);
  };
  const Expr start = place(s->start, zero), end = place(s->end, size);
  const Expr length = is_const(start, 0) ? end : pool.max(pool.sub(end, start), zero);
  size = pool.ceildiv(length, s->step);
  return {shape};
}

// What the indices of index.Tensor are when broadcast together.
std::vector<Expr> broadcast_indices(const ShapeCall& call, const CheckedList<Arg>& indices) {
  std::vector<Expr> shape;
  for (const Arg& index : indices) {
    if (index.kind != ArgKind::kValue) continue;
    shape = broadcast(call.pool, shape, list_of(call.graph.values[index.value].shape));
  }
  return shape;
}

// index.Tensor(self, indices): together where the first of them is, in front where they are apart
ResultShapes indexed(const ShapeCall& call) {
  if (!call.is_value(0) || !call.has(1)) return {};
  const Shape& x = call.shape(0);
  const CheckedList<Arg>& indices = call.node.args[1].items;
  std::vector<Expr> shape;
  std::size_t first = 0, last = 0, given = 0;
  for (std::size_t axis = 0; axis < x.size(); ++axis) {
    if (axis >= indices.size() || indices[axis].kind != ArgKind::kValue) {
      shape.push_back(x[axis]);
      continue;
    }
    const Dtype dtype = call.graph.values[indices[axis].value].dtype;
    if (dtype == Dtype::kBool || dtype == Dtype::kUint8) return {};
    if (given++ == 0) first = axis;
    last = axis;
  }
  if (given == 0) return {};
  const bool together = last - first + 1 == given;
  const std::vector<Expr> picked = broadcast_indices(call, indices);
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(together ? first : 0);
  shape.insert(at, picked.begin(), picked.end());
  return {shape};
}

// index_select(self, dim, index)
ResultShapes selected(const ShapeCall& call) {
  if (!call.is_value(0) || !call.is_value(2) || call.rank(0) == 0) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  const auto axis = call.axis(1, shape.size());
  if (!axis) return {};
  shape[*axis] = call.rank(2) == 0 ? call.pool.constant(1) : call.shape(2)[0];
  return {shape};
}

// The tensors of a list; nullopt where there is something else.
std::optional<std::vector<std::vector<Expr>>> list_shapes(const ShapeCall& call) {
  std::vector<std::vector<Expr>> shapes;
  if (!call.has(0)) return std::nullopt;
  for (const Arg& item : call.node.args[0].items) {
    if (item.kind != ArgKind::kValue) return std::nullopt;
    shapes.push_back(list_of(call.graph.values[item.value].shape));
  }
  return shapes;
}

// cat(tensors, dim): the sum there, as elsewhere otherwise; a tensor of shape [0] is passed over.
ResultShapes joined(const ShapeCall& call) {
  const auto shapes = list_shapes(call);
  if (!shapes) return {};
  std::vector<Expr> all;
  for (const std::vector<Expr>& own : *shapes) {
    if (own.size() == 1 && is_const(own[0], 0)) continue;
    const auto axis = call.has(1) ? call.axis(1, own.size()) : std::optional<std::size_t>(0);
    if (!axis) return {};
    if (all.empty()) {
      all = own;
      continue;
    }
    if (own.size() != all.size()) return {};
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (k == *axis) {
        all[k] = call.pool.add(all[k], own[k]);
      } else if (is_const(own[k])) {
        all[k] = own[k];  // they are equal
      }
    }
  }
  return {all};
}

// stack(tensors, dim)
ResultShapes stacked(const ShapeCall& call) {
  const auto shapes = list_shapes(call);
  if (!shapes || shapes->empty()) return {};
  std::vector<Expr> shape = shapes->front();
  const auto axis = call.has(1) ? call.axis(1, shape.size() + 1) : std::optional<std::size_t>(0);
  if (!axis) return {};
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis),
               call.pool.constant(static_cast<std::int64_t>(shapes->size())));
  return {shape};
}

// constant_pad_nd(self, pad): pairs of paddings from the last dimension on
ResultShapes padded(const ShapeCall& call) {
  const auto pads = call.sizes(1);
  if (!call.is_value(0) || !pads || pads->size() > 2 * call.rank(0) || pads->size() % 2 != 0) {
    return {};
  }
  std::vector<Expr> shape = list_of(call.shape(0));
  for (std::size_t k = 0; k < pads->size(); ++k) {
    Expr& size = shape[shape.size() - 1 - k / 2];
    size = call.pool.add(size, (*pads)[k]);
  }
  return {shape};
}

// repeat(self, repeats): new dimensions in front
ResultShapes repeated(const ShapeCall& call) {
  auto shape = call.sizes(1);
  if (!call.is_value(0) || !shape || shape->size() < call.rank(0)) return {};
  const std::size_t more = shape->size() - call.rank(0);
  for (std::size_t k = more; k < shape->size(); ++k) {
    (*shape)[k] = call.pool.mul(call.shape(0)[k - more], (*shape)[k]);
  }
  return {std::move(*shape)};
}

// flatten(self, start_dim, end_dim)
ResultShapes flattened(const ShapeCall& call) {
  if (!call.is_value(0) || call.rank(0) == 0) return {};
  const Shape& shape = call.shape(0);
  const auto first = call.axis(1, shape.size()), last = call.axis(2, shape.size());
  if (!first || !last) return {};
  std::vector<Expr> flat(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(*first) + 1);
  for (std::size_t k = *first + 1; k < shape.size(); ++k) {
    if (k <= *last) {
      flat[*first] = call.pool.mul(flat[*first], shape[k]);
    } else {
      flat.push_back(shape[k]);
    }
  }
  return {flat};
}

// permute(self, dims)
ResultShapes permuted(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  const auto axes = call.axes(1, call.rank(0));
  if (!axes || axes->size() != call.rank(0)) return {};
  std::vector<Expr> shape;
  for (const std::size_t axis : *axes) shape.push_back(call.shape(0)[axis]);
  return {shape};
}

ResultShapes swapped(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  if (shape.empty()) return {shape};
  const auto a = call.axis(1, shape.size()), b = call.axis(2, shape.size());
  if (!a || !b) return {};
  std::swap(shape[*a], shape[*b]);
  return {shape};
}

ResultShapes turned(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  std::reverse(shape.begin(), shape.end());
  return {shape};
}

ResultShapes unsqueezed(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  const auto axis = call.axis(1, shape.size() + 1);
  if (!axis) return {};
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), call.pool.constant(1));
  return {shape};
}

// squeeze(self, dims): sizes that are 1, and those that were in every run
ResultShapes squeezed(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  const auto named = call.axes(1, call.rank(0));
  if (!named) return {};
  const auto gone = squeezed_axes(call.shape(0), {named->begin(), named->end()}, call.out_rank);
  std::vector<Expr> shape;
  for (std::size_t axis = 0; axis < call.rank(0); ++axis) {
    const auto place = static_cast<std::int64_t>(axis);
    if (std::find(gone.begin(), gone.end(), place) == gone.end()) {
      shape.push_back(call.shape(0)[axis]);
    }
  }
  return {shape};
}

// select(self, dim, index), unbind(self, dim)
template <std::size_t place>
ResultShapes without(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  const auto axis =
      call.has(place) ? call.axis(place, shape.size()) : std::optional<std::size_t>(0);
  if (!axis || shape.empty()) return {};
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*axis));
  return ResultShapes(call.count, shape);
}

// split(self, size, dim): equal parts, and what is left
ResultShapes split(const ShapeCall& call) {
  if (!call.is_value(0) || call.integer(1) == nullptr || call.count == 0) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  const auto axis = call.has(2) ? call.axis(2, shape.size()) : std::optional<std::size_t>(0);
  if (!axis || shape.empty()) return {};
  const Expr all = shape[*axis], part = call.integer(1);
  shape[*axis] = part;
  ResultShapes shapes(call.count, shape);
  const auto before = static_cast<std::int64_t>(call.count) - 1;
  shapes.back()[*axis] = call.pool.sub(all, call.pool.mul(part, call.pool.constant(before)));
  return shapes;
}

// split_with_sizes(self, sizes, dim)
ResultShapes split_as_told(const ShapeCall& call) {
  const auto sizes = call.sizes(1);
  if (!call.is_value(0) || !sizes) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  const auto axis = call.has(2) ? call.axis(2, shape.size()) : std::optional<std::size_t>(0);
  if (!axis || shape.empty()) return {};
  ResultShapes shapes;
  for (const Expr size : *sizes) {
    shape[*axis] = size;
    shapes.push_back(shape);
  }
  return shapes;
}

// diagonal(self, offset, dim1, dim2): behind the other dimensions
ResultShapes diagonal(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  const Shape& x = call.shape(0);
  const auto offset = call.fixed(1);
  const auto a = call.axis(2, x.size()), b = call.axis(3, x.size());
  if (!offset || !a || !b) return {};
  std::vector<Expr> shape;
  for (std::size_t axis = 0; axis < x.size(); ++axis) {
    if (axis != *a && axis != *b) shape.push_back(x[axis]);
  }
  ExprPool& pool = call.pool;
  shape.push_back(pool.min(pool.add(x[*a], pool.constant(std::min<std::int64_t>(*offset, 0))),
                           pool.sub(x[*b], pool.constant(std::max<std::int64_t>(*offset, 0)))));
  return {shape};
}

// A number that is whole, as an expression; null where it is not.
Expr whole(ExprPool& pool, const Arg& arg) {
  if (arg.kind == ArgKind::kInt) return arg.expr;
  const double factor = arg.number;
  if (arg.kind != ArgKind::kFloat || arg.power != 1 || factor != std::floor(factor) ||
      std::abs(factor) > 1e12) {
    return nullptr;
  }
  const Expr constant = pool.constant(static_cast<std::int64_t>(factor));
  return arg.expr == nullptr ? constant : pool.mul(arg.expr, constant);
}

// A number in double precision; null where it is none that is known.
Expr real_of(ExprPool& pool, const Arg& arg) {
  if (arg.kind == ArgKind::kInt) return pool.to_real(arg.expr);
  if (arg.kind != ArgKind::kFloat || arg.power != 1) return nullptr;
  if (arg.expr == nullptr) return pool.real(arg.number);
  const Expr e = pool.to_real(arg.expr);
  return arg.number == 1 ? e : pool.real_op(ExprKind::kRealMul, pool.real(arg.number), e);
}

// arange(0, size, 0.7) counts in double precision.
template <std::size_t numbers>
ResultShapes steps_of_reals(const ShapeCall& call) {
  ExprPool& pool = call.pool;
  const Expr start = numbers == 1 ? pool.real(0) : real_of(pool, call.node.args[0]);
  const Expr end = real_of(pool, call.node.args[numbers == 1 ? 0 : 1]);
  const Expr step = numbers < 3 ? pool.real(1) : real_of(pool, call.node.args[2]);
  if (start == nullptr || end == nullptr || step == nullptr) return {};
  const Expr way = pool.real_op(ExprKind::kRealSub, end, start);
  return {{pool.rounded(ExprKind::kCeil, pool.real_op(ExprKind::kRealDiv, way, step))}};
}

// arange(start, end, step): how many steps there are, up or down
template <std::size_t numbers>
ResultShapes steps(const ShapeCall& call) {
  if (call.node.args.size() < numbers) return {};
  ExprPool& pool = call.pool;
  const Expr start = numbers == 1 ? pool.constant(0) : whole(pool, call.node.args[0]);
  const Expr end = whole(pool, call.node.args[numbers == 1 ? 0 : 1]);
  const Expr step = numbers < 3 ? pool.constant(1) : whole(pool, call.node.args[2]);
  if (start == nullptr || end == nullptr || step == nullptr) return steps_of_reals<numbers>(call);
  if (is_const(step, 0)) return {};
  if (!is_const(step)) return {{pool.ceildiv(pool.sub(end, start), step)}};
  const Expr way = step->value > 0 ? pool.sub(end, start) : pool.sub(start, end);
  return {{pool.ceildiv(way, step->value > 0 ? step : pool.neg(step))}};
}

// glu(self, dim): the first half, and the gates
ResultShapes halved(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  const auto axis = call.axis(1, shape.size());
  if (!axis) return {};
  shape[*axis] = call.pool.floordiv(shape[*axis], call.pool.constant(2));
  return {shape};
}

// grid_sampler(input, grid): batch and channels, and the places of the grid
ResultShapes sampled(const ShapeCall& call) {
  if (!call.is_value(0) || !call.is_value(1) || call.rank(0) < 3 || call.rank(1) < 3) return {};
  std::vector<Expr> shape = {call.shape(0)[0], call.shape(0)[1]};
  for (std::size_t k = 1; k + 1 < call.rank(1); ++k) shape.push_back(call.shape(1)[k]);
  return {shape};
}

// lstm, gru, rnn (input, hx, ...): as many steps, how wide the parameters say; the states as given
ResultShapes recurrent(const ShapeCall& call) {
  if (!call.is_value(0) || !call.has(1)) return {};
  ResultShapes shapes = {list_of(call.shape(0))};
  if (shapes[0].size() < 2) return {};
  shapes[0].back() = nullptr;
  if (call.is_value(1)) shapes.push_back(list_of(call.shape(1)));
  for (const Arg& state : call.node.args[1].items) {
    if (state.kind != ArgKind::kValue) return {};
    shapes.push_back(list_of(call.graph.values[state.value].shape));
  }
  return shapes;
}

// _pdist_forward(self): as many as there are pairs
ResultShapes pairs(const ShapeCall& call) {
  if (!call.is_value(0) || call.rank(0) != 2) return {};
  ExprPool& pool = call.pool;
  const Expr n = call.shape(0)[0];
  return {{pool.floordiv(pool.mul(n, pool.sub(n, pool.constant(1))), pool.constant(2))}};
}

// view_as_real(self): pairs of numbers
ResultShapes parts(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  shape.push_back(call.pool.constant(2));
  return {shape};
}

ResultShapes complex_of_parts(const ShapeCall& call) {
  if (!call.is_value(0) || call.rank(0) == 0) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  shape.pop_back();
  return {shape};
}

// _fft_r2c(self, dim, normalization, onesided): half of the last of them
ResultShapes real_fft(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  const auto axes = call.axes(1, shape.size());
  if (!axes || axes->empty()) return {};
  ExprPool& pool = call.pool;
  Expr& last = shape[axes->back()];
  if (call.flag(3)) last = pool.add(pool.floordiv(last, pool.constant(2)), pool.constant(1));
  return {shape};
}

// _fft_c2r(self, dim, normalization, last_dim_size)
ResultShapes inverse_fft(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  const auto axes = call.axes(1, shape.size());
  if (!axes || axes->empty()) return {};
  shape[axes->back()] = call.integer(3);
  return {shape};
}

constexpr ShapeRow kRows[] = {
    {"aten._fft_c2r.default", inverse_fft},
    {"aten._fft_r2c.default", real_fft},
    {"aten._pdist_forward.default", pairs},
    {"aten._unsafe_index.Tensor", indexed},
    {"aten.arange.default", steps<1>},
    {"aten.arange.start", steps<2>},
    {"aten.arange.start_step", steps<3>},
    {"aten.cat.default", joined},
    {"aten.constant_pad_nd.default", padded},
    {"aten.diagonal.default", diagonal},
    {"aten.diagonal_copy.default", diagonal},
    {"aten.flatten.using_ints", flattened},
    {"aten.glu.default", halved},
    {"aten.grid_sampler_2d.default", sampled},
    {"aten.grid_sampler_3d.default", sampled},
    {"aten.gru.input", recurrent},
    {"aten.index.Tensor", indexed},
    {"aten.index_select.default", selected},
    {"aten.lstm.input", recurrent},
    {"aten.pad.default", padded},
    {"aten.permute.default", permuted},
    {"aten.permute_copy.default", permuted},
    {"aten.reflection_pad1d.default", padded},
    {"aten.reflection_pad2d.default", padded},
    {"aten.reflection_pad3d.default", padded},
    {"aten.repeat.default", repeated},
    {"aten.replication_pad1d.default", padded},
    {"aten.replication_pad2d.default", padded},
    {"aten.replication_pad3d.default", padded},
    {"aten.rnn_relu.input", recurrent},
    {"aten.rnn_tanh.input", recurrent},
    {"aten.select.int", without<1>},
    {"aten.select_copy.int", without<1>},
    {"aten.slice.Tensor", sliced},
    {"aten.slice_copy.Tensor", sliced},
    {"aten.split.Tensor", split},
    {"aten.split_copy.Tensor", split},
    {"aten.split_with_sizes.default", split_as_told},
    {"aten.split_with_sizes_copy.default", split_as_told},
    {"aten.squeeze.default", squeezed},
    {"aten.squeeze.dim", squeezed},
    {"aten.squeeze.dims", squeezed},
    {"aten.squeeze_copy.default", squeezed},
    {"aten.squeeze_copy.dim", squeezed},
    {"aten.squeeze_copy.dims", squeezed},
    {"aten.stack.default", stacked},
    {"aten.t.default", turned},
    {"aten.t_copy.default", turned},
    {"aten.transpose.int", swapped},
    {"aten.transpose_copy.int", swapped},
    {"aten.unbind.int", without<1>},
    {"aten.unbind_copy.int", without<1>},
    {"aten.unsafe_split.Tensor", split},
    {"aten.unsafe_split_with_sizes.default", split_as_told},
    {"aten.unsqueeze.default", unsqueezed},
    {"aten.unsqueeze_copy.default", unsqueezed},
    {"aten.view_as_complex.default", complex_of_parts},
    {"aten.view_as_real.default", parts},
};

}  // namespace

std::span<const ShapeRow> place_shapes() { return kRows; }

// To the end, to a given place, to that place or the end: the last is tried first.
std::vector<Expr> size_hints(ExprPool& pool, const Graph& graph, const Node& node) {
  std::vector<Expr> hints;
  if (node.op != Op::slice_Tensor) return hints;
  const auto s = read_slice({pool, graph, node, 1, 0});
  if (!s) return hints;
  const Span exact = slice_span(pool, s->size, s->start, s->end, s->step);
  if (exact.length != nullptr) hints.push_back(exact.length);
  if (exact.start == nullptr || (s->start != nullptr && least_value(pool, s->start) < 0)) {
    return hints;
  }
  const auto up_to = [&](Expr end) {
    const Expr length = pool.ceildiv(pool.sub(end, exact.start), s->step);
    if (hints.empty() || hints.back() != length) hints.push_back(length);
  };
  const bool open = s->end == nullptr || (is_const(s->end) && s->end->value > INT32_MAX);
  if (!open && least_value(pool, s->end) >= 0) up_to(s->end);
  up_to(s->size);
  return hints;
}

}  // namespace fairlead
