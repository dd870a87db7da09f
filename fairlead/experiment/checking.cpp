// The file against eager, and who is to blame where they differ.
#include <algorithm>

#include "fairlead/experiment/check_plan.h"
#include "fairlead/experiment/describe.h"
#include "fairlead/experiment/lab.h"
#include "fairlead/experiment/tiny.h"

namespace fairlead {

Task<std::optional<Trouble>> Lab::verify(Row& row, const Emitted& file) {
  CheckRequest request;
  request.calls = row.id == 0 ? static_cast<int>(request_.calls.size()) : 1;
  const Cost cost{request_.weight_bytes, row.built.operators,
                  static_cast<std::int64_t>(request_.leaves.size()), !row.built.fitted,
                  elements(row.example)};
  request.effort = effort_for(cost, row.id > 0);
  const std::optional<Setting> example = setting_of(*row.probed, row.example);
  if (example) request.example = *example;
  request.closely = row.untold;
  for (const Setting& setting : row.apart) {
    if (setting.size() == row.probed->symbols.size()) request.also.push_back(setting);
  }
  // A question may tell why, and have no sizes on its other side that the file knows.
  for (const Setting& setting : row.parted_far) {
    const bool known = setting.size() == row.probed->symbols.size() && within(row, setting);
    if (request.effort.far > 0 && known) request.also.push_back(setting);
  }
  for (const auto& [name, most] : file.largest) request.largest[name] = most;
  CheckPlan plan(*row.probed, std::move(request));
  const std::optional<Judged> failing = co_await judge_.first_failing(plan, row.id, row.checks);
  if (!failing) {
    const bool plain = std::ranges::find(file.fused, kPlainOrder) != file.fused.end();
    if (plain && !order_settled_ && judge_.jumped()) {
      co_await settle_order(*judge_.jumped());
      co_return unfused(row);
    }
    // A large model is called twice only where it changes itself.
    // What a further program changes, it may change for the example.
    const bool may = row.id == 0 || (row.checks.changes && is_tiny(row.built.operators));
    const bool looks = may && !row.checks.draws && (row.checks.changes || is_small(cost));
    if (looks) co_await judge_.look_at_state(row.id);
    co_return std::nullopt;
  }
  Trouble trouble = co_await trouble_of(row, *failing);
  bool fusions = !file.fused.empty();
  if (fusions) fusions = co_await leaves_out(failing->check, trouble, file.fused);
  if (fusions) co_return unfused(row);
  co_await blame(row, *failing, trouble);
  co_return trouble;
}

// Another file is made.
Trouble Lab::unfused(const Row& row) {
  Trouble trouble;
  trouble.program = row.id;
  trouble.unfused = true;
  return trouble;
}

// Whether eager jumps because elements are equal: then the file has them in its order.
Task<void> Lab::settle_order(Check check) {
  order_settled_ = true;
  std::vector<std::string> order(1, kPlainOrder);
  bool settles = co_await is_right_without(std::move(check), std::move(order));
  settles = settles && !judge_.jumped();
  Fact fact;
  fact.kind = FactKind::kUnfused;
  fact.evidence.why = settles ? Why::kJumps : Why::kNone;
  fact.evidence.key = kPlainOrder;
  (void)ledger_.add(std::move(fact));
  if (settles) unfused_.emplace_back(kPlainOrder, "");
}

// The file without these fusions, beside those that are known to be wrong.
Task<Emitted> Lab::emit(std::vector<std::string> without) {
  // Those with the fewest sizes that vary come first: where two take a call, the one that was made
  // for it runs.
  Emit emit;
  emit.programs = programs();
  std::stable_sort(emit.programs.begin(), emit.programs.end(), [&](ProgramId a, ProgramId b) {
    return row(a).probed->symbols.size() < row(b).probed->symbols.size();
  });
  emit.without = unfused_;
  for (std::string& kind : without) emit.without.emplace_back(std::move(kind), "");
  judge_.begin_file();
  return ask<Emitted>(std::move(emit));
}

Task<bool> Lab::is_right_without(Check check, std::vector<std::string> kinds) {
  const Emitted file = co_await emit(std::move(kinds));
  if (file.problem.number >= 0) co_return false;
  const Judged judged = co_await judge_.judge(std::move(check));
  co_return !judged.fails();
}

// The fewest of the suspects without which the check is right, by halves; `gone` are left out.
Task<std::vector<std::string>> Lab::to_blame(Check check, std::vector<std::string> suspects,
                                             std::vector<std::string> gone) {
  if (suspects.size() == 1) co_return suspects;
  const auto middle = suspects.begin() + static_cast<std::ptrdiff_t>(suspects.size() / 2);
  const std::vector<std::string> halves[] = {{suspects.begin(), middle}, {middle, suspects.end()}};
  for (const auto& half : halves) {
    std::vector<std::string> without = gone;
    without.insert(without.end(), half.begin(), half.end());
    const bool right = co_await is_right_without(check, without);
    if (right) co_return co_await to_blame(check, half, gone);
  }
  std::vector<std::string> found;
  for (int k = 0; k < 2; ++k) {
    std::vector<std::string> without = gone;
    without.insert(without.end(), halves[1 - k].begin(), halves[1 - k].end());
    const auto part = co_await to_blame(check, halves[k], std::move(without));
    found.insert(found.end(), part.begin(), part.end());
  }
  co_return found;
}

// Whether it is fusions that make a check fail: then the file is made without those.
Task<bool> Lab::leaves_out(Check check, Trouble trouble, std::vector<std::string> suspects) {
  const bool theirs = co_await is_right_without(check, suspects);
  if (!theirs) {
    (void)co_await emit({});  // what is asked next is about the file as it was
    co_return false;
  }
  const bool runs = trouble.finding.number >= 0;
  const std::vector<std::string> found = co_await to_blame(check, std::move(suspects), {});
  for (const std::string& kind : found) {
    unfused_.emplace_back(kind,
                          runs ? "with it the file differs from eager at " + trouble.evidence.at
                               : "with it the file does not load");
    Fact fact;
    fact.kind = FactKind::kUnfused;
    fact.evidence.why = runs ? Why::kDiffers : Why::kFailed;
    fact.evidence.key = kind;
    fact.evidence.at = trouble.evidence.at;
    fact.evidence.text = trouble.evidence.text;
    (void)ledger_.add(std::move(fact));
  }
  co_return true;
}

// What a check that fails comes from.
Task<Trouble> Lab::trouble_of(Row& row, Judged judged) {
  Trouble trouble;
  trouble.program = row.id;
  trouble.guarded = judged.checked.guarded;
  if (judged.verdict == Verdict::kDiffers) {
    try {
      trouble.finding = co_await judge_.finding(judged);
    } catch (const Unlooked& unlooked) {
      judged.verdict = Verdict::kUnable;
      judged.checked.problem = unlooked.problem;
    }
  }
  if (judged.verdict == Verdict::kUnable) {
    trouble.problem = judged.checked.problem;
    trouble.code = trouble.problem.code;
    trouble.evidence.why = Why::kFailed;
    trouble.evidence.text = trouble.problem.cause;
    co_return trouble;
  }
  trouble.code = trouble.finding.code;
  trouble.evidence.why = trouble.finding.why;
  trouble.evidence.before = trouble.finding.before;
  trouble.evidence.now = trouble.finding.now;
  trouble.evidence.at = trouble.finding.at;
  trouble.evidence.text = cause_of(trouble.finding);
  co_return trouble;
}

// Whose fault it is: of which sizes, where it was sizes that were made up.
Task<void> Lab::blame(Row& row, const Judged& judged, Trouble& trouble) {
  if (trouble.problem.number >= 0) co_return;  // nothing was compared
  const Check& check = judged.check;
  const bool parted = trouble.finding.why == Why::kBranches;
  if (check.kind == Check::Kind::kValues) {
    if (!parted) trouble.other_values = judged.checked.number;
    co_return;
  }
  trouble.far = check.far;
  trouble.at_example = row.id == 0 && check.kind == Check::Kind::kCall && check.number == 0 &&
                       judged.checked.outcome != Checked::Outcome::kFailed;
  const ProbeResult& probed = *row.probed;
  if (check.kind == Check::Kind::kSizes) {
    trouble.values = check.values;
  } else {
    const Sizes& sizes = check.number == 0 || row.id > 0
                             ? row.example
                             : request_.calls.at(static_cast<std::size_t>(check.number));
    const std::optional<Setting> setting = setting_of(probed, sizes);
    if (setting) trouble.values = *setting;
  }
  trouble.blamed = co_await blamed(row, trouble.values, parted);
  bool smallest = true;
  for (std::size_t k = 0; k < trouble.values.size(); ++k) {
    const std::int64_t least = std::max<std::int64_t>(1, probed.symbols[k].min);
    smallest = smallest && trouble.values[k] == least;
  }
  const bool below = !trouble.blamed.empty() &&
                     std::all_of(trouble.blamed.begin(), trouble.blamed.end(), [&](std::size_t k) {
                       return trouble.values[k] < probed.symbols[k].tried.front();
                     });
  trouble.smallest = check.kind == Check::Kind::kSizes && (smallest || below);
}

// The symbols that fail alone at these sizes; else those without which the others do not.
Task<std::vector<std::size_t>> Lab::blamed(Row& row, Setting values, bool operators) {
  std::vector<std::size_t> alone, needed;
  const Setting base = row.probed->runs[0].values;
  for (int turn = 0; turn < 2 && alone.empty(); ++turn) {
    for (std::size_t k = 0; k < values.size(); ++k) {
      Check check;
      check.program = row.id;
      check.kind = Check::Kind::kSizes;
      check.values = turn == 0 ? changed(base, k, values[k]) : changed(values, k, base[k]);
      check.seed = 1;
      bool fails = false;
      if (operators) {
        fails = co_await judge_.parts(check);
      } else {
        fails = co_await judge_.differs(check);
      }
      if (turn == 0 && fails) alone.push_back(k);
      if (turn == 1 && !fails) needed.push_back(k);
    }
  }
  co_return alone.empty() ? needed : alone;
}

}  // namespace fairlead
