// Operators that only constants decide become what was kept of their results.
#include "fairlead/trace/program_impl.h"

namespace fairlead {

// An operator whose arguments no input decides, with the same integers in every run: its kept
// result is the constant.
bool ProgramBuilder::folds(const OpRecord& record, const OpDef& def) {
  if (def.random || def.writes >= 0) return false;
  // A quantized weight is there to be small: it is dequantized when the model runs.
  if (def.name.has(Trait::kExpands)) return false;
  for (std::uint32_t k = 0; k < record.result_count; ++k) {
    const Item& item = run_.items[record.results + k];
    if (item.kind == ItemKind::kList) continue;
    if (item.kind != ItemKind::kTensor) return false;
    const RunValue v = static_cast<RunValue>(item.i);
    if (run_.values[v].tainted || !run_.kept.contains(v) || written_[root(v)]) return false;
    for (const Run* run : request_.runs) {
      for (int axis = 0; axis < run_.values[v].rank; ++axis) {
        if (run->dim(v, axis) != run_.dim(v, axis)) return false;
      }
    }
  }
  std::uint32_t at = record.items;
  for (std::uint32_t k = 0; k < record.item_count; ++k, ++at) {
    const Item& item = run_.items[at];
    if (item.kind == ItemKind::kTensor) {
      const RunValue v = static_cast<RunValue>(item.i);
      if (!is_constant(v)) return false;
    } else if (item.kind == ItemKind::kInt || item.kind == ItemKind::kBool) {
      const auto seen = over_runs(at, false, [](const Item& i) { return i.i; });
      if (item.kind == ItemKind::kInt) {
        const Expr known = remembered(at, seen);  // a value that was read may not have varied
        if (known != nullptr && !is_const(known)) return false;
      }
      for (const std::int64_t value : seen) {
        if (value != item.i) return false;
      }
    } else if (item.kind == ItemKind::kFloat) {
      const auto seen = over_runs(at, false, number_of);
      for (const double value : seen) {
        if (value != item.f && value == value) return false;
      }
    }
  }
  for (std::uint32_t k = 0; k < record.result_count; ++k) {
    const Item& item = run_.items[record.results + k];
    if (item.kind != ItemKind::kTensor) continue;
    const RunValue v = static_cast<RunValue>(item.i);
    fold(v, run_.kept.at(v));
  }
  return true;
}

bool ProgramBuilder::is_constant(RunValue v) {
  if (written_[root(v)]) return false;
  if (!functional_.defined(v)) {
    if (run_.values[v].origin != Origin::kConstant) return false;
    add_constant(v);
  }
  return graph().constant(functional_.read(v)) != nullptr;
}

void ProgramBuilder::fold(RunValue v, const RunConstant& kept) {
  std::vector<Expr> shape;
  Constant constant;
  for (int axis = 0; axis < run_.values[v].rank; ++axis) {
    constant.dims.push_back(run_.dim(v, axis));
    shape.push_back(pool().constant(constant.dims.back()));
  }
  constant.data = kept.data;
  constant.strides = kept.strides;
  constant.value = graph().add_value(run_.values[v].dtype, std::move(shape));
  const ValueId id = constant.value;
  graph().add_constant(std::move(constant));
  functional_.define_root(v, id);
}

}  // namespace fairlead
