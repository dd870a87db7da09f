// What the file asks of values again: the answers that runs gave, and the ways that were seen.
#include <algorithm>
#include <set>

#include "fairlead/base/error.h"
#include "fairlead/trace/program_impl.h"

namespace fairlead {

// A number that questions choose is known behind those answers that runs gave. Where sizes alone
// decide, the experiment has gone to the others, or the file refuses them; where values do, too,
// the file requires one of the ways that were seen. False where those are more than can be required:
// the smallest of a list of dozens, one by one.
bool ProgramBuilder::require_seen(const std::vector<std::size_t>& runs, std::size_t at,
                                  const std::vector<ProgramGuard>& before) {
  constexpr std::size_t kMostRequired = 96;
  for (;; ++at) {
    if (at >= ways_[runs[0]].steps.size()) return true;
    ProgramGuard asked = ways_[runs[0]].steps[at].guard;
    std::vector<std::size_t> yes, no;
    for (const std::size_t r : runs) {
      if (at >= ways_[r].steps.size()) return true;
      const auto& [guard, answer] = ways_[r].steps[at];
      if (guard.compare != asked.compare || guard.left != asked.left ||
          guard.right != asked.right) {
        return true;
      }
      (answer ? yes : no).push_back(r);
    }
    asked.outcome = !yes.empty();
    if (!yes.empty() && !no.empty()) {
      std::vector<ProgramGuard> behind = before;
      behind.push_back(asked);
      if (!require_seen(yes, at + 1, behind)) return false;
      behind.back().outcome = false;
      return require_seen(no, at + 1, behind);
    }
    bool of_values = is_of_values(asked);
    std::string words = words_of(pool(), asked);
    for (const ProgramGuard& guard : before) {
      of_values = of_values || is_of_values(guard);
      words += (&guard == &before.front() ? " where " : " and ") + words_of(pool(), guard);
    }
    if (!of_values || before.empty()) continue;
    Expr flag = holds(pool(), asked);  // a product of what led there would be one of sums
    for (auto guard = before.rbegin(); guard != before.rend(); ++guard) {
      flag = pool().where(holds(pool(), *guard), flag, pool().constant(1));
    }
    if (is_const(flag)) continue;
    const auto same = [&](const Requirement& r) { return r.holds == flag; };
    auto& required = graph().requirements;
    if (std::any_of(required.begin(), required.end(), same)) continue;
    if (flag->weight > kHeaviest || ++seen_required_ > kMostRequired) return false;
    required.push_back({flag, words});
  }
}

bool ProgramBuilder::is_of_values(const ProgramGuard& guard) {
  for (const Expr e : {guard.left, guard.right}) {
    for (const SymbolId id : pool().symbols_of(e)) {
      if (pool().symbols()[id].kind != SymbolKind::kSize) return true;
    }
  }
  return false;
}

// The answer of every run that was asked. One that was not may have the other: it was led elsewhere,
// so the answer is required behind what led to the question; or nothing led it elsewhere (the keys
// of a dict are compared where their hashes are equal), and what ran is not refused.
void ProgramBuilder::require_answer(std::size_t g) {
  ProgramGuard& guard = program_.guards[g];
  const Expr holds_here = holds(pool(), guard);
  const std::string words = words_of(pool(), guard);
  if (holds_in_all_runs(holds_here)) {
    graph().requirements.push_back({holds_here, words});
    return;
  }
  std::set<std::vector<std::pair<std::size_t, bool>>> ways;
  for (const GuardPath& path : program_.paths) {
    const auto asked = [&](const GuardPath::Step& step) { return step.guard == g; };
    const auto at = std::find_if(path.steps.begin(), path.steps.end(), asked);
    if (at == path.steps.end()) continue;
    std::vector<std::pair<std::size_t, bool>> way;
    for (auto step = path.steps.begin(); step != at; ++step) {
      if (program_.guards[step->guard].both) way.emplace_back(step->guard, step->answer);
    }
    ways.insert(std::move(way));
  }
  guard.both = true;
  for (const auto& way : ways) {
    std::vector<ProgramGuard> all, before;
    for (const auto& [led, answer] : way) {
      all.push_back(program_.guards[led]);
      all.back().outcome = answer;
    }
    // A loop over what was read asks hundreds of questions, of which the last implies the others.
    for (const std::size_t k : not_implied(pool(), all)) before.push_back(all[k]);
    Requirement required{holds_here, words};
    for (const ProgramGuard& led : before) {
      required.words += (&led == before.data() ? " where " : " and ") + words_of(pool(), led);
    }
    const Expr there = all_hold(pool(), before);
    if (there == nullptr) continue;
    const Expr one = pool().constant(1);
    required.holds = pool().sub(one, pool().mul(there, pool().sub(one, holds_here)));
    if (required.holds->weight > kHeaviest) required = {holds_here, words};
    if (required.holds != holds_here && !holds_in_all_runs(required.holds)) continue;
    graph().requirements.push_back(std::move(required));
  }
}

bool ProgramBuilder::holds_in_all_runs(Expr flag) {
  try {
    const std::vector<std::int64_t> values = solver_.values_of(flag);
    return std::all_of(values.begin(), values.end(), [](std::int64_t v) { return v == 1; });
  } catch (const Error&) {  // of a value that some run did not read
    return true;
  }
}

}  // namespace fairlead
