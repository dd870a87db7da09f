// Every form does the plain thing for types without NaN, and one more pass for those with it.
#include "fairlead/onnx/ops/nan_forms.h"

#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/index_forms.h"

namespace fairlead::onnx {

Val any_nan(Lowering& b, Val x, const std::vector<std::int64_t>& axes, bool keepdim) {
  if (!is_float(b.dtype_of(x))) return {};
  return any_true(b, b.op("IsNaN", {x}), axes, keepdim);
}

namespace {

bool is_mistaken(Lowering& b, Val x) {
  return b.dtype_of(x) == Dtype::kInt64 && b.avoids(Fault::kWideComparisons);
}

}  // namespace

Val larger(Lowering& b, bool largest, Val x, Val y) {
  if (!is_mistaken(b, x)) return b.op(largest ? "Max" : "Min", {x, y});
  return b.op("Where", {b.op(largest ? "Less" : "Greater", {x, y}), y, x});
}

Val extreme(Lowering& b, bool largest, Val x, const std::vector<std::int64_t>& axes, bool keepdim) {
  if (is_mistaken(b, x) && !axes.empty()) {
    for (const std::int64_t axis : axes) {  // the place is found right
      const Val place = extreme_place(b, largest, x, axis, true);
      x = b.op("GatherElements", {x, place}, {attr("axis", axis)});
    }
    return keepdim ? x : b.op("Squeeze", {x, b.ints(axes)});
  }
  const Val found = b.reduce(largest ? "ReduceMax" : "ReduceMin", x, axes, keepdim);
  const Val nan = any_nan(b, x, axes, keepdim);
  return nan.present() ? choose(b, nan, b.scalar(kNan, b.dtype_of(x)), found) : found;
}

Val extreme_place(Lowering& b, bool largest, Val x, std::int64_t axis, bool keepdim) {
  const auto place = [&](std::string_view op, Val v) {
    return b.op(op, {v},
                {attr("axis", axis), attr("keepdims", keepdim), attr("select_last_index", 0)});
  };
  const Val found = place(largest ? "ArgMax" : "ArgMin", x);
  const Val nan = any_nan(b, x, {axis}, keepdim);
  if (!nan.present()) return found;
  const Val first = place("ArgMax", b.cast(b.op("IsNaN", {x}), Dtype::kInt32));
  return b.op("Where", {nan, first, found});
}

// NaN is ordered as infinity, and infinity as the highest number: only these two are not told
// apart, and the values are taken from x itself.
Inputs ordered_top(Lowering& b, Val x, Val k, std::int64_t axis, bool largest) {
  const Dtype d = b.dtype_of(x);
  const Attributes attributes = {attr("axis", axis), attr("largest", largest), attr("sorted", 1)};
  if (!is_float(d)) return b.ops("TopK", {x, k}, {d, Dtype::kInt64}, attributes);
  const Num v{&b, x};
  const Num key = where(node("IsNaN", v), kInfinity, min(v, Lowering::highest(d)));
  const Val places = b.ops("TopK", {key, k}, {d, Dtype::kInt64}, attributes)[1];
  return {b.op("GatherElements", {x, places}, {attr("axis", axis)}), places};
}

}  // namespace fairlead::onnx
