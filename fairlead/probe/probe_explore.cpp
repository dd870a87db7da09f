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
  if (co_await explore_parts(g, false)) co_return;
  if (why == FixedDim::Why::kBranches && co_await serves_base(g)) {
    reason.clear();
    if (co_await explore_whole(g, reason)) co_return;
  }
  if (co_await explore_multiples(g)) co_return;
  if (co_await explore_parts(g, true)) co_return;
  groups_[g].reason = reason;
  groups_[g].why = why;
  if (co_await explore_smaller(g)) co_return;
  if (why == FixedDim::Why::kRefused) (void)co_await explore_range(g);
}

Task<bool> Prober::explore_whole(std::size_t g, std::string& reason) {
  bool moved = co_await moves_either_way(groups_[g], reason);
  const FixedDim::Why why = said_;
  if (moved && groups_[g].only_down) {
    // One that only shrinks may be what something else is too long for, which goes unnoticed.
    const bool follows = co_await explore_sums(g, true);
    if (follows) groups_[g].only_down = false;
    // Or come in multiples, and the base is the end of a few sizes that run: 157 to 160.
    if (!follows) (void)co_await explore_multiples(g);
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
// By axis, by kind of input, and all of one input (height and width, beside a text as wide).
Task<bool> Prober::explore_parts(std::size_t g, bool in_multiples) {
  if (groups_[g].pinned || groups_[g].places.size() < 2) co_return false;
  const auto axes = by_axis(groups_[g].places);
  // Keys and values that are as wide do not come in multiples apart from each other.
  const auto kinds = in_multiples ? by_axis_and_rank(groups_[g].places) : units(groups_[g]);
  auto leaves = by_leaf(groups_[g].places);
  if (leaves.size() >= kinds.size()) leaves.clear();
  const std::vector<std::vector<Place>> ways[] = {axes, kinds, leaves};
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
      const std::size_t own = groups_.size() - 1;  // exploring sums may add groups behind it
      bool free = false;
      if (in_multiples) {
        free = co_await explore_multiples(own);
        free = free && groups_[own].unit < groups_[own].base;
      } else {
        free = co_await explore_whole(own, reason);
      }
      // A mask that is too long may go unnoticed: a part that only grows is not free of the rest.
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

// Which multiples run: the unit divides the base, which runs. Found from above, a prime of the base
// left out at a time as long as one unit more runs; large ones first, which costs the smaller trials
// (224 is tried at 256 before 336). The smallest unit that also runs further on is the one.
Task<bool> Prober::explore_multiples(std::size_t g) {
  Group& group = groups_[g];
  if (group.base < 2) co_return false;
  std::vector<std::int64_t> chain = {group.base};
  std::string ignored;
  const std::size_t mark = kept_.size();
  for (bool finer = true; finer;) {
    finer = false;
    const std::int64_t unit = chain.back();
    for (std::int64_t p = unit / 2; p > 1 && !finer; --p) {
      if (unit % p != 0 || !is_prime(p)) continue;
      group.unit = unit / p;
      finer = co_await moves(group, group.base + group.unit, ignored);
      if (finer) chain.push_back(group.unit);
    }
  }
  for (; !chain.empty(); chain.pop_back()) {
    kept_.resize(mark);  // runs of a smaller unit have no number of this one
    group.unit = chain.back();
    const std::int64_t most = co_await runs_in_multiples(group);
    if (most == 0) continue;
    group.dynamic = true;
    group.only_down = false;
    if (most < group.max) {  // what is beyond is another program
      group.max = most;
      group.other_above = true;
    }
    std::erase_if(kept_, [&](const Kept& k) { return size_in(k.sizes, group) % group.unit != 0; });
    co_return true;
  }
  kept_.resize(mark);
  group.unit = 1;
  co_return false;
}

// Two units more at least, and up to twice the base at most, where a model that pads to some multiple
// has shown what it does. Up to which size: 0 where one is refused, or the next is another program.
Task<std::int64_t> Prober::runs_in_multiples(Group& group) {
  std::string reason;
  const std::int64_t far = 3 * group.base / (4 * group.unit);
  std::int64_t most = 0;
  for (const std::int64_t k : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, far}) {
    const std::int64_t size = group.base + k * group.unit;
    if (k == 0 || (k > 2 && k * group.unit > group.base)) continue;
    if (size > group.max) break;
    parted_ = false;
    const bool moved = co_await moves(group, size, reason);
    if (!moved && parted_ && most > 0) {
      group.reason = reason;
      bool enough = k > 2;  // three sizes, with the base
      if (!enough) enough = co_await moves(group, group.base - group.unit, reason);
      co_return enough ? most : 0;
    }
    if (!moved) co_return 0;
    most = std::max(most, size);
  }
  co_return most > 0 ? group.max : 0;
}

// The model refuses sizes further away, but not the next one: a range that begins at the base, as of
// what is pooled to one size. Of large sizes: a few elements more are nothing that many would miss.
Task<bool> Prober::explore_range(std::size_t g) {
  constexpr std::int64_t kLeast = 32;
  Group& group = groups_[g];
  const std::int64_t refused = up(group, group.base);
  if (group.required || group.base < kLeast || in_sum(g) || refused <= group.base + 1) {
    co_return false;
  }
  const std::size_t mark = kept_.size();
  std::string ignored, above;
  bool moved = co_await moves(group, group.base + 1, ignored);
  if (!moved) co_return false;
  std::int64_t most = group.base + 1, beyond = refused;
  while (beyond - most > 1) {
    const std::int64_t between = (most + beyond) / 2;
    moved = co_await moves(group, between, above);
    (moved ? most : beyond) = between;
  }
  if (most < group.base + 2) {
    kept_.resize(mark);
    co_return false;
  }
  group.dynamic = true;
  group.min = std::max(group.min, group.base);
  group.max = std::min(group.max, most);
  group.below = group.reason;
  co_return true;
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
