// Sizes go through the run by the rules of its operators, as far as there are some.
#include "fairlead/trace/foresight.h"

#include <algorithm>

#include "fairlead/aten/rules/shapes.h"
#include "fairlead/base/error.h"
#include "fairlead/trace/carried_expr.h"

namespace fairlead {

Foresight::Foresight(const Vocabulary& vocabulary, const Run& run) : run_(run) {
  graph_.values.resize(run.values.size());
  known_.assign(run.values.size(), 0);
  numbers_.assign(run.carried.size(), nullptr);
  looked_at_.assign(run.carried.size(), 0);
  add_inputs();
  for (const OpRecord& record : run.ops) add_results(vocabulary, record);
  for (const Guard& guard : run.guards) add_guard(guard);
}

void Foresight::add_inputs() {
  for (const RunValue v : run_.inputs) {
    std::vector<Expr> shape;
    for (int axis = 0; axis < run_.values[static_cast<std::size_t>(v)].rank; ++axis) {
      shape.push_back(pool_.symbol("d" + std::to_string(seen_.size())));
      seen_.push_back(run_.dim(v, axis));
    }
    graph_.values[static_cast<std::size_t>(v)].shape = std::move(shape);
    known_[static_cast<std::size_t>(v)] = 1;
  }
}

// What came from outside has the sizes that it has.
bool Foresight::is_known(RunValue v) {
  if (v == kNoRunValue) return false;
  const auto k = static_cast<std::size_t>(v);
  if (known_[k] == 0 && run_.values[k].origin == Origin::kConstant) {
    std::vector<Expr> shape;
    for (int axis = 0; axis < run_.values[k].rank; ++axis) {
      shape.push_back(pool_.constant(run_.dim(v, axis)));
    }
    graph_.values[k].shape = std::move(shape);
    known_[k] = 1;
  }
  return known_[k] != 0;
}

// The argument at `at`, which moves behind it; false where it is not known.
bool Foresight::reads(std::uint32_t& at, Arg& arg) {
  const Item& item = run_.items[at++];
  switch (item.kind) {
    case ItemKind::kNone:
      return true;
    case ItemKind::kTensor:
      arg.kind = ArgKind::kValue;
      arg.value = static_cast<ValueId>(item.i);
      return is_known(static_cast<RunValue>(item.i));
    case ItemKind::kInt:
      arg.kind = ArgKind::kInt;
      arg.expr = item.carried == kNoCarry ? pool_.constant(item.i) : number(item.carried);
      return arg.expr != nullptr && !pool_.is_real(arg.expr);
    case ItemKind::kFloat:
      arg.kind = ArgKind::kFloat;
      arg.number = item.f;
      return true;
    case ItemKind::kBool:
      arg.kind = ArgKind::kBool;
      arg.number = static_cast<double>(item.i);
      return true;
    case ItemKind::kString:
      arg.kind = ArgKind::kString;
      return true;
    case ItemKind::kDtype:
      arg.kind = ArgKind::kDtype;
      arg.dtype = static_cast<Dtype>(item.i);
      return true;
    case ItemKind::kList:
      break;
  }
  arg.kind = ArgKind::kList;
  bool known = true;
  for (std::int64_t k = 0; k < item.i; ++k) {
    Arg inner;
    known = reads(at, inner) && known;
    arg.items.push_back(std::move(inner));
  }
  return known;
}

// Only sizes that a rule explains in this run.
void Foresight::add_results(const Vocabulary& vocabulary, const OpRecord& record) {
  const OpDef& def = vocabulary.ops[record.op];
  Node node;
  node.op = def.functional.text().empty() ? def.name : def.functional;
  const std::uint32_t end = record.items + record.item_count;
  for (std::uint32_t at = record.items; at < end;) {
    Arg arg;
    if (!reads(at, arg)) return;
    node.args.push_back(std::move(arg));
  }
  std::vector<RunValue> results;
  for (std::uint32_t k = 0; k < record.result_count; ++k) {
    const Item& item = run_.items[record.results + k];
    if (item.kind == ItemKind::kTensor) results.push_back(static_cast<RunValue>(item.i));
  }
  if (results.empty() || results[0] == kNoRunValue) return;
  ResultShapes shapes;
  try {
    shapes = result_shapes(pool_, graph_, node, results.size(),
                           run_.values[static_cast<std::size_t>(results[0])].rank);
  } catch (const Error&) {  // an overflow, a division by 0
    return;
  }
  for (std::size_t k = 0; k < std::min(shapes.size(), results.size()); ++k) {
    const RunValue v = results[k];
    if (v == kNoRunValue || known_[static_cast<std::size_t>(v)] != 0) continue;
    const ValueFact& fact = run_.values[static_cast<std::size_t>(v)];
    bool right = shapes[k].size() == fact.rank;
    for (int axis = 0; right && axis < fact.rank; ++axis) {
      const Expr e = shapes[k][static_cast<std::size_t>(axis)];
      right = e != nullptr && e->weight <= kHeaviest;
      if (!right) break;
      try {
        right = pool_.evaluate(e, seen_) == run_.dim(v, axis);
      } catch (const Error&) {
        right = false;
      }
    }
    if (!right) continue;
    graph_.values[static_cast<std::size_t>(v)].shape = std::move(shapes[k]);
    known_[static_cast<std::size_t>(v)] = 1;
  }
}

Expr Foresight::number(CarryId id) {
  const auto k = static_cast<std::size_t>(id);
  if (looked_at_[k] != 0) return numbers_[k];
  looked_at_[k] = 1;
  Expr made = nullptr;
  try {
    made = made_by(run_.carried[k]);
  } catch (const Error&) {  // an overflow, a division by 0
  }
  if (made != nullptr && made->weight <= kHeaviest) numbers_[k] = made;
  return numbers_[k];
}

Expr Foresight::made_by(const Carry& node) {
  switch (node.kind) {
    case CarryKind::kInt:
      return pool_.constant(node.i);
    case CarryKind::kFloat:
      return pool_.real(node.f);
    case CarryKind::kDim:
      if (!is_known(node.a)) return nullptr;
      return graph_.values[static_cast<std::size_t>(node.a)]
          .shape[static_cast<std::size_t>(node.b)];
    case CarryKind::kRead:
      return nullptr;
    default:
      break;
  }
  const Expr a = number(node.a);
  const Expr b = node.b == kNoCarry ? nullptr : number(node.b);
  if (a == nullptr || (node.b != kNoCarry && b == nullptr)) return nullptr;
  return computed(pool_, node, a, b);
}

void Foresight::add_guard(const Guard& guard) {
  if (guard.compare == Compare::kKey || guard.compare == Compare::kCount) return;
  if (guard.left == kNoCarry || guard.right == kNoCarry) return;
  ProgramGuard known;
  known.compare = guard.compare;
  known.outcome = guard.outcome;
  known.left = number(guard.left);
  known.right = number(guard.right);
  if (known.left == nullptr || known.right == nullptr) return;
  if (is_const(known.left) && is_const(known.right)) return;
  guards_.push_back(std::move(known));
}

bool Foresight::keeps(const std::vector<std::vector<std::int64_t>>& sizes) const {
  std::vector<std::int64_t> values;
  for (const auto& shape : sizes) values.insert(values.end(), shape.begin(), shape.end());
  if (values.size() != seen_.size()) return true;
  return std::all_of(guards_.begin(), guards_.end(), [&](const ProgramGuard& guard) {
    const std::optional<bool> found = answer_at(pool_, guard, values);
    return !found || *found == guard.outcome;
  });
}

}  // namespace fairlead
