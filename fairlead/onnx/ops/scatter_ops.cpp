// Writing by index: index_put, scatter and their relatives.
#include <algorithm>
#include <limits>

#include "fairlead/graph/places.h"
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/index_forms.h"

namespace fairlead::onnx {
namespace {

// The value that a reduction leaves unchanged, in the type of `d`.
double neutral(Lowering& b, std::string_view reduce, Dtype d) {
  if (reduce == "prod") return 1;
  const bool real = is_float(d);
  const double infinity = std::numeric_limits<double>::infinity();
  if (reduce == "amax") return real ? -infinity : b.lowest(d);
  if (reduce == "amin") return real ? infinity : b.highest(d);
  return 0;
}

// PyTorch's name of a reduction -> ONNX's
std::string_view reduction_of(Lowering& b, std::string_view reduce) {
  if (reduce == "sum" || reduce == "add" || reduce == "mean") return "add";
  if (reduce == "prod" || reduce == "multiply") return "mul";
  if (reduce == "amax") return "max";
  if (reduce == "amin") return "min";
  b.unsupported("the reduction " + std::string(reduce));
}

// aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
//
// One mask with one value is a Where. Otherwise a ScatterND into the tensor whose indexed
// dimensions were moved to the front.
void lower_index_put(Lowering& b) {
  const Dtype d = b.out_dtype();
  const bool accumulate = b.flag(3);
  const std::vector<Arg>& items = b.node().args[1].items;
  const bool one_value =
      std::all_of(b.shape(2).begin(), b.shape(2).end(), [](Expr e) { return is_const(e, 1); });
  if (items.size() == 1 && one_value && !accumulate) {
    const Value& mask = b.graph().values[items[0].value];
    if (mask.dtype == Dtype::kBool || mask.dtype == Dtype::kUint8) {
      Val condition = b.cast(b.ins(1)[0], Dtype::kBool);
      Ints rest;
      for (std::size_t k = mask.shape.size(); k < b.shape(0).size(); ++k) {
        rest.push_back(static_cast<std::int64_t>(k));
      }
      if (!rest.empty()) condition = b.unsqueeze(condition, rest);
      const Val value = b.reshape(b.in(2, d), b.shape(2), {});
      return b.result(choose(b, condition, value, b.in(0)));
    }
  }
  const int rank = b.rank(0);
  const IndexList list = read_indices(b, 1, rank);
  const std::size_t indexed = list.items.size();
  // Values broadcast to [before..., wide..., after...], then [wide..., before..., after...].
  const int slots = list.wide + rank - static_cast<int>(indexed);
  Shape before, after;
  for (std::size_t k = indexed; k < list.perm.size(); ++k) {
    const std::size_t place = k - indexed;
    (place < static_cast<std::size_t>(list.front) ? before : after)
        .push_back(b.shape(0)[list.perm[k]]);
  }
  Inputs target;
  if (!before.empty()) target.push_back(b.shape_tensor(before));
  if (list.wide > 0) target.push_back(list.wide_shape(b));
  if (!after.empty()) target.push_back(b.shape_tensor(after));
  Val values = b.in(2, d);
  if (!target.empty()) values = b.op("Expand", {values, b.concat(target, 0)});
  values = b.transpose(values, inverse(list.back(slots)));
  const Val data = b.transpose(b.in(0), list.perm);
  const Val written = scatter_nd(b, data, list.together(b), values, accumulate ? "add" : "none");
  b.result(b.transpose(written, inverse(list.perm)));
}

// Writes `updates` (shaped like self but for `axis`) at `index` [n] of `axis`.
Val write_along(Lowering& b, Val self, int rank, std::int64_t axis, Val index, Val updates,
                std::string_view reduction) {
  const Ints perm = to_front(axis, rank);
  const Val written = scatter_nd(b, b.transpose(self, perm), b.unsqueeze(index, {-1}),
                                 b.transpose(updates, perm), reduction);
  return b.transpose(written, inverse(perm));
}

Val one_dimensional(Lowering& b, Val v, int rank) { return rank == 0 ? b.unsqueeze(v, {0}) : v; }

// aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor
// aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor
void lower_index_write(Lowering& b, std::string_view reduction, Val source) {
  const int rank = std::max(b.rank(0), 1);
  const Val index = one_dimensional(b, b.in(2, Dtype::kInt64), b.rank(2));
  const Val self = one_dimensional(b, b.in(0), b.rank(0));
  source = b.rank(3) < rank ? b.unsqueeze(source, {0}) : source;
  const Val written = write_along(b, self, rank, b.axis(1), index, source, reduction);
  b.result(b.rank(0) == 0 ? b.squeeze(written, {0}) : written);
}

void lower_index_copy(Lowering& b) { lower_index_write(b, "none", b.in(3)); }

void lower_index_add(Lowering& b) {
  Val source = b.in(3, b.out_dtype());
  const bool scaled = b.has(4) && !(b.node().args[4].kind != ArgKind::kFloat && b.number(4) == 1);
  if (scaled) source = b.op("Mul", {source, b.in(4, b.out_dtype())});
  lower_index_write(b, "add", source);
}

// aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
void lower_index_fill(Lowering& b) {
  if (b.rank(0) == 0) return b.result(b.in(3, b.out_dtype()));
  const std::int64_t axis = b.axis(1);
  Shape shape = b.shape(0);
  const Val index = one_dimensional(b, b.in(2, Dtype::kInt64), b.rank(2));
  shape[axis] = b.rank(2) == 0 ? b.expr(1) : b.shape(2)[0];
  const Val value = b.reshape(b.in(3, b.out_dtype()), b.shape(3), {});
  const Val updates = b.expand(value, {}, shape);
  b.result(write_along(b, b.in(0), b.rank(0), axis, index, updates, "none"));
}

// ---- scatter ------------------------------------------------------------------------------------

// The part of `src` that an index of shape `index` reads: its first elements along every axis.
Val cut_to(Lowering& b, Val src, const Shape& from, const Shape& index) {
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (from[k] == index[k]) continue;
    src = b.slice(src, static_cast<std::int64_t>(k), b.ints({0}), b.dim(index[k]));
  }
  return src;
}

struct Scattered {
  Val self, index, src;
  std::int64_t axis = 0;
  Shape shape;  // of the index
};

// (self, dim, index, src or value): scalars become tensors of one element.
Scattered read_scatter(Lowering& b) {
  Scattered s;
  s.axis = b.axis(1);
  s.self = one_dimensional(b, b.in(0), b.rank(0));
  s.index = one_dimensional(b, b.in(2, Dtype::kInt64), b.rank(2));
  s.shape = b.rank(2) == 0 ? Shape{b.expr(1)} : b.shape(2);
  const Dtype d = b.out_dtype();
  if (b.is_tensor(3) && b.rank(3) > 0) {
    s.src = cut_to(b, b.in(3, d), b.shape(3), s.shape);
  } else {
    s.src = b.expand(b.in(3, d), {}, s.shape);
  }
  return s;
}

void finish_scatter(Lowering& b, Val v) { b.result(b.rank(0) == 0 ? b.squeeze(v, {0}) : v); }

// aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
// aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
void lower_scatter(Lowering& b) {
  const Scattered s = read_scatter(b);
  finish_scatter(b, scatter_elements(b, s.self, s.index, s.src, s.axis));
}

// aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
void lower_scatter_add(Lowering& b) {
  const Scattered s = read_scatter(b);
  finish_scatter(b, scatter_elements(b, s.self, s.index, s.src, s.axis, "add"));
}

// aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor
void lower_scatter_with(Lowering& b) {
  const Scattered s = read_scatter(b);
  finish_scatter(b,
                 scatter_elements(b, s.self, s.index, s.src, s.axis, reduction_of(b, b.text(4))));
}

// self reduced with what `put(data, updates, reduction)` writes into it; `ones` are updates of 1.
template <typename Put>
Val reduced(Lowering& b, Val self, Val src, std::string_view reduce, bool include_self,
            const Put& put) {
  const Dtype d = b.out_dtype();
  const std::string_view reduction = reduction_of(b, reduce);
  const auto like = [&](Val v, double value) {
    return b.op("Expand", {b.scalar(value, d), b.op("Shape", {v})});
  };
  if (!include_self) self = put(self, like(src, neutral(b, reduce, d)), "none");
  Val result = put(self, src, reduction);
  if (reduce != "mean") return result;
  const Val counts = put(like(self, include_self ? 1 : 0), like(src, 1), "add");
  const Val divisor = b.op("Max", {counts, b.scalar(1, d)});
  if (is_float(d)) return b.op("Div", {result, divisor});
  // Integer means round down.
  const Val rest = b.op("Mod", {result, divisor});
  return b.op("Div", {b.op("Sub", {result, rest}), divisor});
}

// aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *,
//   bool include_self=True) -> Tensor
void lower_scatter_reduce(Lowering& b) {
  const Scattered s = read_scatter(b);
  const auto put = [&](Val data, Val updates, std::string_view reduction) {
    return scatter_elements(b, data, s.index, updates, s.axis, reduction);
  };
  finish_scatter(b, reduced(b, s.self, s.src, b.text(4), b.flag(5, true), put));
}

// aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *,
//   bool include_self=True) -> Tensor
void lower_index_reduce(Lowering& b) {
  if (b.rank(0) == 0) b.unsupported("a tensor without dimensions");
  const Val index = one_dimensional(b, b.in(2, Dtype::kInt64), b.rank(2));
  const auto put = [&](Val data, Val updates, std::string_view reduction) {
    return write_along(b, data, b.rank(0), b.axis(1), index, updates, reduction);
  };
  b.result(reduced(b, b.in(0), b.in(3), b.text(4), b.flag(5, true), put));
}

// aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor
void lower_put(Lowering& b) {
  const auto flat = [&](std::size_t i) { return b.op("Reshape", {b.in(i), b.ints({-1})}); };
  const Val index = b.cast(flat(1), Dtype::kInt64);
  const Val written = scatter_elements(b, flat(0), index, flat(2), 0, b.flag(3) ? "add" : "none");
  b.result(b.op("Reshape", {written, b.shape_tensor(b.shape(0))}));
}

// A mask and its shape, before it was expanded where an operator of the graph did that.
struct Mask {
  Val value;
  Shape shape;
};

Mask narrow_mask(Lowering& b, ValueId id, Val wide) {
  for (const auto& node : b.graph().nodes) {
    if (&node == &b.node()) break;
    if (node.outputs.size() != 1 || node.outputs[0] != id) continue;
    if (node.op != "aten.expand.default") break;
    return {b.value(node.args[0].value), b.graph().values[node.args[0].value].shape};
  }
  return {wide, b.graph().values[id].shape};
}

// aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor
//
// The true places of the mask take the elements of the source in order. A mask that is the same
// along the last dimensions takes whole rows: places are found for the rows only.
void lower_masked_scatter(Lowering& b) {
  const Shape both = broadcast(b, b.shape(0), b.shape(1));
  const Val self = b.expand(b.in(0), b.shape(0), both);
  const Val source = b.in(2, b.out_dtype());
  if (both.empty()) {
    const Val flat = b.op("Reshape", {source, b.ints({-1})});
    const Val first = b.squeeze(b.slice(flat, 0, b.ints({0}), b.ints({1})), {0});
    return b.result(choose(b, b.in(1, Dtype::kBool), first, self));
  }
  const Mask narrow = narrow_mask(b, b.node().args[1].value, b.in(1));
  // Dimensions that the mask tells apart, and those along which it is the same.
  std::size_t lead = both.size();
  if (narrow.shape.size() == both.size()) {
    while (lead > 0 && is_const(narrow.shape[lead - 1], 1)) --lead;
  }
  const Shape rest(both.begin() + static_cast<std::ptrdiff_t>(lead), both.end());
  const Shape& from = b.shape(2);
  bool rows = lead > 0 && lead < both.size() && from.size() >= rest.size() &&
              std::equal(rest.rbegin(), rest.rend(), from.rbegin());
  for (std::size_t k = 0; rows && k < lead; ++k) rows = narrow.shape[k] == both[k];
  Val mask, values;
  if (rows) {
    Ints same;
    for (std::size_t k = lead; k < both.size(); ++k) same.push_back(static_cast<std::int64_t>(k));
    mask = b.squeeze(b.cast(narrow.value, Dtype::kBool), same);
    Shape row{b.expr(-1)};
    row.insert(row.end(), rest.begin(), rest.end());
    values = from.size() == row.size() ? source : b.op("Reshape", {source, b.shape_tensor(row)});
  } else {
    mask = b.expand(b.in(1, Dtype::kBool), b.shape(1), both);
    values = b.op("Reshape", {source, b.ints({-1})});
  }
  const Val places = b.transpose(b.op("NonZero", {mask}), {1, 0});
  const Val count = b.op("Shape", {places}, {attr("start", 0), attr("end", 1)});
  b.result(scatter_nd(b, self, places, b.slice(values, 0, b.ints({0}), count)));
}

// ---- writes through views -----------------------------------------------------------------------

// Whether it is made of the steps of a loop, and of sizes.
bool counts_steps(const ExprPool& pool, Expr e) {
  const std::vector<SymbolId> over = pool.symbols_of(e);
  return std::any_of(over.begin(), over.end(), [&](SymbolId id) {
    const Symbol& symbol = pool.symbols()[static_cast<std::size_t>(id)];
    return symbol.kind == SymbolKind::kRead && symbol.name.starts_with("step_");
  });
}

bool is_chosen(Expr e) {
  return e->kind == ExprKind::kWhere || std::any_of(e->args.begin(), e->args.end(), is_chosen);
}

// A place that PyTorch counts from the end where it is negative, counted from the beginning. Which
// it is may depend on sizes (`x[-shift:]` with a shift that is 0 for small ones) and on what was
// read; steps of loops count from the beginning.
Expr from_start(Lowering& b, Expr e, Expr size) {
  ExprPool& pool = b.pool();
  const bool negative = (is_const(e) || e->kind == ExprKind::kMul) && e->value < 0;
  if (negative) return pool.add(e, size);
  if (least_value(pool, e) >= 0 || (counts_steps(pool, e) && !is_chosen(e))) return e;
  const Expr zero = pool.constant(0);
  return pool.max(pool.add(e, pool.mul(size, pool.less(e, zero))), zero);
}

// self with [start, start + length) along `axis` replaced by src.
Val replace(Lowering& b, Val self, Val src, std::int64_t axis, Expr start, Expr length, Expr size) {
  const Expr end = b.pool().add(start, length);
  Inputs parts;
  if (!is_const(start, 0)) parts.push_back(b.slice(self, axis, b.ints({0}), b.dim(start)));
  parts.push_back(src);
  if (end != size) parts.push_back(b.slice(self, axis, b.dim(end), b.ints({INT64_MAX})));
  return b.concat(parts, axis);
}

// aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None,
//   SymInt step=1) -> Tensor
void lower_slice_scatter(Lowering& b) {
  const std::int64_t axis = b.has(2) ? b.axis(2) : 0;
  const Expr size = b.shape(0)[axis], length = b.shape(1)[axis];
  const Val src = b.in(1, b.out_dtype());
  if (is_const(length, 0)) return b.result(b.in(0));
  const Span span = slice_span(b.pool(), size, b.integer(3, 0), nullptr, b.expr(1));
  const Expr start = span.start != nullptr ? span.start : from_start(b, b.integer(3, 0), size);
  const Expr step = b.integer(5, 1);
  if (is_const(step, 1) || is_const(length, 1)) {
    if (length == size) return b.result(src);
    return b.result(replace(b, b.in(0), src, axis, start, length, size));
  }
  const Val index = range(b, start, length, step);
  b.result(write_along(b, b.in(0), b.rank(0), axis, index, src, "none"));
}

// aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor
void lower_select_scatter(Lowering& b) {
  const std::int64_t axis = b.axis(2);
  const Expr size = b.shape(0)[axis];
  const Val src = b.unsqueeze(b.in(1, b.out_dtype()), {axis});
  b.result(replace(b, b.in(0), src, axis, from_start(b, b.integer(3), size), b.expr(1), size));
}

constexpr OpRow kRows[] = {
    {"aten._index_put_impl.default", lower_index_put, "ScatterND, Where", ""},
    {"aten._unsafe_index_put.default", lower_index_put, "ScatterND, Where", ""},
    {"aten.index_add.default", lower_index_add, "ScatterND", ""},
    {"aten.index_copy.default", lower_index_copy, "ScatterND", ""},
    {"aten.index_fill.int_Scalar", lower_index_fill, "ScatterND", ""},
    {"aten.index_fill.int_Tensor", lower_index_fill, "ScatterND", ""},
    {"aten.index_put.default", lower_index_put, "ScatterND, Where", "no mask without dimensions"},
    {"aten.index_reduce.default", lower_index_reduce, "ScatterND",
     "not into a tensor without dimensions"},
    {"aten.masked_scatter.default", lower_masked_scatter, "NonZero, ScatterND", ""},
    {"aten.put.default", lower_put, "ScatterElements", ""},
    {"aten.scatter.reduce", lower_scatter_with, "ScatterElements", ""},
    {"aten.scatter.src", lower_scatter, "ScatterElements", ""},
    {"aten.scatter.value", lower_scatter, "ScatterElements", ""},
    {"aten.scatter.value_reduce", lower_scatter_with, "ScatterElements", ""},
    {"aten.scatter_add.default", lower_scatter_add, "ScatterElements", ""},
    {"aten.scatter_reduce.two", lower_scatter_reduce, "ScatterElements", ""},
    {"aten.select_scatter.default", lower_select_scatter, "Slice, Concat", ""},
    {"aten.slice_scatter.default", lower_slice_scatter, "Slice, Concat, ScatterND", ""},
};

}  // namespace

std::span<const OpRow> scatter_ops() { return kRows; }

}  // namespace fairlead::onnx
