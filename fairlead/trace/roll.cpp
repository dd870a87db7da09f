// First what the bodies of the loops compute on is planned, then the runs are written anew.
#include "fairlead/trace/roll.h"

#include <algorithm>

#include "fairlead/trace/roll_impl.h"

namespace fairlead {
namespace {

bool one_program(const std::vector<Run>& runs) {
  return std::all_of(runs.begin(), runs.end(), [&](const Run& run) {
    return first_difference(runs.front(), run) == kSameProgram;
  });
}

}  // namespace

using namespace rolling;

namespace {

// What was taken for two steps may be one: (a[0] // 2, a[1] // 2) for a in rows. False where no
// longer period divides every run. `tried`: by loop, how many of the shortest steps one is.
bool lengthen(std::vector<LoopPlaces>& loops, std::size_t k, std::vector<std::size_t>& tried) {
  constexpr std::size_t kMost = 8;
  LoopPlaces& loop = loops[k];
  for (std::size_t times = tried[k] + 1; times <= kMost; ++times) {
    const bool divides =
        std::all_of(loop.counts.begin(), loop.counts.end(),
                    [&](std::size_t count) { return count * tried[k] % times == 0; });
    if (!divides) continue;
    for (std::size_t& count : loop.counts) count = count * tried[k] / times;
    loop.period = loop.period / tried[k] * times;
    tried[k] = times;
    return true;
  }
  return false;
}

std::optional<Rolled> roll(const Vocabulary& vocabulary, std::span<const Run* const> runs,
                           const std::vector<LoopPlaces>& loops) {
  std::vector<RunView> views;
  views.reserve(runs.size());
  for (std::size_t r = 0; r < runs.size(); ++r) {
    views.emplace_back(vocabulary, *runs[r], loops, r);
  }
  const Plan plan = plan_loops(views, loops);
  const std::vector<LoopPlan>& plans = plan.loops;
  Rolled rolled;
  rolled.vocabulary = vocabulary;
  const Added added = add_operators(rolled.vocabulary);
  const Rolling rolling{loops, plan, added};
  for (const ReadList& each : plan.unread) {
    const RunValue of = each.of.front();
    if (runs.front()->values[of].tainted)
      rolled.unread.push_back(runs.front()->ops[each.ops.front()]);
  }
  for (std::size_t k = 0; k < loops.size(); ++k) {
    for (const std::size_t offset : plans[k].unread) {
      const std::size_t op = loops[k].starts.front() + offset;
      const RunValue of = views.front().argument(op, 0);
      if (of != kNoRunValue && runs.front()->values[of].tainted) {
        rolled.unread.push_back(runs.front()->ops[op]);
      }
    }
  }
  rolled.loops.resize(loops.size());
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (std::size_t k = 0; k < loops.size(); ++k) {
      LoopSteps& loop = rolled.loops[k];
      loop.invariants = plans[k].invariants.size() + plans[k].taken.size() + plans[k].reads.size() +
                        plans[k].offsets.size();
      loop.carried = plans[k].carried.size() + plans[k].grown.size();
      for (std::size_t step = 0; step < loops[k].counts[r]; ++step) {
        loop.steps.push_back(write_step(views[r], r, rolling, k, step));
        loop.run_of.push_back(r);
        loop.number_of.push_back(static_cast<std::int64_t>(step));
      }
    }
    rolled.runs.push_back(write_main(views[r], r, rolling, rolled.values.emplace_back()));
  }
  if (!one_program(rolled.runs)) return std::nullopt;
  for (const LoopSteps& loop : rolled.loops) {
    if (!one_program(loop.steps)) return std::nullopt;
  }
  return rolled;
}

}  // namespace

std::optional<Rolled> roll(const Vocabulary& vocabulary, std::span<const Run* const> runs) {
  const auto found = find_loops(runs);
  if (!found) return std::nullopt;
  std::vector<LoopPlaces> loops = *found;
  for (std::vector<std::size_t> tried(loops.size(), 1);;) {
    try {
      return roll(vocabulary, runs, loops);
    } catch (const NotRolled& why) {
      if (why.loop == kMain || !lengthen(loops, why.loop, tried)) return std::nullopt;
    }
  }
}
}  // namespace fairlead
