// (x + 2*padding - dilation*(kernel - 1) - 1) // stride + 1 and what its relatives make of it, and
// the lengths that views cut.
#include "fairlead/trace/size_hints.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "fairlead/graph/places.h"

namespace fairlead {
namespace {

std::int64_t at(const Arg& list, std::size_t axis, std::int64_t otherwise) {
  if (list.kind == ArgKind::kInt && is_const(list.expr)) return list.expr->value;
  if (list.items.empty()) return otherwise;
  const Arg& item = list.items[axis < list.items.size() ? axis : list.items.size() - 1];
  return item.kind == ArgKind::kInt && is_const(item.expr) ? item.expr->value : otherwise;
}

struct Window {
  ExprPool& pool;
  const Graph& graph;
  const Node& node;

  [[nodiscard]] const std::vector<Expr>& input() const {
    return graph.values[node.args[0].value].shape;
  }

  [[nodiscard]] Expr slide(Expr x, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                           std::int64_t dilation, bool ceil) const {
    std::int64_t shift = 2 * padding - dilation * (kernel - 1) - 1;
    // Rounded up, but the last window starts within the input or its left padding.
    if (ceil) shift = std::min(shift + stride - 1, padding - 1);
    return pool.add(pool.floordiv(pool.add(x, pool.constant(shift)), pool.constant(stride)),
                    pool.constant(1));
  }
};

std::size_t axis_of(const Arg& arg, std::size_t rank) {
  const std::int64_t axis = arg.expr->value;
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

// slice.Tensor(self, dim, start, end, step)
struct Sliced {
  std::size_t axis;
  Expr size, start, end, step;  // null places are open
};

std::optional<Sliced> read_slice(const Graph& graph, const Node& node) {
  if (node.args.size() < 5 || node.args[1].kind != ArgKind::kInt) return std::nullopt;
  const auto& shape = graph.values[node.args[0].value].shape;
  const auto place = [&](std::size_t k) {
    return node.args[k].kind == ArgKind::kInt ? node.args[k].expr : nullptr;
  };
  Sliced s{axis_of(node.args[1], shape.size()), nullptr, place(2), place(3), place(4)};
  s.size = shape.at(s.axis);
  if (s.step == nullptr) s.step = graph.pool->constant(1);
  return s;
}

// The last is tried first: to the end, to a given place, to that place or the end.
void slice_hints(ExprPool& pool, const Graph& graph, const Node& node, std::vector<Expr>& hints) {
  const auto s = read_slice(graph, node);
  if (!s) return;
  const Span exact = slice_span(pool, s->size, s->start, s->end, s->step);
  if (exact.length != nullptr) hints.push_back(exact.length);
  if (exact.start == nullptr || (s->start != nullptr && least_value(pool, s->start) < 0)) return;
  const auto up_to = [&](Expr end) {
    const Expr length = pool.ceildiv(pool.sub(end, exact.start), s->step);
    if (hints.empty() || hints.back() != length) hints.push_back(length);
  };
  const bool open = s->end == nullptr || (is_const(s->end) && s->end->value > INT32_MAX);
  if (!open && least_value(pool, s->end) >= 0) up_to(s->end);
  up_to(s->size);
}

// diagonal(self, offset, dim1, dim2)
void diagonal_hints(ExprPool& pool, const std::vector<Expr>& shape, const Node& node,
                    std::vector<Expr>& hints) {
  const std::int64_t offset = at(node.args[1], 0, 0);
  const Expr rows = shape.at(axis_of(node.args[2], shape.size()));
  const Expr cols = shape.at(axis_of(node.args[3], shape.size()));
  hints.push_back(pool.min(pool.add(rows, pool.constant(std::min<std::int64_t>(offset, 0))),
                           pool.sub(cols, pool.constant(std::max<std::int64_t>(offset, 0)))));
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

// arange.start_step(start, end, step): how many steps there are, up or down.
void arange_hints(ExprPool& pool, const Node& node, std::vector<Expr>& hints) {
  if (node.args.size() < 3) return;
  const Expr start = whole(pool, node.args[0]), end = whole(pool, node.args[1]);
  const Expr step = whole(pool, node.args[2]);
  if (start == nullptr || end == nullptr || step == nullptr || !is_const(step)) return;
  if (step->value == 0) return;
  const Expr way = step->value > 0 ? pool.sub(end, start) : pool.sub(start, end);
  hints.push_back(pool.ceildiv(way, pool.constant(std::abs(step->value))));
}

}  // namespace

std::vector<Expr> size_hints(ExprPool& pool, const Graph& graph, const Node& node) {
  const std::string_view op = node.op;
  std::vector<Expr> hints;
  const Window w{pool, graph, node};
  if (op == "aten.convolution.default" || op == "aten._convolution.default") {
    const auto& weight = graph.values[node.args[1].value].shape;
    const bool transposed = node.args[6].number != 0;
    const std::size_t spatial = weight.size() - 2;
    for (std::size_t k = 0; k < spatial; ++k) {
      if (!is_const(weight[k + 2]) || w.input().size() < spatial) continue;
      const Expr x = w.input()[w.input().size() - spatial + k];
      const std::int64_t kernel = weight[k + 2]->value;
      const std::int64_t stride = at(node.args[3], k, 1), padding = at(node.args[4], k, 0);
      const std::int64_t dilation = at(node.args[5], k, 1);
      if (!transposed) {
        hints.push_back(w.slide(x, kernel, stride, padding, dilation, false));
        continue;
      }
      const std::int64_t extra =
          at(node.args[7], k, 0) + dilation * (kernel - 1) + 1 - 2 * padding - stride;
      hints.push_back(pool.add(pool.mul(x, pool.constant(stride)), pool.constant(extra)));
    }
    return hints;
  }
  if (op == "aten.slice.Tensor") {
    slice_hints(pool, graph, node, hints);
    return hints;
  }
  if (op == "aten.arange.start_step") {
    arange_hints(pool, node, hints);
    return hints;
  }
  if (op == "aten.diagonal.default" || op == "aten.diagonal_copy.default") {
    diagonal_hints(pool, w.input(), node, hints);
    return hints;
  }
  if (op == "aten.unfold.default" && !w.input().empty()) {
    const Expr x = w.input().at(axis_of(node.args[1], w.input().size()));
    hints.push_back(w.slide(x, at(node.args[2], 0, 1), at(node.args[3], 0, 1), 0, 1, false));
    return hints;
  }
  if (op == "aten._pdist_forward.default" && !w.input().empty()) {
    const Expr n = w.input()[0];
    hints.push_back(pool.floordiv(pool.mul(n, pool.sub(n, pool.constant(1))), pool.constant(2)));
    return hints;
  }
  // im2col(self, kernel_size, dilation, padding, stride)
  if (op == "aten.im2col.default" && w.input().size() >= 3) {
    Expr windows = pool.constant(1);
    for (std::size_t k = 0; k < 2; ++k) {
      const Expr x = w.input()[w.input().size() - 2 + k];
      windows = pool.mul(windows, w.slide(x, at(node.args[1], k, 1), at(node.args[4], k, 1),
                                          at(node.args[3], k, 0), at(node.args[2], k, 1), false));
    }
    hints.push_back(windows);
    return hints;
  }
  // (self, kernel_size, stride, padding, dilation or ceil_mode, ...)
  const bool max_pool = op.find("max_pool") != std::string_view::npos;
  const bool avg_pool = op.find("avg_pool") != std::string_view::npos;
  if ((max_pool || avg_pool) && op.find("adaptive") == std::string_view::npos) {
    const std::size_t spatial = op.find("1d") != std::string_view::npos   ? 1
                                : op.find("3d") != std::string_view::npos ? 3
                                                                          : 2;
    const std::size_t ceil_at = max_pool ? 5 : 4;
    const bool ceil = node.args.size() > ceil_at && node.args[ceil_at].number != 0;
    for (std::size_t k = 0; k < spatial && w.input().size() >= spatial; ++k) {
      const Expr x = w.input()[w.input().size() - spatial + k];
      const std::int64_t kernel = at(node.args[1], k, 1);
      hints.push_back(w.slide(x, kernel, at(node.args[2], k, kernel), at(node.args[3], k, 0),
                              max_pool ? at(node.args[4], k, 1) : 1, ceil));
    }
  }
  return hints;
}

namespace {

// What the indices of index.Tensor are when broadcast together.
std::vector<Expr> broadcast(const Graph& graph, const std::vector<Arg>& indices) {
  std::vector<Expr> shape;
  for (const Arg& index : indices) {
    if (index.kind != ArgKind::kValue) continue;
    const std::vector<Expr>& own = graph.values[index.value].shape;
    if (own.size() > shape.size()) {
      shape.insert(shape.begin(), own.size() - shape.size(), graph.pool->constant(1));
    }
    for (std::size_t k = 1; k <= own.size(); ++k) {
      Expr& e = shape[shape.size() - k];
      if (is_const(e, 1)) e = own[own.size() - k];
    }
  }
  return shape;
}

// index.Tensor(self, indices): together where the first of them is, in front where they are apart
std::vector<Expr> index_shape(const Graph& graph, const Node& node) {
  const std::vector<Expr>& x = graph.values[node.args[0].value].shape;
  const std::vector<Arg>& indices = node.args[1].items;
  std::vector<Expr> shape;
  std::size_t first = 0, last = 0, given = 0;
  for (std::size_t axis = 0; axis < x.size(); ++axis) {
    const bool indexed = axis < indices.size() && indices[axis].kind == ArgKind::kValue;
    if (!indexed) {
      shape.push_back(x[axis]);
      continue;
    }
    const Dtype dtype = graph.values[indices[axis].value].dtype;
    if (dtype == Dtype::kBool || dtype == Dtype::kUint8) return {};
    if (given++ == 0) first = axis;
    last = axis;
  }
  if (given == 0) return {};
  const bool together = last - first + 1 == given;
  const std::vector<Expr> picked = broadcast(graph, indices);
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(together ? first : 0);
  shape.insert(at, picked.begin(), picked.end());
  return shape;
}

// slice.Tensor(self, dim, start, end, step): places count from the end where they are negative, and
// are cut to the dimension.
std::vector<Expr> sliced_shape(ExprPool& pool, std::vector<Expr> shape, const Node& node) {
  if (node.args.size() < 5 || node.args[1].kind != ArgKind::kInt || !is_const(node.args[1].expr)) {
    return {};
  }
  Expr& size = shape.at(axis_of(node.args[1], shape.size()));
  const Expr zero = pool.constant(0),
             step = node.args[4].kind == ArgKind::kInt ? node.args[4].expr : pool.constant(1);
  if (!is_const(step) || step->value < 1) return {};
  const auto given = [&](std::size_t k) {
    return node.args[k].kind == ArgKind::kInt ? node.args[k].expr : nullptr;
  };
  if (const Span span = slice_span(pool, size, given(2), given(3), step); span.length != nullptr) {
    size = span.length;
    return shape;
  }
  // A place whose sign is not known: it counts from the end where it is negative.
  const auto place = [&](const Arg& arg, Expr otherwise) {
    if (arg.kind != ArgKind::kInt) return otherwise;
    const Expr e = arg.expr;
    if (is_const(e) && e->value > (std::int64_t{1} << 40)) return size;
    return pool.min(pool.max(pool.add(e, pool.mul(size, pool.less(e, zero))), zero), size);
  };
  const Expr start = place(node.args[2], zero), end = place(node.args[3], size);
  const Expr length = is_const(start, 0) ? end : pool.max(pool.sub(end, start), zero);
  size = pool.ceildiv(length, step);
  return shape;
}

// cat(tensors, dim): the sum there, as elsewhere otherwise; a tensor of shape [0] is passed over.
std::vector<Expr> joined_shape(ExprPool& pool, const Graph& graph, const Node& node) {
  std::vector<Expr> joined;
  for (const Arg& item : node.args[0].items) {
    if (item.kind != ArgKind::kValue) return {};
    const std::vector<Expr>& own = graph.values[item.value].shape;
    if (own.size() == 1 && is_const(own[0], 0)) continue;
    if (joined.empty()) {
      joined = own;
      continue;
    }
    if (own.size() != joined.size() || node.args[1].kind != ArgKind::kInt) return {};
    Expr& size = joined.at(axis_of(node.args[1], joined.size()));
    size = pool.add(size, own.at(axis_of(node.args[1], own.size())));
  }
  return joined;
}

// constant_pad_nd(self, pad): pairs of paddings from the last dimension on
std::vector<Expr> padded_shape(ExprPool& pool, std::vector<Expr> shape, const Arg& pads) {
  if (pads.items.size() > 2 * shape.size() || pads.items.size() % 2 != 0) return {};
  for (std::size_t k = 0; k < pads.items.size(); ++k) {
    if (pads.items[k].kind != ArgKind::kInt) return {};
    Expr& size = shape[shape.size() - 1 - k / 2];
    size = pool.add(size, pads.items[k].expr);
  }
  return shape;
}

// repeat(self, repeats): new dimensions in front
std::vector<Expr> repeated_shape(ExprPool& pool, const std::vector<Expr>& shape,
                                 const Arg& repeats) {
  std::vector<Expr> repeated;
  const std::size_t more = repeats.items.size() - std::min(shape.size(), repeats.items.size());
  for (std::size_t k = 0; k < repeats.items.size(); ++k) {
    if (repeats.items[k].kind != ArgKind::kInt) return {};
    const Expr times = repeats.items[k].expr;
    repeated.push_back(k < more ? times : pool.mul(shape[k - more], times));
  }
  return repeated;
}

// flatten(self, start_dim, end_dim)
std::vector<Expr> flattened_shape(ExprPool& pool, const std::vector<Expr>& shape,
                                  const Node& node) {
  if (shape.empty() || node.args.size() < 3 || !is_const(node.args[1].expr) ||
      !is_const(node.args[2].expr)) {
    return {};
  }
  const std::size_t first = axis_of(node.args[1], shape.size()),
                    last = axis_of(node.args[2], shape.size());
  std::vector<Expr> flat(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  for (std::size_t k = first + 1; k < shape.size(); ++k) {
    if (k <= last) {
      flat[first] = pool.mul(flat[first], shape[k]);
    } else {
      flat.push_back(shape[k]);
    }
  }
  return flat;
}

// view(self, size): the size that is -1 takes up what the others leave
std::vector<Expr> viewed_shape(ExprPool& pool, const std::vector<Expr>& shape, const Arg& sizes) {
  std::vector<Expr> viewed;
  Expr* rest = nullptr;
  viewed.reserve(sizes.items.size());
  for (const Arg& size : sizes.items) {
    if (size.kind != ArgKind::kInt) return {};
    viewed.push_back(size.expr);
    if (!is_const(size.expr, -1)) continue;
    if (rest != nullptr) return {};
    rest = &viewed.back();
  }
  if (rest == nullptr) return viewed;
  Expr all = pool.constant(1), others = pool.constant(1);
  for (const Expr e : shape) all = pool.mul(all, e);
  for (const Expr& e : viewed) {
    if (&e != rest) others = pool.mul(others, e);
  }
  if (is_const(others) && others->value < 1) return {};
  *rest = pool.floordiv(all, others);
  return viewed;
}

// Convolutions and pools: batch and channels, then a formula for each dimension that windows slide
// along. The stride or the kernel may be as large as a size that happened not to vary.
std::vector<Expr> windowed_shape(ExprPool& pool, const Graph& graph, const Node& node) {
  const std::vector<Expr>& x = graph.values[node.args[0].value].shape;
  const std::vector<Expr> slid = size_hints(pool, graph, node);
  if (slid.empty() || slid.size() >= x.size()) return {};
  std::vector<Expr> shape(x.begin(), x.end() - static_cast<std::ptrdiff_t>(slid.size()));
  if (node.op == "aten.convolution.default") {
    const std::vector<Expr>& weight = graph.values[node.args[1].value].shape;
    if (weight.size() != slid.size() + 2 || shape.empty()) return {};
    const bool transposed = node.args[6].number != 0;
    shape.back() = transposed ? nullptr : weight[0];
  }
  shape.insert(shape.end(), slid.begin(), slid.end());
  return shape;
}

[[nodiscard]] bool slides_windows(std::string_view op) {
  return op == "aten.convolution.default" || (op.find("_pool") != std::string_view::npos &&
                                              op.find("adaptive") == std::string_view::npos &&
                                              op.find("backward") == std::string_view::npos &&
                                              op.find("fractional") == std::string_view::npos);
}

}  // namespace

std::vector<Expr> known_shape(ExprPool& pool, const Graph& graph, const Node& node) {
  const auto shape = [&](std::size_t k) { return graph.values[node.args[k].value].shape; };
  const auto is_value = [&](std::size_t k) {
    return node.args.size() > k && node.args[k].kind == ArgKind::kValue;
  };
  if (node.op == "aten.cat.default") return joined_shape(pool, graph, node);
  if (!is_value(0)) return {};
  if (slides_windows(node.op)) return windowed_shape(pool, graph, node);
  if (node.op == "aten.constant_pad_nd.default" || node.op == "aten.pad.default" ||
      node.op.starts_with("aten.reflection_pad") || node.op.starts_with("aten.replication_pad")) {
    return padded_shape(pool, shape(0), node.args[1]);
  }
  if (node.op == "aten.view.default" || node.op == "aten.reshape.default" ||
      node.op == "aten._unsafe_view.default") {
    return viewed_shape(pool, shape(0), node.args[1]);
  }
  if (node.op == "aten.flatten.using_ints") return flattened_shape(pool, shape(0), node);
  if (node.op == "aten.slice.Tensor") return sliced_shape(pool, shape(0), node);
  if (node.op == "aten.repeat.default") return repeated_shape(pool, shape(0), node.args[1]);
  if (node.op == "aten.index.Tensor") return index_shape(graph, node);
  if (node.op == "aten.gather.default" && is_value(2)) return shape(2);
  if (node.op == "aten.index_select.default" && is_value(2) && !shape(0).empty()) {
    std::vector<Expr> picked = shape(0);
    const std::vector<Expr> index = shape(2);
    picked.at(axis_of(node.args[1], picked.size())) =
        index.empty() ? graph.pool->constant(1) : index[0];
    return picked;
  }
  if (node.op == "aten.embedding.default" && is_value(1)) {
    std::vector<Expr> picked = shape(1);
    picked.push_back(shape(0).at(1));
    return picked;
  }
  return kept_shape(graph, node);
}

}  // namespace fairlead
