// The file against eager, and who is to blame where they differ.
#include <algorithm>

#include "fairlead/experiment/check_plan.h"
#include "fairlead/experiment/lab.h"

namespace fairlead {

Task<std::optional<Trouble>> Lab::verify(Row& row, const Emitted& file) {
  CheckRequest request;
  request.calls = row.id == 0 ? static_cast<int>(request_.calls.size()) : 1;
  request.effort = effort_for({request_.weight_bytes, row.built.operators,
                               static_cast<std::int64_t>(request_.leaves.size())},
                              row.id > 0);
  const std::optional<Setting> example = setting_of(*row.probed, row.example);
  if (example) request.example = *example;
  for (const auto& [name, most] : file.largest) request.largest[name] = most;
  CheckPlan plan(*row.probed, std::move(request));
  const double start = clock_;
  for (;;) {
    std::optional<Check> check = plan.next(clock_ - start);
    if (!check) co_return std::nullopt;
    check->program = row.id;
    const Checked checked = co_await ask<Checked>(*check);
    plan.told(*check, checked);
    if (checked.verdict != Checked::Verdict::kDiffers &&
        checked.verdict != Checked::Verdict::kUnable) {
      continue;
    }
    Trouble trouble = co_await trouble_of(row, *check, checked);
    co_return trouble;
  }
}

Task<Trouble> Lab::trouble_of(Row& row, Check check, Checked checked) {
  Trouble trouble;
  trouble.program = row.id;
  trouble.problem = checked.problem;
  trouble.code = checked.problem.code;
  trouble.evidence.why = checked.parted ? Why::kBranches : Why::kDiffers;
  trouble.evidence.before = checked.before;
  trouble.evidence.now = checked.now;
  trouble.evidence.at = checked.at;
  trouble.evidence.text = checked.problem.text;
  trouble.guarded = checked.guarded;
  if (checked.verdict == Checked::Verdict::kUnable) {
    trouble.evidence.why = Why::kFailed;
    co_return trouble;
  }
  if (check.kind == Check::Kind::kValues) {
    if (!checked.parted) trouble.other_values = checked.number;
    co_return trouble;
  }
  trouble.far = check.far;
  trouble.at_example =
      row.id == 0 && check.kind == Check::Kind::kCall && check.number == 0 && checked.computed;
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
  trouble.blamed = co_await blamed(row, trouble.values, checked.parted);
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
  co_return trouble;
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
      check.blame = true;
      check.operators = operators;
      const Checked checked = co_await ask<Checked>(check);
      const bool fails = checked.verdict == Checked::Verdict::kDiffers;
      if (turn == 0 && fails) alone.push_back(k);
      if (turn == 1 && !fails) needed.push_back(k);
    }
  }
  co_return alone.empty() ? needed : alone;
}

}  // namespace fairlead
