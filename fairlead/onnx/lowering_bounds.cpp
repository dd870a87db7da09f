// A file that refuses sizes at which the model executes another program.
//
// ONNX has no assertion. An index outside of its tensor is an error in every runtime, and the
// node's name, which runtimes put into it, says what was expected. An input goes through the check
// (a Reshape to its own shape), so that nothing is computed from it before.
#include <algorithm>

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

void Lowering::check_bounds() {
  for (const SizeBounds& bounds : options_.bounds) check_bounds(bounds);
}

void Lowering::check_bounds(const SizeBounds& bounds) {
  const Expr symbol = pool().symbol(bounds.symbol);
  const auto holds = [&](ValueId id) {
    const Shape& shape = graph_.values[id].shape;
    return used_[id] && !is_complex(graph_.values[id].dtype) &&
           std::find(shape.begin(), shape.end(), symbol) != shape.end();
  };
  // Integers first: they are small, and a runtime may copy what it reshapes.
  const auto small = [&](ValueId id) { return holds(id) && !is_float(graph_.values[id].dtype); };
  auto input = std::find_if(graph_.inputs.begin(), graph_.inputs.end(), small);
  if (input == graph_.inputs.end()) {
    input = std::find_if(graph_.inputs.begin(), graph_.inputs.end(), holds);
  }
  if (input == graph_.inputs.end()) return;  // no result depends on that size

  const Val size = dim(symbol);
  std::string words = bounds.symbol + " is ";
  Val beyond;  // 0 within the bounds, else -2, -4, .. or 1, 2, ..
  if (bounds.min > 1) {
    const Val short_by = op("Min", {op("Sub", {size, ints({bounds.min})}), ints({0})});
    beyond = op("Mul", {short_by, ints({2})});
    words += "at least " + std::to_string(bounds.min);
  }
  if (bounds.max < INT64_MAX) {
    const Val over_by = op("Max", {op("Sub", {size, ints({bounds.max})}), ints({0})});
    words += (bounds.min > 1 ? " and at most " : "at most ") + std::to_string(bounds.max);
    beyond = beyond.present() ? op("Add", {beyond, over_by}) : over_by;
  }
  if (!beyond.present()) return;
  const Val zero = fresh_op("Gather", {ints({0}), beyond}, {attr("axis", 0)}, Dtype::kInt64);
  model_.graph.nodes.back().name = unique(words);
  const std::vector<std::int64_t> same(graph_.values[*input].shape.size(), 0);
  const Val shape = op("Add", {ints(same), zero});
  values_[*input] = op("Reshape", {values_[*input], shape});
}

Val Lowering::zero_where(Expr holds, const std::string& words) {
  const Val beyond = size_scalar(pool().sub(expr(1), holds));
  const Val zero = fresh_op("Gather", {ints({0}), beyond}, {attr("axis", 0)}, Dtype::kInt64);
  model_.graph.nodes.back().name = unique(words);
  return zero;
}

}  // namespace fairlead::onnx
