// What was found out, as symbols, shapes, fixed dimensions and runs.
#include <algorithm>
#include <map>
#include <set>

#include "fairlead/probe/names.h"
#include "fairlead/probe/probe_impl.h"

namespace fairlead {

ProbeResult Prober::finish() {
  ProbeResult result;
  result.pool = std::make_shared<ExprPool>();
  result.trials = trials_;
  result.base_parted = moved_base_;
  std::map<std::string, int> names;
  std::vector<Expr> symbol_of(groups_.size(), nullptr);
  std::vector<std::size_t> owner;  // symbol -> group
  // Batches first, then in the order of the inputs, whatever the order in which they were found.
  std::vector<std::size_t> order = free_groups();
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Place x = groups_[a].places[0], y = groups_[b].places[0];
    if ((x.axis == 0) != (y.axis == 0)) return x.axis == 0;
    return x.leaf != y.leaf ? x.leaf < y.leaf : x.axis < y.axis;
  });
  for (const std::size_t g : order) {
    const Group& group = groups_[g];
    std::string name = group.name;
    if (name.empty()) {
      const Place p = group.places[0];
      name = symbol_name(request_.leaves[p.leaf].name, p.axis, base_[p.leaf].size());
    }
    const int count = names[name]++;
    if (count > 0) name += "_" + std::to_string(count);
    const Expr symbol = result.pool->symbol(name);
    symbol_of[g] =
        group.unit > 1 ? result.pool->mul(symbol, result.pool->constant(group.unit)) : symbol;
    owner.push_back(g);
    ProbedSymbol probed;
    probed.name = name;
    probed.min = std::max<std::int64_t>(1, group.min / group.unit);
    const std::int64_t limit = group.only_down ? std::min(group.max, group.base) : group.max;
    probed.max = limit == INT64_MAX ? INT64_MAX : limit / group.unit;
    probed.other_above = group.other_above;
    probed.other_below = group.other_below;
    probed.below = group.below;
    if (group.other_above) probed.reason = group.reason;
    std::set<std::int64_t> tried;
    for (const Kept& kept : kept_) tried.insert(size_in(kept.sizes, group) / group.unit);
    probed.tried.assign(tried.begin(), tried.end());
    result.symbols.push_back(std::move(probed));
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    if (group.sum_of[0] < 0) continue;
    // A part that is fixed counts with its size.
    const auto part = [&](int k) {
      if (group.sum_of[k] < 0) return result.pool->constant(0);
      const Expr e = symbol_of[group.sum_of[k]];
      return e != nullptr ? e : result.pool->constant(groups_[group.sum_of[k]].base);
    };
    symbol_of[g] =
        result.pool->add(result.pool->add(part(0), part(1)), result.pool->constant(group.sum_more));
  }
  for (std::size_t leaf = 0; leaf < base_.size(); ++leaf) {
    std::vector<Expr> shape;
    for (std::size_t axis = 0; axis < base_[leaf].size(); ++axis) {
      shape.push_back(result.pool->constant(base_[leaf][axis]));
    }
    result.shapes.push_back(std::move(shape));
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const Place& p : groups_[g].places) {
      if (symbol_of[g] != nullptr) {
        result.shapes[p.leaf][p.axis] = symbol_of[g];
      } else {
        result.fixed.push_back(
            {p.leaf, p.axis, base_[p.leaf][p.axis], groups_[g].why, groups_[g].reason});
      }
    }
  }
  for (std::size_t leaf = 0; leaf < base_.size(); ++leaf) {
    for (std::size_t axis = 0; axis < base_[leaf].size(); ++axis) {
      if (request_.leaves[leaf].requests[axis].kind == DimRequest::Kind::kStatic) {
        result.fixed.push_back(
            {leaf, axis, base_[leaf][axis], FixedDim::Why::kAsked, "dynamic_shapes says so"});
      }
    }
  }
  std::stable_sort(result.fixed.begin(), result.fixed.end(),
                   [](const FixedDim& a, const FixedDim& b) {
                     return a.leaf != b.leaf ? a.leaf < b.leaf : a.axis < b.axis;
                   });
  for (const Kept& kept : kept_) {
    ProbedRun run{kept.run, {}};
    for (const std::size_t g : owner) {
      run.values.push_back(size_in(kept.sizes, groups_[g]) / groups_[g].unit);
    }
    if (kept.run == first_) {
      result.runs.insert(result.runs.begin(), std::move(run));
    } else {
      result.runs.push_back(std::move(run));
    }
  }
  return result;
}

}  // namespace fairlead
