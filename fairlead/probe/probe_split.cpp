// Stage 3: groups that run are split where a part of them may move alone.
#include <algorithm>

#include "fairlead/probe/probe_impl.h"

namespace fairlead {

// A part is free when it may be larger than the rest and also smaller: a mask that is too long may
// go unnoticed, one that is too short does not. Sums follow the first place of their part, so both
// orders of the places are tried where the group is part of a sum. Of two parts of a long program
// brief runs are enough: what confirms them makes each the larger one in turn, in whole runs.
Task<Prober::Free> Prober::free_alone(std::size_t g, const std::vector<Place>& places) {
  const Group whole = groups_[g];
  Group part = whole;
  part.places = places;
  Group rest = whole;
  std::erase_if(rest.places, [&](const Place& p) { return contains(places, p); });
  const std::size_t before = kept_.size();
  const std::int64_t size = whole.unit > 1    ? whole.base + whole.unit
                            : whole.only_down ? down(whole, whole.base)
                                              : whole.base + 1 + step(whole.base);
  const bool brief = long_ && !in_sum(g) && units(whole).size() == 2;
  const bool of_one = by_leaf(whole.places).size() == 1;
  constexpr Free kWays[] = {Free::kAlone, Free::kWithSums};
  for (const Free free : kWays) {
    if (free == Free::kWithSums && !in_sum(g)) break;
    const Group& first = free == Free::kAlone ? rest : part;
    const Group& second = free == Free::kAlone ? part : rest;
    groups_[g].places = first.places;
    groups_[g].places.insert(groups_[g].places.end(), second.places.begin(), second.places.end());
    // The rest first: what is too short is refused early, what is too long runs to the end.
    bool moved = co_await moves_visibly(rest, size, of_one, brief);
    if (moved) moved = co_await moves_visibly(part, size, of_one, brief);
    if (moved) co_return free;
    kept_.resize(before);
  }
  groups_[g].places = whole.places;
  co_return Free::kNo;
}

// A part that no operator looks at (an input that is ignored) stays with its like, but two axes of
// one tensor that are summed up leave no number either.
Task<bool> Prober::moves_visibly(Group& group, std::int64_t size, bool of_one, bool brief) {
  visible_ = of_one;
  std::string ignored;
  bool moved = co_await moves(group, size, ignored, brief);
  if (moved && !visible_ && brief) moved = co_await moves(group, size, ignored);
  co_return moved&& visible_;
}

Task<void> Prober::split(std::size_t g) {
  if (!groups_[g].dynamic || groups_[g].pinned) co_return;
  if (groups_[g].sum_of[0] >= 0) {
    co_await split_sum(g);
    co_return;
  }
  const auto axes = by_axis(groups_[g].places);
  auto parts = units(groups_[g]);
  if (axes.size() > 1 && axes.size() < parts.size()) {
    for (std::size_t k = 1; k < axes.size(); ++k) co_await separate(g, axes[k]);
    parts = units(groups_[g]);
  }
  bool changed = true;
  while (changed && parts.size() > 1) {
    changed = false;
    for (std::size_t k = 0; k < parts.size() && parts.size() > 1; ++k) {
      const bool own = co_await separate(g, parts[k]);
      if (!own) continue;
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(k));
      changed = true;
      break;
    }
    if (changed || parts.size() < 4 || parts.size() > 6) continue;
    for (std::size_t a = 0; a < parts.size() && !changed; ++a) {
      for (std::size_t b = a + 1; b < parts.size() && !changed; ++b) {
        std::vector<Place> pair = parts[a];
        pair.insert(pair.end(), parts[b].begin(), parts[b].end());
        const bool own = co_await separate(g, pair);
        if (!own) continue;
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(b));
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(a));
        changed = true;
      }
    }
  }
}

// The sizes that were asked for, of all of these places.
std::pair<std::int64_t, std::int64_t> Prober::asked_of(const std::vector<Place>& places) const {
  std::pair<std::int64_t, std::int64_t> range(0, INT64_MAX);
  for (const Place& p : places) {
    const DimRequest& asked = request_.leaves[static_cast<std::size_t>(p.leaf)]
                                  .requests[static_cast<std::size_t>(p.axis)];
    range = {std::max(range.first, asked.min), std::min(range.second, asked.max)};
  }
  return range;
}

// Makes the places a group of their own where they are free. What was asked of one part is not
// asked of the other.
Task<bool> Prober::separate(std::size_t g, const std::vector<Place>& places) {
  const Free free = co_await free_alone(g, places);
  if (free == Free::kNo) co_return false;
  Group part = groups_[g];
  const auto whole = asked_of(part.places);
  part.places = places;
  std::erase_if(groups_[g].places, [&](const Place& p) { return contains(places, p); });
  for (Group* each : {&part, &groups_[g]}) {
    const auto own = asked_of(each->places);
    if (each->min == whole.first) each->min = own.first;
    if (each->max == whole.second) each->max = own.second;
  }
  groups_.push_back(std::move(part));
  if (free == Free::kAlone) co_return true;
  for (Group& sum : groups_) {
    for (int& of : sum.sum_of) {
      if (of == static_cast<int>(g)) of = static_cast<int>(groups_.size()) - 1;
    }
  }
  co_return true;
}

// A dimension that left its size of 1 and is fixed after all has one size in every run.
void Prober::drop_runs_of_fixed() {
  std::erase_if(kept_, [&](const Kept& kept) {
    return std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
      return !group.dynamic && group.sum_of[0] < 0 && size_in(kept.sizes, group) != group.base;
    });
  });
}

}  // namespace fairlead
