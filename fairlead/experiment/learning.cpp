// What a failure narrows: dimensions that are to blame get bounds, or are fixed; or a setting joins
// the runs that are solved.
#include <algorithm>

#include "fairlead/experiment/lab.h"

namespace fairlead {

// Whether something was learnt that makes another try worth it. What the user said is not changed.
Task<bool> Lab::learns_from(Row& row, const Trouble& trouble) {
  const bool told = request_.bounded || request_.strict;
  if (trouble.culprit >= 0) {
    if (told || !fix(row, static_cast<std::size_t>(trouble.culprit), trouble.evidence)) {
      co_return false;
    }
    row.solved = row.keeps_probed = false;
    co_return true;
  }
  if (trouble.code == ErrorCode::kUnsupported) {
    co_return fixes_constants(trouble) || keeps_example(row, trouble);
  }
  if (trouble.code != ErrorCode::kDiverged && trouble.code != ErrorCode::kUnsolved &&
      trouble.code != ErrorCode::kDiscrepancy) {
    co_return false;
  }
  row.keeps_probed = request_.several;
  if (trouble.other_values >= 0 && solve_for(row, trouble)) {  // changes no dimension
    row.solved = false;
    co_return true;
  }
  if (told) co_return false;
  const bool learnt = co_await learn(row, trouble);
  if (learnt) row.solved = false;
  co_return learnt;
}

// The last resort: a file for fewer sizes is one. A file that computes something else stays an
// error, which somebody should hear of. Dimensions that are to blame are fixed, or else
// one after the other from the last, and after some of them all.
bool Lab::fixes_one_more(Row& row, const Trouble& trouble) {
  constexpr int kMostAlone = 3;
  const bool of_sizes =
      trouble.code == ErrorCode::kDiverged || trouble.code == ErrorCode::kUnsolved;
  if (request_.bounded || request_.strict || !of_sizes || trouble.other_values >= 0) return false;
  if (!row.probed || row.probed->symbols.empty() || trouble.at_example) return false;
  std::vector<std::size_t> chosen = trouble.blamed;
  if (chosen.empty()) {
    for (std::size_t k = row.probed->symbols.size(); k-- > 0;) chosen.push_back(k);
    if (fixed_blindly_++ < kMostAlone) chosen.resize(1);
  }
  bool learnt = false;
  for (const std::size_t k : chosen) learnt = fix(row, k, trouble.evidence) || learnt;
  if (learnt) row.solved = row.keeps_probed = false;
  return learnt;
}

// A number that the file can only hold as a constant follows sizes that vary: they are fixed, in
// every program, unless the user asked for them.
bool Lab::fixes_constants(const Trouble& trouble) {
  if (trouble.constants.empty() || request_.strict) return false;
  bool learnt = false;
  for (const ProgramId id : programs()) {
    Row& row = *rows_[static_cast<std::size_t>(id)];
    if (!row.probed) continue;
    std::vector<std::size_t> symbols;
    bool asked = false;
    for (std::size_t k = 0; k < row.probed->symbols.size(); ++k) {
      const auto& names = trouble.constants;
      if (std::find(names.begin(), names.end(), row.probed->symbols[k].name) == names.end()) {
        continue;
      }
      symbols.push_back(k);
      for (const Place& place : places_of(*row.probed, k)) {
        const DimRequest& dim = request_.leaves.at(place.leaf).requests.at(place.axis);
        asked = asked || dim.kind == DimRequest::Kind::kDynamic;
      }
    }
    if (symbols.size() < trouble.constants.size() || asked) continue;
    Evidence why = trouble.evidence;
    why.why = Why::kConstant;
    const bool apart = std::any_of(symbols.begin(), symbols.end(), [&](std::size_t k) {
      const std::vector<Place> places = places_of(*row.probed, k);
      return std::any_of(places.begin(), places.end(), [&](const Place& p) {
        return row.example[p.leaf][p.axis] != rows_[0]->example[p.leaf][p.axis];
      });
    });
    if (apart) {  // it would be another constant there
      drop(row, why);
      learnt = true;
      continue;
    }
    bool fixed = false;
    for (const std::size_t k : symbols) fixed = fix(row, k, why) || fixed;
    if (fixed) row.solved = row.keeps_probed = false;
    learnt = fixed || learnt;
  }
  return learnt;
}

// A program that cannot be written, and is not the example's but that of larger sizes than its 1:
// those are left.
bool Lab::keeps_example(Row& row, const Trouble& trouble) {
  if (!request_.several || request_.bounded || !row.probed || !row.probed->base_parted)
    return false;
  bool learnt = false;
  for (const std::size_t k : ones_in(*row.probed, row.example)) {
    learnt = fix(row, k, trouble.evidence) || learnt;
  }
  row.solved = row.keeps_probed = false;
  return learnt;
}

Task<bool> Lab::learn(Row& row, const Trouble& trouble) {
  if (!row.probed || row.probed->symbols.empty()) co_return false;
  if (trouble.code == ErrorCode::kDiscrepancy) {
    if (learns_guarded(row, trouble) || solve_for(row, trouble)) co_return true;
    co_return trouble.far&& bound_to_tried(row, trouble);
  }
  std::vector<std::size_t> blamed = trouble.blamed;
  const bool diverged = trouble.code == ErrorCode::kDiverged;
  if (diverged && row.probed->base_parted && !trouble.smallest) {
    // The example itself: at its sizes of 1 the model executes another program than at larger ones.
    const std::vector<std::size_t> ones = ones_in(*row.probed, row.example);
    if (!ones.empty()) {
      const bool held = co_await at_example(row, ones, trouble.evidence);
      if (held) co_return true;
    }
    if (trouble.values.empty()) blamed = ones;
  }
  if (trouble.code == ErrorCode::kUnsolved && !row.wrong.empty()) {
    row.keeps_probed = false;
    co_return give_up(row);
  }
  bool learnt = false;
  if (trouble.smallest) {
    std::vector<std::size_t> alone, others;
    for (const std::size_t k : blamed) {
      const Sizes at_one = sizes_at(*row.probed, changed(row.probed->runs[0].values, k, 1));
      const std::optional<Evidence> parted = co_await parting(row, at_one);
      (parted ? alone : others).push_back(k);
    }
    const auto together = co_await smallest_together(row, others);
    for (const std::size_t k : alone) {
      const std::int64_t least = co_await smallest_of_same_program(row, k, 1);
      const bool left = co_await leave_below(row, k, least, trouble.evidence);
      learnt = left || learnt;
    }
    for (const auto& [k, size] : together) {
      learnt = raise_minimum(row, k, size, trouble.evidence, false) || learnt;
    }
    // Known already where it is a size between that differs: others, still smaller, do not.
    if (learnt) co_return true;
  }
  if (diverged && !trouble.values.empty()) {
    bool left = true;
    for (const std::size_t k : blamed) {
      if (left) left = co_await bound_at_other_program(row, k, trouble.values[k], trouble.evidence);
    }
    if (left) co_return !blamed.empty();
  }
  if (diverged && trouble.far && bound_to_tried(row, trouble)) co_return true;
  if (trouble.code == ErrorCode::kUnsolved) blamed = co_await unsolved_symbols(row);
  row.keeps_probed = false;
  for (const std::size_t k : blamed) learnt = fix(row, k, trouble.evidence) || learnt;
  co_return learnt;
}

// torch.export may have made a size of 1 a case that its program does not serve: then 2 is the
// smallest.
bool Lab::learns_guarded(Row& row, const Trouble& trouble) {
  if (!trouble.guarded || !trouble.smallest) return false;
  Evidence why;
  why.why = Why::kGuarded;
  bool learnt = false;
  for (const std::size_t k : trouble.blamed) {
    learnt = raise_minimum(row, k, 2, why, false) || learnt;
  }
  row.keeps_probed = false;
  return learnt;
}

// A setting at which the file was wrong joins the runs, once; wrong there again, it is a
// discrepancy.
bool Lab::solve_for(Row& row, const Trouble& trouble) {
  Fact fact;
  fact.of = row.id;
  fact.kind = FactKind::kSolveFor;
  fact.evidence = trouble.evidence;
  if (trouble.other_values >= 0 && row.calls.empty()) {
    if (!ledger_.add(std::move(fact))) return false;
    row.calls.push_back(trouble.other_values);
    return true;
  }
  if (trouble.values.empty()) return false;
  fact.setting = trouble.values;
  if (!ledger_.add(std::move(fact))) return false;
  row.wrong.push_back(
      {trouble.values, trouble.blamed, trouble.smallest, trouble.far, trouble.evidence});
  return true;
}

// Nothing explains the integers at those settings: bounds where only the smallest size fails, else
// fixes.
bool Lab::give_up(Row& row) {
  bool learnt = false;
  const std::vector<Wrong> wrong = std::exchange(row.wrong, {});
  for (const Wrong& each : wrong) {
    Fact fact;
    fact.of = row.id;
    fact.kind = FactKind::kGivenUp;
    fact.setting = each.values;
    fact.evidence = each.evidence;
    (void)ledger_.add(std::move(fact));
    for (const std::size_t k : each.blamed) {
      const std::vector<std::int64_t>& tried = row.probed->symbols[k].tried;
      if (each.smallest) {
        const std::int64_t least = std::max<std::int64_t>(2, tried.front());
        learnt = raise_minimum(row, k, least, each.evidence, false) || learnt;
      } else if (each.far && each.values[k] > tried.back()) {
        learnt = lower_maximum(row, k, tried.back(), each.evidence, false) || learnt;
      } else {
        learnt = fix(row, k, each.evidence) || learnt;
      }
    }
  }
  return learnt;
}

}  // namespace fairlead
