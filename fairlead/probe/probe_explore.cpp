// Stages 1 and 2: sizes of one are left, then each group is changed alone, in parts, in multiples.
#include <algorithm>

#include "fairlead/probe/probe_impl.h"
#include "fairlead/probe/sizes.h"

namespace fairlead {

// At a size of 1 a model may take another path (one token to decode, broadcasting). Where a
// dimension of 1 can be larger, the program there is the one that counts. In order: alone, with a
// sum that it is part of, both as the program of the example; then the same with a program of its
// own.
void Prober::leave_ones() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].base > 1) continue;
    if (groups_[g].base == 0) {
      groups_[g].reason = "its size is 0";
      continue;
    }
    std::string refusal;
    bool left = false;
    for (const bool own : {false, true}) {
      left = left || (!own && leave_one(g, own, refusal));
      for (const SumGuess& guess : sums_with(g)) {
        if (left) break;
        suppose(guess, g);
        left = leave_one(g, own, refusal);
        if (left) {
          groups_[guess.sum].dynamic = true;
        } else {
          take_back(guess);
        }
      }
      left = left || (own && leave_one(g, own, refusal));
      if (left) break;
    }
    if (!left) groups_[g].reason = refusal.empty() ? "its size is 1" : refusal;
  }
}

bool Prober::leave_one(std::size_t g, bool own_program, std::string& refusal) {
  Group& group = groups_[g];
  int tries = 0;
  // A size that no other dimension has: 1 + 3 may be the length of a mask where 3 is a batch or a
  // past.
  for (const std::int64_t size : {3, 2, 5, 7, 11}) {
    if (tries == 2 || !allowed(group, size) || taken_.contains(size)) continue;
    ++tries;
    Sizes sizes = base_;
    put(sizes, group, size);
    settle(sizes);
    const TrialResult result = attempt(sizes, own_program ? -1 : reference_);
    if (!result.ok()) {
      if (refusal.empty()) refusal = result.reason;
      continue;
    }
    Sizes other = sizes;
    put(other, group, size + 3);
    settle(other);
    const TrialResult again = attempt(other, result.run);
    if (!again.ok()) {
      if (refusal.empty()) refusal = again.reason;
      continue;
    }
    base_ = sizes;
    for (Group& each : groups_) {
      each.base = size_in(base_, each);
      taken_.insert(each.base);
    }
    if (own_program) {
      first_ = reference_ = result.run;
      kept_.clear();  // earlier runs are another program
      moved_base_ = true;
    }
    keep(sizes, result.run);
    keep(other, again.run);
    return true;
  }
  return false;
}

void Prober::explore(std::size_t g) {
  if (groups_[g].base <= 1 || groups_[g].sum_of[0] >= 0) return;
  if (groups_[g].dynamic) return shrink_base(g);  // found as a part of another
  std::string reason;
  if (explore_whole(g, reason)) return shrink_base(g);
  if (explore_parts(g) || explore_multiples(g)) return;
  groups_[g].reason = reason;
  (void)explore_smaller(g);
}

bool Prober::explore_whole(std::size_t g, std::string& reason) {
  bool moved = moves_either_way(groups_[g], reason);
  // One that only shrinks may be what something else is too long for, which goes unnoticed.
  if (moved && groups_[g].only_down && explore_sums(g, true)) groups_[g].only_down = false;
  moved = moved || explore_sums(g, false);
  groups_[g].dynamic = moved;
  return moved;
}

// The first part that moves becomes a group at the end of the list; what is left is explored anew.
bool Prober::explore_parts(std::size_t g) {
  if (groups_[g].pinned || groups_[g].places.size() < 2) return false;
  for (const auto& parts : {by_axis(groups_[g].places), units(groups_[g])}) {
    if (parts.size() < 2) continue;
    for (const auto& places : parts) {
      const std::vector<Group> before = groups_;
      const std::size_t mark = kept_.size();
      Group part = groups_[g];
      part.places = places;
      std::erase_if(groups_[g].places, [&](const Place& p) { return contains(places, p); });
      groups_.push_back(std::move(part));
      std::string reason;
      // A mask that is too long may go unnoticed: a part that only grows is not free of the rest.
      const std::size_t own = groups_.size() - 1;  // exploring sums may add groups behind it
      if (explore_whole(own, reason) && shrinks(groups_[own])) {
        explore(g);
        return true;
      }
      groups_ = before;
      kept_.resize(mark);
    }
  }
  return false;
}

// Small units first: they allow more sizes, and larger ones cost more to try. Each is tried up to
// twice the base at most, where a model that pads to some multiple has shown what it does.
bool Prober::explore_multiples(std::size_t g) {
  Group& group = groups_[g];
  if (group.base < 2) return false;
  for (const std::int64_t parts : {4, 2, 1}) {
    const std::int64_t unit = group.base / parts;
    if (unit < 2 || group.base % parts != 0) continue;
    group.unit = unit;
    std::string ignored;
    const std::size_t mark = kept_.size();
    bool moved = true;
    for (std::int64_t k = 1; moved && k <= std::max<std::int64_t>(2, parts - 1); ++k) {
      moved = moves(group, group.base + k * unit, ignored);
    }
    if (moved) {
      group.dynamic = true;
      return true;
    }
    kept_.resize(mark);
    group.unit = 1;
  }
  return false;
}

// What follows is tried with a small batch where the example is large: half of the work or less.
void Prober::shrink_base(std::size_t g) {
  Group& group = groups_[g];
  if (!may_shrink_ || group.places[0].axis != 0 || group.only_down || in_sum(g)) return;
  if (volume(base_) < kSmallVolume) return;
  for (const std::int64_t size : {3, 5, 2, 7}) {
    // Neither another size nor the difference of two: that could be mistaken for a sum.
    const bool apart = std::none_of(taken_.begin(), taken_.end(), [&](std::int64_t other) {
      return other == size || taken_.contains(other + size);
    });
    if (2 * size > group.base || !apart) continue;
    std::string ignored;
    if (moves(group, size, ignored)) {
      put(base_, group, size);
      group.base = size;
      group.shrunk = true;
      reference_ = attempt(base_, reference_).run;  // tried already: that run
    }
    return;
  }
}

// A model that works in chunks, or has a window, executes another program beyond its size. Below it
// the program may be one: at two smaller sizes at least.
bool Prober::explore_smaller(std::size_t g) {
  Group& group = groups_[g];
  if (group.required || in_sum(g)) return false;
  std::string ignored;
  const std::size_t mark = kept_.size();
  const std::int64_t first = down(group, group.base);
  if (moves(group, first, ignored) && moves(group, first - 1, ignored)) {
    group.dynamic = group.only_down = group.other_above = true;
    return true;
  }
  kept_.resize(mark);
  return false;
}

// Whether a group that moves also moves to a smaller size, where there is one.
bool Prober::shrinks(Group& group) {
  const std::int64_t smaller = group.only_down ? 0 : down(group, group.base);
  std::string ignored;
  return smaller < 2 || !allowed(group, smaller) || moves(group, smaller, ignored);
}

}  // namespace fairlead
