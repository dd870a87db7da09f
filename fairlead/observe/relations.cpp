// Dims that move together, and dims that are the sum of two others.
//
// Groups:
// 1. Only dims that vary: two dims that never moved may be equal by chance, and nothing says
// otherwise.
// 2. Dims present in the same calls with the same sizes are one group.
// 3. A group seen in fewer calls joins one seen in more, if they agree wherever both are present
//    and show two different sizes there. If several would do, none is chosen: the calls do not tell
//    which.
// Sums: among the groups, in every call that has all three, in two ways at least, and once with
// both terms above 0.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "fairlead/observe/infer_impl.h"

namespace fairlead {
namespace {

constexpr std::size_t kMaxSummed = 64;  // groups that take part in the search for sums

// They agree in every call that has both, and there in two different sizes at least.
bool move_together(const DimGroup& a, const DimGroup& b) {
  std::int64_t seen = kMissing;
  bool two = false;
  for (std::size_t call = 0; call < a.sizes.size(); ++call) {
    if (a.sizes[call] == kMissing || b.sizes[call] == kMissing) continue;
    if (a.sizes[call] != b.sizes[call]) return false;
    if (seen != kMissing && seen != a.sizes[call]) two = true;
    seen = a.sizes[call];
  }
  return two;
}

std::size_t present(const DimGroup& group) {
  return static_cast<std::size_t>(std::count_if(group.sizes.begin(), group.sizes.end(),
                                                [](std::int64_t s) { return s != kMissing; }));
}

void absorb(DimGroup& into, const DimGroup& from) {
  into.dims.insert(into.dims.end(), from.dims.begin(), from.dims.end());
  for (std::size_t call = 0; call < into.sizes.size(); ++call) {
    if (into.sizes[call] == kMissing) into.sizes[call] = from.sizes[call];
  }
}

// Sizes of the first member of each group, in all calls at once.
void read_sizes(const Calls& calls, Inference& result, std::vector<DimGroup>& groups) {
  std::vector<std::int32_t> group_of(result.dims.size(), -1);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    groups[g].sizes.assign(calls.size(), kMissing);
    group_of[groups[g].dims.front()] = static_cast<std::int32_t>(g);
  }
  for (std::uint32_t call = 0; call < calls.size(); ++call) {
    const auto& slots = result.slot_of[calls.structure(call)];
    const auto facts = calls.tensors(call);
    for (std::size_t i = 0; i < facts.size(); ++i) {
      const Slot& slot = result.slots[static_cast<std::size_t>(slots[i])];
      const auto shape = calls.shape(facts[i]);
      for (std::uint32_t axis = 0; axis < slot.rank; ++axis) {
        const std::int32_t group = group_of[slot.dims + axis];
        if (group >= 0) groups[static_cast<std::size_t>(group)].sizes[call] = shape[axis];
      }
    }
  }
}

bool is_sum(const DimGroup& total, const DimGroup& first, const DimGroup& second) {
  std::set<std::pair<std::int64_t, std::int64_t>> ways;
  bool both = false;  // a + 0 says nothing about sums
  for (std::size_t call = 0; call < total.sizes.size(); ++call) {
    const std::int64_t t = total.sizes[call], a = first.sizes[call], b = second.sizes[call];
    if (t == kMissing || a == kMissing || b == kMissing) continue;
    if (t != a + b) return false;
    both = both || (a > 0 && b > 0);
    if (ways.size() < 2) ways.emplace(a, b);
  }
  return both && ways.size() >= 2;
}

}  // namespace

void find_groups(const Calls& calls, const std::vector<std::uint64_t>& hashes, Inference& result) {
  std::unordered_map<std::uint64_t, std::size_t>
      by_hash;  // 64 bits: a collision is not to be expected
  std::vector<DimGroup> groups;
  for (std::uint32_t dim = 0; dim < result.dims.size(); ++dim) {
    if (!result.dims[dim].varies) continue;
    const auto [found, added] = by_hash.try_emplace(hashes[dim], groups.size());
    if (added) groups.emplace_back();
    groups[found->second].dims.push_back(dim);
  }
  read_sizes(calls, result, groups);
  std::vector<std::size_t> order(groups.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return present(groups[a]) > present(groups[b]);
  });
  for (const std::size_t index : order) {
    DimGroup* home = nullptr;
    int homes = 0;
    const std::size_t own = present(groups[index]);
    for (DimGroup& group : result.groups) {
      // Present in the same calls and not of the same hash: told apart already.
      if (own == calls.size() || !move_together(group, groups[index])) continue;
      home = &group;
      ++homes;
    }
    if (homes == 1) {
      absorb(*home, groups[index]);
    } else {
      result.groups.push_back(std::move(groups[index]));
    }
  }
  for (DimGroup& group : result.groups) std::sort(group.dims.begin(), group.dims.end());
  std::sort(result.groups.begin(), result.groups.end(),
            [](const DimGroup& a, const DimGroup& b) { return a.dims.front() < b.dims.front(); });
  for (std::size_t g = 0; g < result.groups.size(); ++g) {
    for (const std::uint32_t dim : result.groups[g].dims)
      result.dims[dim].group = static_cast<std::int32_t>(g);
  }
}

void find_sums(Inference& result) {
  const auto count = static_cast<std::uint32_t>(std::min(result.groups.size(), kMaxSummed));
  for (std::uint32_t total = 0; total < count; ++total) {
    for (std::uint32_t first = 0; first < count; ++first) {
      for (std::uint32_t second = first; second < count; ++second) {
        if (first == total || second == total) continue;
        if (is_sum(result.groups[total], result.groups[first], result.groups[second])) {
          result.sums.push_back({total, first, second});
        }
      }
    }
  }
}

}  // namespace fairlead
