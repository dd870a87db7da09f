// Layouts: diagonals, triangles, windows, strides, turns and rolls.
#include <algorithm>
#include <optional>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/index_forms.h"
#include "fairlead/symbol/equal.h"

namespace fairlead::onnx {
namespace {

// ---- triangles ----------------------------------------------------------------------------------

// aten::tril(Tensor self, SymInt diagonal=0) -> Tensor
template <bool kUpper>
void lower_triangle(Lowering& b) {
  const Val x = b.in(0);
  const Dtype d = b.dtype(0);
  const bool narrow = is_integer(d) && dtype_size(d) < 4;
  const Val kept =
      b.op("Trilu", {narrow ? b.cast(x, Dtype::kInt32) : x, b.size_scalar(b.integer(1, 0))},
           {attr("upper", kUpper)});
  b.result(kept);
}

// aten::tril_indices(int row, int col, int offset=0, ...) -> Tensor
template <bool kUpper>
void lower_triangle_places(Lowering& b) {
  const Shape shape{b.integer(0), b.integer(1)};
  const Val ones = b.expand(b.scalar(1, Dtype::kInt64), {}, shape);
  const Val kept = b.op("Trilu", {ones, b.size_scalar(b.integer(2, 0))}, {attr("upper", kUpper)});
  b.result(b.op("NonZero", {kept}));
}

// ---- diagonals ----------------------------------------------------------------------------------

struct Diagonal {
  Ints perm;   // the two dimensions in front
  Val places;  // int64 [n, 2]
};

Diagonal diagonal(Lowering& b, int rank, std::int64_t offset, std::int64_t dim1, std::int64_t dim2,
                  Expr length) {
  Diagonal d{{dim1, dim2}, {}};
  for (std::int64_t k = 0; k < rank; ++k) {
    if (k != dim1 && k != dim2) d.perm.push_back(k);
  }
  const Val rows = range(b, b.expr(std::max<std::int64_t>(-offset, 0)), length, b.expr(1));
  const Val cols = range(b, b.expr(std::max<std::int64_t>(offset, 0)), length, b.expr(1));
  d.places = b.concat({b.unsqueeze(rows, {1}), b.unsqueeze(cols, {1})}, 1);
  return d;
}

// The last of `rank` dimensions in front, and the inverse.
Ints last_to_front(int rank) { return to_front(rank - 1, rank); }

// aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)
void lower_diagonal(Lowering& b) {
  const std::int64_t dim1 = b.has(2) ? b.axis(2) : 0, dim2 = b.has(3) ? b.axis(3) : 1;
  const Diagonal d = diagonal(b, b.rank(0), b.constant_int(1, 0), dim1, dim2, b.out_shape().back());
  const Val found = b.op("GatherND", {b.transpose(b.in(0), d.perm), d.places});
  b.result(b.transpose(found, inverse(last_to_front(b.out_rank()))));
}

// aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor
void lower_diagonal_scatter(Lowering& b) {
  const std::int64_t dim1 = b.has(3) ? b.axis(3) : 0, dim2 = b.has(4) ? b.axis(4) : 1;
  const Diagonal d = diagonal(b, b.rank(0), b.constant_int(2, 0), dim1, dim2, b.shape(1).back());
  const Val src = b.transpose(b.in(1), last_to_front(b.rank(1)));
  const Val written = scatter_nd(b, b.transpose(b.in(0), d.perm), d.places, src);
  b.result(b.transpose(written, inverse(d.perm)));
}

// aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor
void lower_diag_embed(Lowering& b) {
  const int rank = b.out_rank();
  const std::int64_t offset = b.constant_int(1, 0);
  const std::int64_t dim1 = b.has(2) ? b.axis(2, rank) : rank - 2;
  const std::int64_t dim2 = b.has(3) ? b.axis(3, rank) : rank - 1;
  const Diagonal d = diagonal(b, rank, offset, dim1, dim2, b.shape(0).back());
  Shape shape;
  for (const std::int64_t k : d.perm) shape.push_back(b.out_shape()[k]);
  const Val zeros = b.expand(b.scalar(0, b.out_dtype()), {}, shape);
  const Val src = b.transpose(b.in(0), last_to_front(b.rank(0)));
  b.result(b.transpose(scatter_nd(b, zeros, d.places, src), inverse(d.perm)));
}

// aten::trace(Tensor self) -> Tensor
void lower_trace(Lowering& b) {
  const Expr n = b.pool().min(b.shape(0)[0], b.shape(0)[1]);
  const Diagonal d = diagonal(b, 2, 0, 0, 1, n);
  const Val found = b.cast(b.op("GatherND", {b.in(0), d.places}), b.out_dtype());
  b.result(b.reduce("ReduceSum", found, {0}, false));
}

// aten::block_diag(Tensor[] tensors) -> Tensor: each block with zeros on its left and right
void lower_block_diag(Lowering& b) {
  const std::vector<Arg>& items = b.node().args[0].items;
  const Expr width = b.out_shape()[1];
  const Dtype d = b.out_dtype();
  const Val zero = b.scalar(0, d);
  Expr left = b.expr(0);
  Inputs rows;
  const Inputs given = b.ins(0);
  for (std::size_t k = 0; k < items.size(); ++k) {
    const Shape& shape = b.graph().values[items[k].value].shape;
    Shape block(2 - std::min<std::size_t>(shape.size(), 2), b.expr(1));
    block.insert(block.end(), shape.begin(), shape.end());
    const Expr after = b.pool().add(left, block[1]);
    const Val v = b.reshape(b.cast(given[k], d), shape, block);
    Inputs parts;
    if (!is_const(left, 0)) parts.push_back(b.expand(zero, {}, {block[0], left}));
    parts.push_back(v);
    if (after != width) parts.push_back(b.expand(zero, {}, {block[0], b.pool().sub(width, after)}));
    rows.push_back(b.concat(parts, 1));
    left = after;
  }
  b.result(b.concat(rows, 0));
}

// ---- windows and strides ------------------------------------------------------------------------

// aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)
void lower_unfold(Lowering& b) {
  if (b.rank(0) == 0) return b.result(b.unsqueeze(b.in(0), {0}));
  const std::int64_t axis = b.axis(1);
  const Val starts = range(b, b.expr(0), b.out_shape()[axis], b.integer(3));
  const Val places = b.op("Add", {b.unsqueeze(starts, {1}), range(b, b.integer(2))});
  // [.., windows, size, ..] -> [.., windows, .., size]
  const Val found = b.op("Gather", {b.in(0), places}, {attr("axis", axis)});
  Ints perm;
  for (std::int64_t k = 0; k < b.out_rank(); ++k) {
    if (k != axis + 1) perm.push_back(k);
  }
  perm.push_back(axis + 1);
  b.result(b.transpose(found, perm));
}

// aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) ->
// Tensor
//
// Windows added where they came from, as the inverse of a short-time Fourier transform needs it.
void lower_unfold_backward(Lowering& b) {
  const Shape& shape = b.out_shape();
  const int rank = b.out_rank();
  if (rank == 0) return b.result(b.reduce("ReduceSum", b.in(0), {0}, false));
  const std::int64_t axis = b.axis(2, rank);
  const Val starts = range(b, b.expr(0), b.shape(0)[static_cast<std::size_t>(axis)], b.integer(4));
  const Val places = b.op("Add", {b.unsqueeze(starts, {1}), range(b, b.integer(3))});
  // [.., windows, .., size] -> [windows, size, ..]
  std::vector<std::int64_t> perm = to_front(axis, rank);
  perm.insert(perm.begin() + 1, rank);
  const Val windows = b.transpose(b.in(0), perm);
  const std::vector<std::int64_t> front = to_front(axis, rank);
  Shape turned;
  for (const std::int64_t k : front) turned.push_back(shape[static_cast<std::size_t>(k)]);
  const Val zeros = b.expand(b.scalar(0, b.dtype(0)), {}, turned);
  const Val added = scatter_nd(b, zeros, b.unsqueeze(places, {-1}), windows, "add");
  b.result(b.transpose(added, inverse(front)));
}

// aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor; 3d alike
template <std::size_t kCount>
void lower_max_unpool(Lowering& b) {
  const Shape& shape = b.out_shape();
  const std::size_t lead = shape.size() - kCount;
  // [.., h, w] -> [.., h*w]
  const auto flat = [&](const Shape& from) {
    Shape to(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(lead));
    to.push_back(b.pool().product(std::span(from).subspan(lead)));
    return to;
  };
  const auto flattened = [&](std::size_t i) {
    return b.op("Reshape", {b.in(i), b.shape_tensor(flat(b.shape(i)))});
  };
  const Val zeros = b.expand(b.scalar(0, b.dtype(0)), {}, flat(shape));
  const Val filled =
      scatter_elements(b, zeros, flattened(1), flattened(0), static_cast<std::int64_t>(lead));
  b.result(b.op("Reshape", {filled, b.shape_tensor(shape)}));
}

// The places in memory order that as_strided reads: int64, shaped like its result.
//
// The recorder adds the tensor's own strides and offset as the last argument. A tensor whose
// dimensions were only permuted is first put into the order of its memory.
struct Memory {
  Val flat;    // the elements in memory order
  Val places;  // int64 [size...]
  Ints order;  // the dimensions in memory order
};

// The dimensions in the order of memory, from the tensor's own strides; none where it has gaps or
// overlaps. From the innermost out: the dimension whose stride is the product of those within it.
std::optional<Ints> order_in_memory(Lowering& b, const Shape& held) {
  const Shape& shape = b.shape(0);
  Ints order;
  std::vector<bool> placed(shape.size(), false);
  Expr within = b.expr(1);
  for (std::size_t k = 0; k < shape.size(); ++k) {
    std::size_t found = shape.size();
    for (std::size_t at = shape.size(); at-- > 0;) {
      if (placed[at]) continue;
      if (is_const(shape[at], 1) || equal(b.pool(), held[at], within)) {
        found = at;
        if (is_const(shape[at], 1)) break;
      }
    }
    if (found == shape.size()) return std::nullopt;
    placed[found] = true;
    order.insert(order.begin(), static_cast<std::int64_t>(found));
    within = b.pool().mul(within, shape[found]);
  }
  return order;
}

std::string text(Lowering& b, const Shape& sizes) {
  std::string out = "(";
  for (const Expr size : sizes) out += (out.size() > 1 ? ", " : "") + b.pool().to_string(size);
  return out + ")";
}

Memory memory_of(Lowering& b, std::size_t sizes, std::size_t strides, std::size_t offset,
                 std::size_t own) {
  const Shape& shape = b.shape(0);
  const Shape held = b.has(own) ? b.integers(own) : Shape{};
  Memory m;
  Expr first = b.has(offset) ? b.integer(offset) : b.expr(0);
  if (held.empty()) {
    for (std::size_t k = 0; k < shape.size(); ++k) m.order.push_back(static_cast<std::int64_t>(k));
  } else {
    if (held.size() != shape.size() + 1) b.unsupported("strides of another rank");
    first = b.has(offset) ? b.pool().sub(first, held.back()) : b.expr(0);
    const std::optional<Ints> order = order_in_memory(b, held);
    if (!order) {
      b.unsupported("a tensor whose memory has gaps or overlaps, of sizes " + text(b, shape) +
                    " with strides " + text(b, Shape(held.begin(), held.end() - 1)));
    }
    m.order = *order;
  }
  m.flat = b.op("Reshape", {b.transpose(b.in(0), m.order), b.ints({-1})});
  const Shape size = b.integers(sizes), stride = b.integers(strides);
  const int rank = static_cast<int>(size.size());
  m.places = b.size_scalar(first);
  for (int k = 0; k < rank; ++k) {
    Val steps = range(b, b.expr(0), size[k], b.expr(1));
    if (!is_const(stride[k], 1)) steps = b.op("Mul", {steps, b.dim(stride[k])});
    Ints axes;
    for (int j = k + 1; j < rank; ++j) axes.push_back(j - k);
    if (!axes.empty()) steps = b.unsqueeze(steps, axes);
    m.places = k == 0 && is_const(first, 0) ? steps : b.op("Add", {m.places, steps});
  }
  return m;
}

// Whether as_strided gives its tensor back: its own sizes, and contiguous strides but for sizes
// of 1.
bool is_own_layout(Lowering& b) {
  if (b.integers(1) != b.shape(0) || b.has(3) || b.has(4)) return false;
  const Shape stride = b.integers(2);
  Expr within = b.expr(1);
  for (std::size_t k = stride.size(); k-- > 0;) {
    if (is_const(b.shape(0)[k], 1)) continue;
    if (stride[k] != within) return false;
    within = b.pool().mul(within, b.shape(0)[k]);
  }
  return true;
}

// How often a stride is another one; 0 where it is no whole multiple for all sizes.
std::int64_t times(Lowering& b, Expr stride, Expr own) {
  if (stride == own) return 1;
  const bool numbers = stride->kind == ExprKind::kConst && own->kind == ExprKind::kConst;
  if (numbers)
    return own->value > 0 && stride->value % own->value == 0 ? stride->value / own->value : 0;
  if (stride->kind != ExprKind::kMul) return 0;
  return b.pool().mul(own, b.expr(stride->value)) == stride ? stride->value : 0;
}

// A tensor with gaps (a channel of several), read along its own dimensions: frames of a signal, as
// torch.stft makes them. What would read beyond a dimension, and so from a gap, stops in Gather.
std::optional<Val> along_axes(Lowering& b) {
  const Shape& shape = b.shape(0);
  if (!b.has(4)) return std::nullopt;
  const Shape held = b.integers(4), size = b.integers(1), stride = b.integers(2);
  if (held.size() != shape.size() + 1 || order_in_memory(b, held)) return std::nullopt;
  if (b.has(3) && b.integer(3) != held.back()) return std::nullopt;
  std::vector<std::pair<std::size_t, std::int64_t>> axes;  // by dimension of the result, with steps
  for (const Expr own : stride) {
    std::size_t at = axes.empty() ? 0 : axes.back().first;
    while (at < shape.size() && (is_const(shape[at], 1) || times(b, own, held[at]) == 0)) ++at;
    if (at == shape.size()) return std::nullopt;
    axes.emplace_back(at, times(b, own, held[at]));
  }
  Val v = b.in(0);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    Val places = b.size_scalar(b.expr(0));
    bool first = true;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if (axes[k].first != axis) continue;
      const Val steps = range(b, b.expr(0), size[k], b.expr(1));
      const Val here = b.op("Mul", {steps, b.dim(b.expr(axes[k].second))});
      places = first ? here : b.op("Add", {b.unsqueeze(places, {-1}), here});
      first = false;
    }
    v = b.op("Gather", {v, places}, {attr("axis", static_cast<std::int64_t>(axis))});
  }
  return v;
}

// aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None)
void lower_as_strided(Lowering& b) {
  if (is_own_layout(b)) return b.result(b.in(0));
  if (const std::optional<Val> read = along_axes(b)) return b.result(*read);
  const Memory m = memory_of(b, 1, 2, 3, 4);
  b.result(b.op("Gather", {m.flat, m.places}, {attr("axis", 0)}));
}

// aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride,
//   SymInt? storage_offset=None) -> Tensor
void lower_as_strided_scatter(Lowering& b) {
  const Memory m = memory_of(b, 2, 3, 4, 5);
  const Val src = b.in(1, b.out_dtype());
  const Val written = scatter_nd(b, m.flat, b.unsqueeze(m.places, {-1}), src);
  Shape ordered;
  for (const std::int64_t k : m.order) ordered.push_back(b.shape(0)[k]);
  b.result(b.transpose(b.op("Reshape", {written, b.shape_tensor(ordered)}), inverse(m.order)));
}

// ---- turns --------------------------------------------------------------------------------------

Val flipped(Lowering& b, Val v, const Ints& axes) {
  const std::size_t n = axes.size();
  const Ints starts(n, -1), ends(n, INT64_MIN), steps(n, -1);
  return n == 0 ? v : b.op("Slice", {v, b.ints(starts), b.ints(ends), b.ints(axes), b.ints(steps)});
}

// aten::flip(Tensor self, int[] dims) -> Tensor
void lower_flip(Lowering& b) {
  b.result(b.rank(0) == 0 ? b.in(0) : flipped(b, b.in(0), b.axes(1)));
}

// aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor
void lower_rot90(Lowering& b) {
  const std::int64_t turns = ((b.constant_int(1, 1) % 4) + 4) % 4;
  const Ints dims = b.has(2) ? b.axes(2) : Ints{0, 1};
  Val v = b.in(0);
  if (turns == 2) return b.result(flipped(b, v, dims));
  if (turns == 0) return b.result(v);
  Ints perm = to_front(0, b.rank(0));
  std::swap(perm[dims[0]], perm[dims[1]]);
  v = b.transpose(flipped(b, v, {turns == 1 ? dims[1] : dims[0]}), perm);
  b.result(v);
}

Val rolled(Lowering& b, Val v, std::int64_t axis, Expr shift, Expr size) {
  if (is_const(size) && is_const(shift)) {
    if (size->value <= 0) return v;
    const std::int64_t beyond = shift->value % size->value;
    if (beyond == 0) return v;
    const std::int64_t cut = beyond > 0 ? size->value - beyond : -beyond;
    return b.concat({b.slice(v, axis, b.ints({cut}), b.ints({INT64_MAX})),
                     b.slice(v, axis, b.ints({0}), b.ints({cut}))},
                    axis);
  }
  const Val moved = b.op("Sub", {range(b, size), b.size_scalar(shift)});
  return b.op("Gather", {v, b.op("Mod", {moved, b.size_scalar(at_least_one(b, size))})},
              {attr("axis", axis)});
}

// aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor
void lower_roll(Lowering& b) {
  const Shape shifts = b.integers(1);
  const Ints axes = b.has(2) ? b.axes(2) : Ints{};
  Val v = b.in(0);
  if (b.rank(0) == 0) return b.result(v);
  if (axes.empty()) {
    const Val flat = b.op("Reshape", {v, b.ints({-1})});
    const Val moved = rolled(b, flat, 0, shifts.at(0), b.pool().product(b.shape(0)));
    return b.result(b.op("Reshape", {moved, b.shape_tensor(b.shape(0))}));
  }
  for (std::size_t k = 0; k < axes.size(); ++k) {
    v = rolled(b, v, axes[k], shifts.at(k), b.shape(0)[axes[k]]);
  }
  b.result(v);
}

constexpr std::string_view kDense = "the tensor's memory has no gaps or overlaps";
constexpr std::string_view kOwn = "what is read is the tensor's own, not what lies in gaps of it";

constexpr OpRow kRows[] = {
    {"aten.as_strided.default", lower_as_strided, "Gather", kOwn},
    {"aten.as_strided_copy.default", lower_as_strided, "Gather", kOwn},
    {"aten.as_strided_scatter.default", lower_as_strided_scatter, "ScatterND", kDense},
    {"aten.block_diag.default", lower_block_diag, "Concat", ""},
    {"aten.diag_embed.default", lower_diag_embed, "ScatterND", ""},
    {"aten.diagonal.default", lower_diagonal, "GatherND", ""},
    {"aten.diagonal_copy.default", lower_diagonal, "GatherND", ""},
    {"aten.diagonal_scatter.default", lower_diagonal_scatter, "ScatterND", ""},
    {"aten.flip.default", lower_flip, "Slice", ""},
    {"aten.max_unpool2d.default", lower_max_unpool<2>, "ScatterElements", ""},
    {"aten.max_unpool3d.default", lower_max_unpool<3>, "ScatterElements", ""},
    {"aten.roll.default", lower_roll, "Slice, Concat, Gather", ""},
    {"aten.rot90.default", lower_rot90, "Slice, Transpose", ""},
    {"aten.trace.default", lower_trace, "GatherND, ReduceSum", ""},
    {"aten.tril.default", lower_triangle<false>, "Trilu", ""},
    {"aten.tril_indices.default", lower_triangle_places<false>, "Trilu, NonZero", ""},
    {"aten.triu.default", lower_triangle<true>, "Trilu", ""},
    {"aten.triu_indices.default", lower_triangle_places<true>, "Trilu, NonZero", ""},
    {"aten.unfold.default", lower_unfold, "Gather", ""},
    {"aten.unfold_backward.default", lower_unfold_backward, "ScatterND", ""},
    {"aten.unfold_copy.default", lower_unfold, "Gather", ""},
};

}  // namespace

std::span<const OpRow> layout_ops() { return kRows; }

}  // namespace fairlead::onnx
