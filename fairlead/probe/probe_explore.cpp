// Stages 1 and 2: sizes of one are left, then each group is changed alone, in parts, in multiples.
#include "fairlead/probe/probe_impl.h"

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
      reference_ = result.run;
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
  std::string reason;
  if (explore_whole(g, reason) || explore_parts(g) || explore_multiples(g)) return;
  groups_[g].reason = reason;
  (void)explore_smaller(g);
}

bool Prober::explore_whole(std::size_t g, std::string& reason) {
  const bool moved = moves_either_way(groups_[g], reason) || explore_sums(g);
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

bool Prober::explore_multiples(std::size_t g) {
  Group& group = groups_[g];
  if (group.base < 2) return false;
  for (const std::int64_t unit : {group.base, group.base / 2, group.base / 4}) {
    if (unit < 2 || group.base % unit != 0) continue;
    group.unit = unit;
    std::string ignored;
    const std::size_t mark = kept_.size();
    if (moves(group, group.base + unit, ignored) && moves(group, group.base + 2 * unit, ignored)) {
      group.dynamic = true;
      return true;
    }
    kept_.resize(mark);
    group.unit = 1;
  }
  return false;
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
