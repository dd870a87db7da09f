#include "fairlead/trace/foresight.h"

#include <algorithm>
#include <unordered_map>

#include "fairlead/base/error.h"
#include "fairlead/trace/carried_expr.h"

namespace fairlead {

Foresight::Foresight(const Run& run) {
  std::unordered_map<RunValue, std::vector<Expr>> shapes;
  std::size_t count = 0;
  for (const RunValue v : run.inputs) {
    std::vector<Expr>& shape = shapes[v];
    shape.clear();
    for (int axis = 0; axis < run.values[static_cast<std::size_t>(v)].rank; ++axis) {
      shape.push_back(pool_.symbol("d" + std::to_string(count++)));
    }
  }
  std::vector<Expr> nodes;
  nodes.reserve(run.carried.size());
  const auto made_by = [&](const Carry& node) -> Expr {
    switch (node.kind) {
      case CarryKind::kInt:
        return pool_.constant(node.i);
      case CarryKind::kFloat:
        return pool_.real(node.f);
      case CarryKind::kDim: {
        const auto it = shapes.find(node.a);
        return it == shapes.end() ? nullptr : it->second.at(static_cast<std::size_t>(node.b));
      }
      case CarryKind::kRead:
        return nullptr;
      default:
        break;
    }
    const Expr a = nodes[static_cast<std::size_t>(node.a)];
    const Expr b = node.b == kNoCarry ? nullptr : nodes[static_cast<std::size_t>(node.b)];
    if (a == nullptr || (node.b != kNoCarry && b == nullptr)) return nullptr;
    return computed(pool_, node, a, b);
  };
  for (const Carry& node : run.carried) {
    Expr made = nullptr;
    try {
      made = made_by(node);
    } catch (const Error&) {  // an overflow, a division by 0
    }
    if (made != nullptr && made->weight > kHeaviest) made = nullptr;
    nodes.push_back(made);
  }
  for (const Guard& guard : run.guards) {
    if (guard.compare == Compare::kKey || guard.compare == Compare::kCount) continue;
    if (guard.left == kNoCarry || guard.right == kNoCarry) continue;
    const Expr left = nodes[static_cast<std::size_t>(guard.left)];
    const Expr right = nodes[static_cast<std::size_t>(guard.right)];
    if (left == nullptr || right == nullptr) continue;
    if (is_const(left) && is_const(right)) continue;
    ProgramGuard known;
    known.compare = guard.compare;
    known.outcome = guard.outcome;
    known.left = left;
    known.right = right;
    guards_.push_back(std::move(known));
  }
}

bool Foresight::keeps(const std::vector<std::vector<std::int64_t>>& sizes) const {
  std::vector<std::int64_t> values;
  for (const auto& shape : sizes) values.insert(values.end(), shape.begin(), shape.end());
  if (values.size() != pool_.symbols().size()) return true;
  return std::all_of(guards_.begin(), guards_.end(), [&](const ProgramGuard& guard) {
    const std::optional<bool> found = answer_at(pool_, guard, values);
    return !found || *found == guard.outcome;
  });
}

}  // namespace fairlead
