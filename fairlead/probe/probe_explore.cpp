// Stages 1 and 2: sizes of one are left, then each group is changed alone, in parts, in multiples.
#include <algorithm>

#include "fairlead/probe/probe_impl.h"
#include "fairlead/probe/sizes.h"

namespace fairlead {

// At a size of 1 a model may take another path (one token to decode, broadcasting). Where a
// dimension of 1 can be larger, the program there is the one that counts. In order: alone, with a
// sum that it is part of, both as the program of the example; then the same with a program of its
// own.
Task<void> Prober::leave_ones() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].base > 1) continue;
    if (groups_[g].base == 0) {
      groups_[g].reason = "its size is 0";
      groups_[g].why = FixedDim::Why::kZero;
      continue;
    }
    std::string refusal;
    bool left = false;
    for (int turn = 0; turn < 2; ++turn) {
      const bool own = turn == 1;
      if (!left && !own) left = co_await leave_one(g, own, refusal);
      const std::vector<SumGuess> guesses = sums_with(g);
      for (const SumGuess& guess : guesses) {
        if (left) break;
        suppose(guess, g);
        left = co_await leave_one(g, own, refusal);
        if (left) {
          groups_[guess.sum].dynamic = true;
        } else {
          take_back(guess);
        }
      }
      if (!left && own) left = co_await leave_one(g, own, refusal);
      if (left) break;
    }
    if (left) continue;
    groups_[g].reason = refusal.empty() ? "its size is 1" : refusal;
    groups_[g].why = refusal.empty() ? FixedDim::Why::kOne : said_;
  }
}

Task<bool> Prober::leave_one(std::size_t g, bool own_program, std::string& refusal) {
  Group& group = groups_[g];
  int tries = 0;
  // A size that no other dimension has: 1 + 3 may be the length of a mask where 3 is a batch or a
  // past.
  constexpr std::int64_t kSizes[] = {3, 2, 5, 7, 11};
  for (const std::int64_t size : kSizes) {
    if (tries == 2 || !allowed(group, size) || taken_.contains(size)) continue;
    ++tries;
    Sizes sizes = base_;
    put(sizes, group, size);
    settle(sizes);
    const TrialResult result = co_await attempt(sizes, own_program ? -1 : reference_);
    if (!result.ok()) {
      if (refusal.empty()) said_ = why_of(result);
      if (refusal.empty()) refusal = result.reason;
      continue;
    }
    Sizes other = sizes;
    put(other, group, size + 3);
    settle(other);
    const TrialResult again = co_await attempt(other, result.run);
    if (!again.ok()) {
      if (refusal.empty()) said_ = why_of(again);
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
    co_return true;
  }
  co_return false;
}

Task<void> Prober::explore(std::size_t g) {
  if (groups_[g].base <= 1 || groups_[g].sum_of[0] >= 0) co_return;
  std::string reason;
  bool moved = groups_[g].dynamic;  // found as a part of another
  if (!moved) moved = co_await explore_whole(g, reason);
  if (moved) {
    co_await shrink_base(g);
    co_return;
  }
  const FixedDim::Why why = reason.empty() ? FixedDim::Why::kRefused : said_;
  if (co_await explore_parts(g)) co_return;
  if (why == FixedDim::Why::kBranches && co_await serves_base(g)) {
    reason.clear();
    if (co_await explore_whole(g, reason)) co_return;
  }
  if (co_await explore_multiples(g)) co_return;
  groups_[g].reason = reason;
  groups_[g].why = why;
  co_await explore_smaller(g);
}

Task<bool> Prober::explore_whole(std::size_t g, std::string& reason) {
  bool moved = co_await moves_either_way(groups_[g], reason);
  const FixedDim::Why why = said_;
  if (moved && groups_[g].only_down) {
    // One that only shrinks may be what something else is too long for, which goes unnoticed.
    if (co_await explore_sums(g, true)) groups_[g].only_down = false;
  }
  if (!moved) moved = co_await explore_sums(g, false);
  said_ = why;
  groups_[g].dynamic = moved;
  co_return moved;
}

// A model that leaves out what does nothing at the example's sizes (a padding to a multiple):
// the program at other sizes serves them, too, and is the one to go by.
Task<bool> Prober::serves_base(std::size_t g) {
  Sizes sizes = base_;
  const std::int64_t size = up(groups_[g], groups_[g].base);
  if (!may_be_served_ || !allowed(groups_[g], size)) co_return false;
  put(sizes, groups_[g], size);
  settle(sizes);
  const TrialResult own = co_await attempt(sizes, -1);
  if (!own.ok()) co_return false;
  const TrialResult back = co_await attempt(base_, own.run);
  if (!back.ok()) co_return false;
  kept_.clear();  // earlier runs are another program
  first_ = reference_ = own.run;
  keep(sizes, own.run);
  keep(base_, back.run);
  groups_[g].served = true;
  base_ = sizes;
  for (Group& each : groups_) {
    each.base = size_in(base_, each);
    taken_.insert(each.base);
  }
  co_return true;
}

// The first part that moves becomes a group at the end of the list; what is left is explored anew.
Task<bool> Prober::explore_parts(std::size_t g) {
  if (groups_[g].pinned || groups_[g].places.size() < 2) co_return false;
  const std::vector<std::vector<Place>> ways[] = {by_axis(groups_[g].places), units(groups_[g])};
  for (const auto& parts : ways) {
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
      bool free = co_await explore_whole(own, reason);
      if (free) free = co_await shrinks(groups_[own]);
      if (free) {
        co_await explore(g);
        co_return true;
      }
      groups_ = before;
      kept_.resize(mark);
    }
  }
  co_return false;
}

// Small units first: they allow more sizes, and larger ones cost more to try. Each is tried up to
// twice the base at most, where a model that pads to some multiple has shown what it does.
Task<bool> Prober::explore_multiples(std::size_t g) {
  Group& group = groups_[g];
  if (group.base < 2) co_return false;
  constexpr std::int64_t kParts[] = {4, 2, 1};
  for (const std::int64_t parts : kParts) {
    const std::int64_t unit = group.base / parts;
    if (unit < 2 || group.base % parts != 0) continue;
    group.unit = unit;
    std::string ignored;
    const std::size_t mark = kept_.size();
    bool moved = true;
    for (std::int64_t k = 1; moved && k <= std::max<std::int64_t>(2, parts - 1); ++k) {
      moved = co_await moves(group, group.base + k * unit, ignored);
    }
    if (moved) {
      group.dynamic = true;
      co_return true;
    }
    kept_.resize(mark);
    group.unit = 1;
  }
  co_return false;
}

// What follows is tried with a small batch where the example is large: half of the work or less.
Task<void> Prober::shrink_base(std::size_t g) {
  Group& group = groups_[g];
  if (!may_shrink_ || group.places[0].axis != 0 || group.only_down || in_sum(g)) co_return;
  if (volume(base_) < kSmallVolume) co_return;
  constexpr std::int64_t kSizes[] = {3, 5, 2, 7};
  for (const std::int64_t size : kSizes) {
    // Neither another size nor the difference of two: that could be mistaken for a sum.
    const bool apart = std::none_of(taken_.begin(), taken_.end(), [&](std::int64_t other) {
      return other == size || taken_.contains(other + size);
    });
    if (2 * size > group.base || !apart) continue;
    std::string ignored;
    if (co_await moves(group, size, ignored)) {
      put(base_, group, size);
      group.base = size;
      group.shrunk = true;
      const TrialResult known = co_await attempt(base_, reference_);  // tried already: that run
      reference_ = known.run;
    }
    co_return;
  }
}

// A model that works in chunks, or has a window, executes another program beyond its size. Below it
// the program may be one: at two smaller sizes at least.
Task<bool> Prober::explore_smaller(std::size_t g) {
  Group& group = groups_[g];
  if (group.required || in_sum(g)) co_return false;
  std::string ignored;
  const std::size_t mark = kept_.size();
  const std::int64_t first = down(group, group.base);
  bool moved = co_await moves(group, first, ignored);
  if (moved) moved = co_await moves(group, first - 1, ignored);
  if (moved) {
    group.dynamic = group.only_down = group.other_above = true;
    co_return true;
  }
  kept_.resize(mark);
  co_return false;
}

// Whether a group that moves also moves to a smaller size, where there is one.
Task<bool> Prober::shrinks(Group& group) {
  const std::int64_t smaller = group.only_down ? 0 : down(group, group.base);
  std::string ignored;
  if (smaller < 2 || !allowed(group, smaller)) co_return true;
  const bool moved = co_await moves(group, smaller, ignored);
  co_return moved;
}

}  // namespace fairlead
