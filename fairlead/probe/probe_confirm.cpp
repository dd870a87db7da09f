// Stage 4: every symbol changed at once; what fails there is fixed.
#include <algorithm>
#include <map>

#include "fairlead/probe/probe_impl.h"
#include "fairlead/probe/sizes.h"

namespace fairlead {

std::vector<std::size_t> Prober::free_groups() const {
  std::vector<std::size_t> list;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].dynamic && groups_[g].sum_of[0] < 0) list.push_back(g);
  }
  return list;
}

// Setting k of a group: primes above, then an even number, so that halves are told from ceilings.
std::int64_t Prober::setting(const Group& group, std::size_t k,
                             const std::set<std::int64_t>& used) {
  if (group.unit > 1) {
    const std::int64_t size = group.base + group.unit * static_cast<std::int64_t>(k + 1);
    return allowed(group, size) ? size : group.base;
  }
  std::set<std::int64_t> avoid = used;
  std::int64_t size = group.base;
  if (group.only_down) {
    for (std::size_t i = 0; i <= k && size > 2; ++i) {
      const std::int64_t lower = prime_below(size, avoid);
      if (lower < 2) break;
      size = lower;
    }
  } else if (k % 3 == 2) {
    size = std::max<std::int64_t>(4, group.base - group.base % 2);
    size += 2 * step(group.base);
    while (avoid.contains(size) || size == group.base) size += 2;
  } else {
    for (std::size_t i = group.shrunk ? 1 : 0; i <= k; ++i) {  // none above a new base was tried
      size = prime_above(size + step(group.base), avoid);
      avoid.insert(size);
    }
  }
  return std::clamp(size, std::max<std::int64_t>(1, group.min), group.max);
}

Task<bool> Prober::confirm() {
  // Every symbol has been at three sizes by then, and most numbers say themselves what they are.
  // Of settings 0 to 2 the last is even; exploring tried the first.
  std::set<std::int64_t> bases;
  const std::vector<std::size_t> free = free_groups();
  for (const std::size_t g : free) bases.insert(groups_[g].base);
  const bool apart = bases.size() == free.size();
  const std::size_t settings = were_brief_ ? 2 : kept_.size() < 4 ? 3 : apart ? 1 : 2;
  for (std::size_t n = 0; n < settings; ++n) {
    std::set<std::int64_t> used;
    Sizes sizes = base_;
    std::map<std::int64_t, std::size_t> alike;  // base -> groups so far
    for (const std::size_t g : free_groups()) {
      // Groups of one size (height and width) take turns, far enough apart to be told apart after
      // a division.
      const std::size_t turn = (n + alike[groups_[g].base]++) % settings;
      const std::int64_t size = setting(groups_[g], turn + 3 - settings, used);
      used.insert(size);
      put(sizes, groups_[g], size);
    }
    settle(sizes);
    if (sizes == base_) co_return true;
    TrialResult result = co_await attempt(sizes, reference_);
    // Each for itself: of several that are asked about, one alone does not bring the answers back.
    bool foreseen = false;
    for (const std::size_t g : result.parted ? free_groups() : std::vector<std::size_t>{}) {
      Sizes alone = base_;
      put(alone, groups_[g], size_in(sizes, groups_[g]));
      settle(alone);
      const bool found = co_await foresees(alone, groups_[g]);
      if (found) put(sizes, groups_[g], size_in(alone, groups_[g]));
      foreseen = foreseen || found;
    }
    settle(sizes);
    if (foreseen) result = co_await attempt(sizes, reference_);
    if (result.ok()) {
      keep(sizes, result.run);
    } else if (were_brief_) {
      co_return false;
    } else {
      co_await find_culprit(sizes, result);
    }
  }
  co_return true;
}

// The groups are moved to the failing setting one after the other; the one that breaks it is fixed,
// or, where it broke at a larger size only, kept to smaller ones.
Task<void> Prober::find_culprit(const Sizes& target, const TrialResult& failed) {
  Sizes sizes = base_;
  for (const std::size_t g : free_groups()) {
    Group& group = groups_[g];
    const std::int64_t before = size_in(sizes, group);
    put(sizes, group, size_in(target, group));
    settle(sizes);
    const TrialResult result = co_await attempt(sizes, reference_);
    if (result.ok()) {
      keep(sizes, result.run);
      continue;
    }
    put(sizes, group, before);
    settle(sizes);
    if (keep_above(group, size_in(target, group), result)) continue;
    group.dynamic = false;
    group.reason = result.reason.empty() ? failed.reason : result.reason;
    group.why = why_of(result.reason.empty() ? failed : result);
    // Every run in which it moved is of no use any more.
    std::erase_if(kept_,
                  [&](const Kept& kept) { return size_in(kept.sizes, group) != group.base; });
    // One that ran elsewhere may come in multiples, and that was one of the few sizes beside them.
    if (group.unit > 1 || group.why != FixedDim::Why::kRefused) continue;
    const bool in_multiples = co_await explore_multiples(g);
    if (in_multiples) co_await split(g);
  }
}

// A group that was moved below all sizes that ran keeps to those: one that only gets smaller, or one
// that ran at larger sizes and is refused at smaller ones.
bool Prober::keep_above(Group& group, std::int64_t failed, const TrialResult& result) {
  std::int64_t smallest = group.base, largest = group.base;
  for (const Kept& kept : kept_) {
    smallest = std::min(smallest, size_in(kept.sizes, group));
    largest = std::max(largest, size_in(kept.sizes, group));
  }
  const bool refused = !result.parted && !result.untried && !result.reason.empty();
  const bool keeps = group.only_down ? smallest < group.base : refused && largest > smallest;
  if (!keeps || failed >= smallest) return false;
  group.min = std::max(group.min, smallest);
  group.other_below = result.parted;
  if (refused) group.below = result.reason;
  return true;
}

}  // namespace fairlead
