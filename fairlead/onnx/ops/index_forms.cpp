// What reading, writing and ordering by index share.
#include "fairlead/onnx/ops/index_forms.h"

#include <algorithm>
#include <numeric>

namespace fairlead::onnx {

Val range(Lowering& b, Expr n) { return range(b, b.expr(0), n, b.expr(1)); }

Val range(Lowering& b, Expr start, Expr n, Expr step) {
  if (is_const(start) && is_const(n) && is_const(step) && n->value <= 4096) {
    Ints values(static_cast<std::size_t>(std::max<std::int64_t>(n->value, 0)));
    // The last one is the largest: the pool refuses what is beyond 64 bits.
    if (!values.empty()) (void)b.pool().add(start, b.pool().mul(b.expr(n->value - 1), step));
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] = start->value + static_cast<std::int64_t>(k) * step->value;
    }
    return b.ints(values);
  }
  const Expr end = b.pool().add(start, b.pool().mul(n, step));
  return b.op("Range", {b.size_scalar(start), b.size_scalar(end), b.size_scalar(step)});
}

Val choose(Lowering& b, Val condition, Val yes, Val no) {
  const Dtype d = b.dtype_of(yes);
  const bool narrow = d == Dtype::kBool || d == Dtype::kInt16 || d == Dtype::kUint16;
  const Dtype work = d == Dtype::kBool ? Dtype::kUint8 : narrow ? Dtype::kInt32 : d;
  return b.cast(b.op("Where", {condition, b.cast(yes, work), b.cast(no, work)}), d);
}

Val ordered(Lowering& b, Val v) {
  const Dtype d = b.dtype_of(v);
  if (d == Dtype::kBfloat16) return b.cast(v, Dtype::kFloat32);
  return d == Dtype::kBool || d == Dtype::kInt16 || d == Dtype::kUint16 ? b.cast(v, Dtype::kInt32)
                                                                        : v;
}

Ints to_front(std::int64_t axis, int rank) {
  Ints perm{axis};
  for (std::int64_t k = 0; k < rank; ++k) {
    if (k != axis) perm.push_back(k);
  }
  return perm;
}

Ints inverse(const Ints& perm) {
  Ints back(perm.size());
  for (std::size_t k = 0; k < perm.size(); ++k) back[perm[k]] = static_cast<std::int64_t>(k);
  return back;
}

Shape broadcast(Lowering& b, const Shape& x, const Shape& y) {
  Shape both(std::max(x.size(), y.size()), b.expr(1));
  for (const Shape* shape : {&x, &y}) {
    for (std::size_t k = 1; k <= shape->size(); ++k) {
      Expr& place = both[both.size() - k];
      if (is_const(place, 1)) place = (*shape)[shape->size() - k];
    }
  }
  return both;
}

Val any_true(Lowering& b, Val v, Ints axes, bool keepdim) {
  const Val number = b.cast(v, Dtype::kInt32);
  return b.cast(b.reduce("ReduceMax", number, std::move(axes), keepdim), Dtype::kBool);
}

namespace {

// The type in which a reduction is computed: half precision sums in float32, bools and narrow
// integers in int32.
Dtype reducing(Dtype d) {
  if (d == Dtype::kFloat16 || d == Dtype::kBfloat16) return Dtype::kFloat32;
  if (d == Dtype::kBool || dtype_size(d) < 4) return Dtype::kInt32;
  return d;
}

Val scatter(Lowering& b, std::string_view type, Val data, Val indices, Val updates,
            std::string_view reduction, Attributes attributes) {
  const Dtype d = b.dtype_of(data);
  if (reduction == "none") {
    return b.op(type, {data, indices, b.cast(updates, d)}, std::move(attributes));
  }
  attributes.push_back(attr("reduction", reduction));
  const Dtype work = reducing(d);
  const Val result = b.op(type, {b.cast(data, work), indices, b.cast(b.cast(updates, d), work)},
                          std::move(attributes));
  return b.cast(result, d);
}

}  // namespace

Val scatter_nd(Lowering& b, Val data, Val indices, Val updates, std::string_view reduction) {
  return scatter(b, "ScatterND", data, indices, updates, reduction, {});
}

Val scatter_elements(Lowering& b, Val data, Val indices, Val updates, std::int64_t axis,
                     std::string_view reduction) {
  return scatter(b, "ScatterElements", data, indices, updates, reduction, {attr("axis", axis)});
}

// ---- lists of indices ---------------------------------------------------------------------------

IndexList read_indices(Lowering& b, std::size_t i, int rank) {
  const std::vector<Arg>& items = b.node().args[i].items;
  const Inputs values = b.ins(i);
  IndexList list;
  std::int64_t axis = 0;
  for (std::size_t k = 0; k < items.size(); ++k) {
    if (items[k].kind != ArgKind::kValue) {
      ++axis;
      continue;
    }
    const Value& index = b.graph().values[items[k].value];
    if (index.dtype != Dtype::kBool && index.dtype != Dtype::kUint8) {
      list.items.push_back({axis++,
                            b.cast(values[k], Dtype::kInt64),
                            static_cast<int>(index.shape.size()),
                            index.shape,
                            {}});
      continue;
    }
    if (index.shape.empty()) b.unsupported("a mask without dimensions");
    const Val places = b.op("NonZero", {b.cast(values[k], Dtype::kBool)});
    for (std::size_t d = 0; d < index.shape.size(); ++d) {
      const Val at = b.size_scalar(b.expr(static_cast<std::int64_t>(d)));
      list.items.push_back(
          {axis++, b.op("Gather", {places, at}, {attr("axis", 0)}), 1, std::nullopt, places});
    }
  }
  if (list.items.empty()) b.unsupported("no index");
  bool adjacent = true;
  for (std::size_t k = 0; k < list.items.size(); ++k) {
    list.perm.push_back(list.items[k].axis);
    list.wide = std::max(list.wide, list.items[k].rank);
    adjacent = adjacent && (k == 0 || list.items[k].axis == list.items[k - 1].axis + 1);
  }
  list.front = adjacent ? list.items[0].axis : 0;
  for (std::int64_t k = 0; k < rank; ++k) {
    if (std::find(list.perm.begin(), list.perm.end(), k) == list.perm.end()) list.perm.push_back(k);
  }
  return list;
}

namespace {

bool same_shape(const Index& a, const Index& b) {
  return a.shape && b.shape ? *a.shape == *b.shape : !a.shape && !b.shape && a.mask.id == b.mask.id;
}

}  // namespace

Val IndexList::wide_shape(Lowering& b) const {
  const bool known =
      std::all_of(items.begin(), items.end(), [](const Index& i) { return i.shape; });
  if (!known) {
    Val sum = items[0].value;
    for (std::size_t k = 1; k < items.size(); ++k) {
      if (!same_shape(items[k], items[0])) sum = b.op("Add", {sum, items[k].value});
    }
    return b.op("Shape", {sum});
  }
  Shape shape;
  for (const Index& i : items) shape = broadcast(b, shape, *i.shape);
  return b.shape_tensor(shape);
}

Val IndexList::together(Lowering& b) const {
  if (items.size() > 1 && items[0].mask.present() &&
      std::all_of(items.begin(), items.end(),
                  [&](const Index& i) { return i.mask.id == items[0].mask.id; })) {
    return b.transpose(items[0].mask, {1, 0});
  }
  const bool equal = std::all_of(items.begin(), items.end(),
                                 [&](const Index& i) { return same_shape(i, items[0]); });
  const Val target = equal ? Val{} : wide_shape(b);
  Inputs parts;
  for (const Index& i : items) {
    parts.push_back(b.unsqueeze(equal ? i.value : b.op("Expand", {i.value, target}), {-1}));
  }
  return b.concat(parts, -1);
}

Ints IndexList::back(int result_rank) const {
  Ints order;
  for (std::int64_t k = 0; k < front; ++k) order.push_back(wide + k);
  for (std::int64_t k = 0; k < wide; ++k) order.push_back(k);
  for (std::int64_t k = wide + front; k < result_rank; ++k) order.push_back(k);
  return order;
}

}  // namespace fairlead::onnx
