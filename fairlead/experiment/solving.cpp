// One program: probed, its runs chosen, built, and its questions followed.
#include <algorithm>

#include "fairlead/experiment/lab.h"
#include "fairlead/experiment/tiny.h"

namespace fairlead {
namespace {

constexpr std::int64_t kFewSteps = 128;

Trouble failure_of(const Row& row, const Problem& problem) {
  Trouble trouble;
  trouble.program = row.id;
  trouble.problem = problem;
  trouble.code = problem.code;
  trouble.evidence.why = problem.code == ErrorCode::kUnsolved   ? Why::kUnsolved
                         : problem.code == ErrorCode::kDiverged ? Why::kBranches
                                                                : Why::kFailed;
  trouble.evidence.text = problem.cause;
  return trouble;
}

}  // namespace

Task<std::optional<Trouble>> Lab::solve(Row& row) {
  std::optional<Trouble> trouble;
  try {
    co_await solve_or_throw(row);
  } catch (const Refusal& refusal) {
    trouble = refusal.trouble;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
    trouble.emplace();
    trouble->program = row.id;
    trouble->own = std::current_exception();
    trouble->code = error.code();
    trouble->evidence.why = Why::kFailed;
    trouble->evidence.text = cause_of(error);
  }
  co_return trouble;
}

Task<void> Lab::solve_or_throw(Row& row) {
  if (!row.keeps_probed) {
    stage_ = Stage::kProbe;
    row.probed.reset();
    row.required.clear();
    row.crossed.clear();
    ++row.probings;
    for (;;) {
      row.partings.clear();
      row.probed = co_await probe(row);
      const bool again = co_await finds_boundary(row);
      if (!again && !went_too_far(row)) break;
    }
    limit_sizes(row);
    note_refused_below(row);
    leave_to_questions(row);
  }
  stage_ = Stage::kProbe;
  co_await branch_above(row);
  co_await branch_elsewhere(row);
  row.keeps_probed = false;
  stage_ = Stage::kSolve;
  co_await build(row);
  stage_ = Stage::kGuards;
  co_await settle_questions(row);
  row.solved = true;
}

Task<ProbeResult> Lab::probe(Row& row) {
  ProbeRequest asked;
  asked.leaves = request_.leaves;
  const auto dim = [&](const Place& p) -> DimRequest& {
    return asked.leaves.at(p.leaf).requests.at(p.axis);
  };
  if (row.parent >= 0) {  // what is asked of the file is not asked of each of its programs
    for (Leaf& leaf : asked.leaves) {
      for (DimRequest& each : leaf.requests) {
        if (each.kind == DimRequest::Kind::kDynamic) each.kind = DimRequest::Kind::kAuto;
      }
    }
  }
  const Limits& limits = ledger_.limits(row.id);
  for (const auto& [place, least] : limits.least) dim(place).min = least;
  for (const auto& [place, most] : limits.most) dim(place).max = most;
  for (const auto& [place, one] : limits.only) {  // it cannot move, but may be part of a sum
    dim(place) = {DimRequest::Kind::kAuto, one.first, one.second, one.second};
  }
  for (const auto& [place, fact] : limits.fixed) dim(place) = {DimRequest::Kind::kStatic, {}};
  if (row.id == 0) {
    asked.calls = request_.calls;
  } else {
    asked.calls = {row.example};
  }
  const AskTrial trial = [this, &row](const Sizes& sizes, int reference,
                                      bool brief) -> Task<TrialResult> {
    const Ran ran = co_await run_at(row, sizes, reference, false, brief);
    TrialResult result;
    result.seconds = asking_.seconds_;
    result.run = ran.run;
    result.parted = ran.parted;
    result.visible = ran.visible;
    result.enough = ran.enough;
    result.operators = static_cast<std::size_t>(ran.operators);
    if (ran.enough) co_return result;
    if (ran.run >= 0) {
      row.sizes_of[ran.run] = sizes;
    } else if (ran.parted) {
      row.partings.push_back({sizes, reference, ran});
      result.reason =
          "the model executes " + ran.now +
          (ran.now == ran.before ? " with other arguments" : " where it executed " + ran.before);
    } else {
      result.reason = ran.error;
    }
    co_return result;
  };
  const AskForesight foresight = [this, &row](std::vector<Sizes> sizes,
                                              int reference) -> Task<int> {
    Foresee step;
    step.program = row.id;
    step.run = reference;
    step.sizes = std::move(sizes);
    const Foreseen foreseen = co_await ask<Foreseen>(std::move(step));
    co_return foreseen.first;
  };
  ProbeResult found = co_await probing(asked, trial, &foresight);
  co_return found;
}

// What the model raised below the sizes that ran is a bound of the contract.
void Lab::note_refused_below(Row& row) {
  for (std::size_t k = 0; k < row.probed->symbols.size(); ++k) {
    const ProbedSymbol& symbol = row.probed->symbols[k];
    if (symbol.below.empty()) continue;
    Evidence why;
    why.why = Why::kRefused;
    why.text = symbol.below;
    (void)raise_minimum(row, k, symbol.min, why, false);
  }
}

// Smaller sizes at which the probing met another program: where the model's questions tell the two
// apart, they tell from which size on, and that may be another one where other symbols are larger.
void Lab::leave_to_questions(Row& row) {
  if (row.id == 0 || row.untold) return;
  for (std::size_t k = 0; k < row.probed->symbols.size(); ++k) {
    ProbedSymbol& symbol = row.probed->symbols[k];
    if (!symbol.other_below) continue;
    const auto& least = ledger_.limits(row.id).least;
    symbol.min = 1;
    for (const auto& [place, unit] : units_of(*row.probed, k)) {
      const auto it = least.find(place);
      if (it != least.end()) symbol.min = std::max(symbol.min, it->second / unit);
    }
    symbol.other_below = false;
  }
}

// Whether sizes beyond the user's largest were tried: then they are bounds, and not tried again.
bool Lab::went_too_far(const Row& row) {
  bool learnt = false;
  for (const auto& [name, most] : request_.max_size) {
    for (const ProbedSymbol& symbol : row.probed->symbols) {
      if (symbol.name != name || symbol.tried.back() <= most) continue;
      for (std::size_t leaf = 0; leaf < request_.leaves.size(); ++leaf) {
        for (std::size_t axis = 0; axis < request_.leaves[leaf].requests.size(); ++axis) {
          DimRequest& asked = request_.leaves[leaf].requests[axis];
          if (text_at(*row.probed, {leaf, axis}) != name || asked.max <= most) continue;
          if (request_.calls.front()[leaf][axis] > most) continue;  // which is refused
          asked.max = most;
          ran_beyond_[name] = *std::upper_bound(symbol.tried.begin(), symbol.tried.end(), most);
          learnt = true;
        }
      }
    }
  }
  return learnt;
}

void Lab::limit_sizes(Row& row) {
  std::vector<std::string> unknown;
  for (const auto& [name, most] : request_.max_size) {
    const bool known =
        std::any_of(row.probed->symbols.begin(), row.probed->symbols.end(),
                    [&, &name = name](const ProbedSymbol& s) { return s.name == name; });
    if (known) {
      (void)limit_symbol(*row.probed, name, most);
    } else if (const auto it = ran_beyond_.find(name); it != ran_beyond_.end()) {
      refuse_largest(name, it->second, most);  // too few sizes are left to learn it from
    } else if (row.id == 0) {                  // a size may be fixed in a further program
      unknown.push_back(name);
    }
  }
  if (unknown.empty()) return;
  unknown_ = std::move(unknown);
  Trouble trouble;
  trouble.program = row.id;
  trouble.code = ErrorCode::kInvalidInput;
  throw Refusal{std::move(trouble)};
}

// ---- runs ---------------------------------------------------------------------------------------

// Where the model accepts it and executes the same operators.
Task<void> Lab::add_run(Row& row, Runs& runs, Setting setting) {
  const Ran ran = co_await run_at(row, sizes_at(*row.probed, setting), runs.numbers[0]);
  if (ran.run < 0) co_return;
  runs.numbers.push_back(ran.run);
  runs.values.push_back(std::move(setting));
}

// The runs to solve: those of the probing, those of further calls with their values, and those at
// settings that turned out wrong before.
Task<Runs> Lab::runs(Row& row) {
  const ProbeResult& probed = *row.probed;
  Runs found;
  for (const ProbedRun& run : probed.runs) {
    found.numbers.push_back(run.run);
    found.values.push_back(run.values);
  }
  for (std::size_t n = 1; row.id == 0 && n < request_.calls.size(); ++n) {
    const std::optional<Setting> setting = setting_of(probed, request_.calls[n]);
    if (!setting) continue;
    Input input;
    input.kind = Input::Kind::kCall;
    input.number = static_cast<int>(n);
    const Ran ran = co_await run_call(row, std::move(input), found.numbers[0]);
    if (ran.run < 0) continue;
    found.numbers.push_back(ran.run);
    found.values.push_back(*setting);
  }
  std::vector<Setting> settings;
  for (const Wrong& wrong : row.wrong) {
    if (wrong.values.size() == probed.symbols.size()) settings.push_back(wrong.values);
  }
  for (std::size_t k = 0; k < probed.symbols.size(); ++k) {  // the last sizes of this program
    const std::int64_t most = most_of(row, k);
    const std::vector<std::int64_t>& tried = probed.symbols[k].tried;
    if (most < kLargest && std::find(tried.begin(), tried.end(), most) == tried.end()) {
      settings.push_back(changed(probed.runs[0].values, k, most));
    }
  }
  for (const Setting& setting : settings) co_await add_run(row, found, setting);
  for (const ProbedRun& run : row.crossed) {
    found.numbers.push_back(run.run);
    found.values.push_back(run.values);
  }
  co_return found;
}

// More runs, one symbol at a time at further sizes: few runs do not tell a quotient or a remainder
// from other forms, or of which symbol it is.
Task<Runs> Lab::at_more_sizes(Row& row, Runs runs) {
  const ProbeResult& probed = *row.probed;
  for (std::size_t k = 0; k < probed.symbols.size(); ++k) {
    const ProbedSymbol& symbol = probed.symbols[k];
    const std::int64_t least = symbol.tried.front(), most = symbol.tried.back();
    // The last one: a loop over chunks takes more than two steps there.
    const std::int64_t sizes[] = {least * 3 / 4, least / 2 + 1,
                                  most + std::max<std::int64_t>(1, most / 8), most + 2,
                                  most <= kFewSteps ? 4 * most + 1 : 0};
    for (const std::int64_t size : sizes) {
      const bool within = std::max<std::int64_t>(1, symbol.min) <= size && size <= symbol.max;
      const bool tried =
          std::find(symbol.tried.begin(), symbol.tried.end(), size) != symbol.tried.end();
      if (within && !tried) co_await add_run(row, runs, changed(probed.runs[0].values, k, size));
    }
  }
  co_return runs;
}

// More runs, with other integers, or floats at other places, in one input at a time: what the model
// reads from them becomes a symbol.
Task<Runs> Lab::with_other_values(Row& row, Runs runs) {
  const ProbeResult& probed = *row.probed;
  const Setting base = probed.runs[0].values;
  const auto add = [&](const Ran& ran, const Setting& setting) {
    if (ran.run < 0) return;
    runs.numbers.push_back(ran.run);
    runs.values.push_back(setting);
  };
  for (int n = 0;; ++n) {
    Input input;
    input.kind = Input::Kind::kOther;
    input.sizes = sizes_at(probed, base);
    input.number = n;
    const Input given = input;
    const Ran ran = co_await run_call(row, std::move(input), runs.numbers[0]);
    if (ran.absent) break;
    add(ran, base);
    if (ran.parted) co_await by_value(row, given, ran);
  }
  for (const int call : row.calls) {
    const std::optional<Setting> setting = setting_of(probed, row.example);
    if (!setting) continue;
    Input input;
    input.kind = Input::Kind::kChecked;
    input.number = call;
    const Ran ran = co_await run_call(row, std::move(input), runs.numbers[0]);
    add(ran, *setting);
  }
  co_return runs;
}

// The other values at other sizes: behind a question about them, a number that forgot the sizes it
// follows from looks like a constant at those of the example alone.
Task<Runs> Lab::with_other_values_elsewhere(Row& row, Runs runs) {
  constexpr std::size_t kMostSettings = 4;
  const ProbeResult& probed = *row.probed;
  std::vector<Setting> settings;
  for (auto it = probed.runs.rbegin(); it != probed.runs.rend(); ++it) {
    const bool known = it->values == probed.runs[0].values ||
                       std::find(settings.begin(), settings.end(), it->values) != settings.end();
    if (!known && settings.size() < kMostSettings) settings.push_back(it->values);
  }
  for (const Setting& setting : settings) {
    for (int n = 0;; ++n) {
      Input input;
      input.kind = Input::Kind::kOther;
      input.sizes = sizes_at(probed, setting);
      input.number = n;
      const Ran ran = co_await run_call(row, std::move(input), runs.numbers[0]);
      if (ran.absent) break;
      if (ran.run < 0) continue;
      runs.numbers.push_back(ran.run);
      runs.values.push_back(setting);
    }
  }
  co_return runs;
}

// ---- building -----------------------------------------------------------------------------------

Task<Built> Lab::build_of(Row& row, const Runs& runs, bool kept) {
  Build step;
  step.program = row.id;
  step.runs = runs.numbers;
  step.values = runs.values;
  step.kept = kept;
  if (kept) row.looked_at = runs;
  Built built = co_await ask<Built>(std::move(step));
  co_return built;
}

// Where the program goes by values that were read, runs with other values are tried as well.
Task<void> Lab::build(Row& row) {
  Runs chosen = co_await runs(row);
  Built built = co_await build_of(row, chosen, true);
  if (built.problem.code == ErrorCode::kUnsolved || built.fragile) {
    Runs more = co_await at_more_sizes(row, chosen);
    if (built.fragile || more.numbers.size() > chosen.numbers.size()) {
      chosen = std::move(more);
      built = co_await build_of(row, chosen, true);
    }
  }
  if (built.problem.number >= 0) throw Refusal{failure_of(row, built.problem)};
  row.built = built;
  const bool asks = !row.calls.empty() || built.asked_of_values() > 0;
  if (!asks && !built.reads) co_return;
  const Runs more = co_await with_other_values(row, chosen);
  if (more.numbers.size() == chosen.numbers.size()) co_return;
  const Built second = co_await build_of(row, more, true);
  if (second.problem.number < 0) {
    row.built = second;
    if (second.asked_of_values() == 0 || !is_tiny(second.operators)) co_return;
    const Runs wide = co_await with_other_values_elsewhere(row, more);
    if (wide.numbers.size() == more.numbers.size()) co_return;
    const Built third = co_await build_of(row, wide, true);
    if (third.problem.number >= 0) throw Refusal{failure_of(row, third.problem)};
    row.built = third;
  } else if (second.problem.code != ErrorCode::kUnsolved &&
             second.problem.code != ErrorCode::kDiverged) {
    throw Refusal{failure_of(row, second.problem)};
  }  // else: what follows from them is not one expression, and they stay assumed
}

// Symbols without which every integer is solved: all but those that can be let free one after the
// other.
Task<std::vector<std::size_t>> Lab::unsolved_symbols(Row& row) {
  std::set<std::size_t> fixed;
  for (std::size_t k = 0; k < row.probed->symbols.size(); ++k) fixed.insert(k);
  const Runs all = row.looked_at;
  for (std::size_t k = 0; k < row.probed->symbols.size(); ++k) {
    Runs kept;
    for (std::size_t r = 0; r < all.numbers.size(); ++r) {
      const bool alike = std::all_of(fixed.begin(), fixed.end(), [&](std::size_t f) {
        return f == k || all.values[r][f] == all.values[0][f];
      });
      if (!alike) continue;
      kept.numbers.push_back(all.numbers[r]);
      kept.values.push_back(all.values[r]);
    }
    const Built built = co_await build_of(row, kept, false);
    if (built.problem.number < 0) fixed.erase(k);
  }
  co_return std::vector<std::size_t>(fixed.begin(), fixed.end());
}

}  // namespace fairlead
