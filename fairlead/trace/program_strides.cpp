// Where the elements of a tensor lie, for operators that read memory.
#include <algorithm>

#include "fairlead/trace/program_impl.h"

namespace fairlead {

// What lies densely, in whatever order of its dimensions: each stride is the product of the sizes
// within it. Null where a stride is none, or where the size is always 1 and any stride would do.
std::vector<Expr> ProgramBuilder::dense_strides(RunValue v, const Shape& shape) {
  const std::size_t count = request_.runs.size();
  std::vector<Expr> found(shape.size(), nullptr);
  Expr within = pool().constant(1);
  std::vector<std::int64_t> seen(count, 1);
  const auto size = [&](std::size_t r, std::size_t axis) {
    return request_.runs[r]->dim(v, static_cast<int>(axis));
  };
  const auto is_next = [&](std::size_t axis) {
    bool moves = false;
    for (std::size_t r = 0; r < count; ++r) {
      if (size(r, axis) == 1) continue;
      moves = true;
      if (request_.runs[r]->strides.at(v).at(axis) != seen[r]) return false;
    }
    return moves;
  };
  for (std::size_t placed = 0; placed < shape.size(); ++placed) {
    std::size_t axis = shape.size();
    for (std::size_t k = shape.size(); k-- > 0 && axis == shape.size();) {
      if (found[k] == nullptr && is_next(k)) axis = k;
    }
    if (axis == shape.size()) break;
    found[axis] = within;
    within = pool().mul(within, shape[axis]);
    for (std::size_t r = 0; r < count; ++r) seen[r] *= size(r, axis);
  }
  return found;
}

// x.as_strided(size, x.stride()): strides have no memory, but are those of x.
void ProgramBuilder::add_stride_hints(const OpRecord& record, const OpDef& def, const Node& node) {
  if (!def.name.has(Trait::kStrided) || node.args.at(0).kind != ArgKind::kValue) return;
  const auto v = static_cast<RunValue>(run_.items[record.items].i);
  if (!run_.strides.contains(v)) return;
  for (const Expr stride : dense_strides(v, graph().values[node.args[0].value].shape)) {
    if (stride != nullptr && !is_const(stride)) hints_.push_back(stride);
  }
}

// as_strided reads memory: the strides and the offset of its tensor become its last argument.
void ProgramBuilder::add_strides(const OpRecord& record, Node& node) {
  const auto v = static_cast<RunValue>(run_.items[record.items].i);
  const auto it = run_.strides.find(v);
  if (it == run_.strides.end()) return;
  const std::vector<Expr> dense = dense_strides(v, graph().values[node.args.at(0).value].shape);
  Arg list;
  list.kind = ArgKind::kList;
  for (std::size_t k = 0; k < it->second.size(); ++k) {
    std::vector<std::int64_t> seen;
    for (const Run* run : request_.runs) seen.push_back(run->strides.at(v).at(k));
    Arg stride;
    stride.kind = ArgKind::kInt;
    stride.expr = k < dense.size() && dense[k] != nullptr ? dense[k] : solve_int(seen, "a stride");
    list.items.push_back(std::move(stride));
  }
  node.args.push_back(std::move(list));
}

}  // namespace fairlead
