// A file that refuses sizes at which the model executes another program.
//
// ONNX has no assertion. An index outside of its tensor is an error in every runtime, and the
// node's name, which runtimes put into it, says what was expected. An input goes through the check
// (an Expand to its own shape), so that nothing is computed from it before. No Reshape: of several
// in a row ONNX Runtime keeps the last, and with it one check.
#include <algorithm>

#include "fairlead/base/error.h"
#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

void Lowering::check_bounds() {
  for (const SizeBounds& bounds : options_.bounds) check_bounds(bounds);
  check_steps();
  for (const Requirement& asked : graph_.requirements) {
    std::vector<Expr> symbols;
    bool of_sizes = true;
    for (const SymbolId id : pool().symbols_of(asked.holds)) {
      symbols.push_back(pool().symbol(pool().symbols()[id].name));
      of_sizes = of_sizes && pool().symbols()[id].kind == SymbolKind::kSize;
    }
    if (of_sizes) stop_where(op("Sub", {ints({1}), dim(asked.holds)}), asked.words, symbols);
  }
}

// The value itself, where `zero` can be computed.
Val Lowering::behind(Val v, std::size_t rank, Val zero) {
  if (rank > 0) return op("Expand", {v, op("Add", {ints({1}), zero})});
  return op("Expand", {v, op("Slice", {zero, ints({0}), ints({0})})});
}

// What was asked of values is known when they are: from there on their numbers go through the check,
// so that nothing is computed of others, and so does an output, for what uses no number of it.
void Lowering::check_values(bool at_end) {
  values_checked_.resize(graph_.requirements.size());
  for (std::size_t k = 0; k < graph_.requirements.size(); ++k) {
    const Requirement& asked = graph_.requirements[k];
    if (values_checked_[k]) continue;
    const std::vector<SymbolId> symbols = pool().symbols_of(asked.holds);
    bool known = true, of_sizes = true;
    for (const SymbolId id : symbols) {
      const SymbolSource& source = graph_.symbol_sources.at(id);
      of_sizes = of_sizes && pool().symbols()[id].kind == SymbolKind::kSize;
      known = known && source.value != kNoValue &&
              static_cast<std::size_t>(source.value) < values_.size() &&
              values_[source.value].present();
    }
    values_checked_[k] = of_sizes || known;
    if (of_sizes) continue;
    if (!known && at_end) {
      throw Error(
          ErrorCode::kUnsupported,
          "[lower] Expected values that the file computes outside of loops for its check \"" +
              asked.words + "\". The model decides by them; decide by sizes there.");
    }
    if (!known) continue;
    const Val beyond = op("Sub", {ints({1}), dim(asked.holds)});
    const Val zero = fresh_op("Gather", {ints({0}), beyond}, {attr("axis", 0)}, Dtype::kInt64);
    model_.graph.nodes.back().name = unique(asked.words);
    for (const SymbolId id : symbols) {
      const Symbol& symbol = pool().symbols()[id];
      if (symbol.kind == SymbolKind::kSize) continue;
      const bool real = symbol.kind == SymbolKind::kReadReal;
      const Val nothing = real ? cast(zero, Dtype::kFloat64) : zero;
      use_instead(id, op("Add", {real ? this->real(pool().symbol(symbol.name))
                                      : dim(pool().symbol(symbol.name)),
                                 nothing}));
    }
    value_checks_.push_back(zero);
  }
  if (!at_end) return;
  const auto plain = [&](ValueId id) { return !is_complex(graph_.values[id].dtype); };
  const auto output = std::find_if(graph_.outputs.begin(), graph_.outputs.end(), plain);
  if (output == graph_.outputs.end()) return;
  for (const Val& zero : value_checks_) {
    values_[*output] = behind(values_[*output], graph_.values[*output].shape.size(), zero);
  }
}

// A dimension that is a number of times a symbol: other sizes would be rounded down. Programs that
// were joined ask this of what is theirs alone themselves.
void Lowering::check_steps() {
  for (std::size_t id = 0; id < graph_.symbol_sources.size(); ++id) {
    const SymbolSource& source = graph_.symbol_sources[id];
    if (source.value == kNoValue || source.divisor == 1 ||
        pool().symbols()[id].kind != SymbolKind::kSize) {
      continue;
    }
    const Expr size_of = graph_.values[source.value].shape[source.axis];
    const Expr symbol = pool().symbol(pool().symbols()[id].name);
    if (size_of != pool().mul(symbol, pool().constant(source.divisor))) continue;
    const Val size = op("Shape", {value(source.value)},
                        {attr("start", source.axis), attr("end", source.axis + 1)});
    const std::string words = "axis " + std::to_string(source.axis) + " of " +
                              graph_.values[source.value].name + " is a multiple of " +
                              std::to_string(source.divisor);
    stop_where(op("Mod", {size, ints({source.divisor})}), words, {size_of});
  }
}

// The model stops, with these words in the runtime's message, where `beyond` is not 0. An input
// that has one of these sizes goes through the check.
void Lowering::stop_where(const Val& beyond, const std::string& words,
                          const std::vector<Expr>& sizes) {
  const auto holds = [&](ValueId id) {
    const Shape& shape = graph_.values[id].shape;
    return used_[id] && !is_complex(graph_.values[id].dtype) &&
           std::any_of(shape.begin(), shape.end(), [&](Expr e) {
             return std::find(sizes.begin(), sizes.end(), e) != sizes.end();
           });
  };
  // Integers first: they are small, and a runtime may copy what it reshapes.
  const auto small = [&](ValueId id) { return holds(id) && !is_float(graph_.values[id].dtype); };
  auto input = std::find_if(graph_.inputs.begin(), graph_.inputs.end(), small);
  if (input == graph_.inputs.end()) {
    input = std::find_if(graph_.inputs.begin(), graph_.inputs.end(), holds);
  }
  if (input == graph_.inputs.end()) {  // a multiple of it, or a sum, is what inputs have
    input = std::find_if(graph_.inputs.begin(), graph_.inputs.end(), [&](ValueId id) {
      return used_[id] && !is_complex(graph_.values[id].dtype);
    });
  }
  if (input == graph_.inputs.end()) return;  // no result depends on an input
  const Val zero = fresh_op("Gather", {ints({0}), beyond}, {attr("axis", 0)}, Dtype::kInt64);
  model_.graph.nodes.back().name = unique(words);
  values_[*input] = behind(values_[*input], graph_.values[*input].shape.size(), zero);
}

void Lowering::check_bounds(const SizeBounds& bounds) {
  const Expr symbol = pool().symbol(bounds.symbol);
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
  if (beyond.present()) stop_where(beyond, words, {symbol});
}

}  // namespace fairlead::onnx
