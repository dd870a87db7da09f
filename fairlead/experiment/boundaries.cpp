// Where the sizes of a program end and another program begins.
#include <algorithm>

#include "fairlead/experiment/lab.h"

namespace fairlead {

// ---- what is known ------------------------------------------------------------------------------

std::int64_t Lab::most_of(const Row& row, std::size_t k) const {
  const auto& most = ledger_.limits(row.id).most;
  std::int64_t found = kLargest;
  for (const auto& [place, unit] : units_of(*row.probed, k)) {
    const auto it = most.find(place);
    if (it != most.end()) found = std::min(found, it->second / unit);
  }
  return found;
}

// As far as what is known and what was declared let it go.
std::int64_t Lab::allowed_most(const Row& row, std::size_t k) const {
  std::int64_t found = most_of(row, k);
  for (const auto& [place, unit] : units_of(*row.probed, k)) {
    const std::int64_t declared = request_.leaves.at(place.leaf).requests.at(place.axis).max;
    if (declared < kLargest) found = std::min(found, declared / unit);
  }
  return found;
}

std::vector<Lab::Bound> Lab::bounds(const Row& row) const {
  std::vector<Bound> found;
  const auto& learnt = ledger_.limits(row.id).least;
  for (std::size_t k = 0; k < row.probed->symbols.size(); ++k) {
    const ProbedSymbol& symbol = row.probed->symbols[k];
    std::int64_t least = 1;
    for (const auto& [place, unit] : units_of(*row.probed, k)) {
      const auto it = learnt.find(place);
      if (it != learnt.end()) least = std::max(least, it->second / unit);
    }
    if (symbol.other_below || least == 1) least = symbol.min;
    std::int64_t most = most_of(row, k);
    if (most == kLargest) most = symbol.max;  // one that was declared, too: nobody looked beyond it
    if (least > 1 || most < kLargest) found.emplace_back(symbol.name, least, most);
  }
  return found;
}

std::pair<std::int64_t, std::int64_t> Lab::range_of(const Row& row, std::size_t k) const {
  const ProbedSymbol& symbol = row.probed->symbols.at(k);
  for (const auto& [name, least, most] : bounds(row)) {
    if (name == symbol.name && most != kLargest) return {symbol.min, most};
  }
  return {symbol.min, symbol.max};
}

// ---- facts about a symbol -----------------------------------------------------------------------

// Where every run of this program is within, it stays as it was probed.
bool Lab::raise_minimum(Row& row, std::size_t k, std::int64_t least, Evidence reason, bool taken) {
  const ProbedSymbol& symbol = row.probed->symbols.at(k);
  if (least <= symbol.tried.front()) {
    bound_symbol(*row.probed, k, least, kLargest);
  } else {
    row.keeps_probed = false;
  }
  reason.symbol = symbol.name;
  bool learnt = false;
  for (const auto& [place, unit] : units_of(*row.probed, k)) {
    Fact fact{row.id, place, FactKind::kLeast, least * unit, reason, {least}, taken};
    learnt = ledger_.add(std::move(fact)) || learnt;
  }
  return learnt;
}

bool Lab::lower_maximum(Row& row, std::size_t k, std::int64_t most, Evidence reason, bool taken) {
  reason.symbol = row.probed->symbols.at(k).name;
  bool learnt = false;
  for (const auto& [place, unit] : units_of(*row.probed, k)) {
    Fact fact{row.id, place, FactKind::kMost, most * unit, reason, {most}, taken};
    learnt = ledger_.add(std::move(fact)) || learnt;
  }
  return learnt;
}

bool Lab::fix(Row& row, std::size_t k, const Evidence& reason) {
  bool learnt = false;
  for (const Place& place : places_of(*row.probed, k)) {
    Fact fact;
    fact.of = row.id;
    fact.place = place;
    fact.kind = FactKind::kFixed;
    fact.size = row.example.at(place.leaf).at(place.axis);
    fact.evidence = reason;
    learnt = ledger_.add(std::move(fact)) || learnt;
  }
  return learnt;
}

// Symbols that are to blame far from what ran end there: the model executes another
// program there, which has no one boundary, or the file is wrong.
bool Lab::bound_to_tried(Row& row, const Trouble& trouble) {
  // Larger sizes are to blame where there are any, else smaller ones; of them those that are alone.
  std::vector<std::size_t> beyond, below;
  for (std::size_t k = 0; k < trouble.values.size(); ++k) {
    const std::vector<std::int64_t>& tried = row.probed->symbols.at(k).tried;
    if (trouble.values[k] > tried.back()) beyond.push_back(k);
    if (trouble.values[k] < tried.front()) below.push_back(k);
  }
  const bool above = !beyond.empty();
  const std::vector<std::size_t>& outside = above ? beyond : below;
  std::vector<std::size_t> chosen;
  for (const std::size_t k : outside) {
    const auto& blamed = trouble.blamed;
    if (std::find(blamed.begin(), blamed.end(), k) != blamed.end()) chosen.push_back(k);
  }
  if (trouble.blamed.empty()) chosen = outside;
  bool learnt = false;
  for (const std::size_t k : chosen) {
    const std::vector<std::int64_t>& tried = row.probed->symbols[k].tried;
    const std::int64_t least = tried.front(), most = tried.back();
    bound_symbol(*row.probed, k, above ? 1 : least, above ? most : kLargest);
    learnt = (above ? lower_maximum(row, k, most, trouble.evidence, false)
                    : raise_minimum(row, k, least, trouble.evidence, false)) ||
             learnt;
  }
  return learnt;
}

// ---- boundaries that are found by halving -------------------------------------------------------

// The last size towards `differs` at which the model executes the same operators as in the
// reference run.
Task<std::int64_t> Lab::boundary(Row& row, std::int64_t alike, std::int64_t differs,
                                 SizesAt sizes_at) {
  while (std::abs(differs - alike) > 1) {
    const std::int64_t tried = (alike + differs) / 2;
    const Ran ran = co_await run_at(row, sizes_at(tried), row.probed->runs[0].run);
    (ran.run >= 0 ? alike : differs) = tried;
  }
  co_return alike;
}

// The smallest size of a symbol, at least 2, at which the model still executes the same operators.
Task<std::int64_t> Lab::smallest_of_same_program(Row& row, std::size_t k, std::int64_t differs) {
  const std::int64_t ran = std::max(differs + 1, row.probed->symbols.at(k).tried.front());
  const SizesAt at = [&row, k](std::int64_t size) {
    return sizes_at(*row.probed, changed(row.probed->runs[0].values, k, size));
  };
  const std::int64_t found = co_await boundary(row, ran, differs, at);
  co_return found;
}

// The smallest sizes of symbols, at least 2, at which together the model still executes the same
// operators.
Task<std::vector<std::pair<std::size_t, std::int64_t>>> Lab::smallest_together(
    Row& row, std::vector<std::size_t> symbols) {
  std::vector<std::pair<std::size_t, std::int64_t>> found;
  if (symbols.empty()) co_return found;
  std::map<std::size_t, std::int64_t> ran;
  std::int64_t largest = 2;
  for (const std::size_t k : symbols) {
    ran[k] = std::max<std::int64_t>(2, row.probed->symbols.at(k).tried.front());
    largest = std::max(largest, ran[k]);
  }
  const SizesAt at = [&](std::int64_t size) {
    Setting setting = row.probed->runs[0].values;
    for (const auto& [k, most] : ran) setting[k] = std::min(size, most);
    return sizes_at(*row.probed, setting);
  };
  const std::int64_t alike = co_await boundary(row, largest, 1, at);
  for (const std::size_t k : symbols) found.emplace_back(k, std::min(alike, ran[k]));
  co_return found;
}

// The symbol is at least that; the sizes below are another program's, or refused.
Task<bool> Lab::leave_below(Row& row, std::size_t k, std::int64_t least, Evidence reason) {
  const bool held = co_await below(row, k, least, reason);
  co_return raise_minimum(row, k, least, reason, held);
}

// A symbol ran at other sizes than this one, where the model executes another program: the boundary
// is found. False where it lies between sizes that ran, or was found before.
Task<bool> Lab::bound_at_other_program(Row& row, std::size_t k, std::int64_t size,
                                       Evidence reason) {
  const ProbedSymbol& symbol = row.probed->symbols.at(k);
  const std::vector<Place> places = places_of(*row.probed, k);
  const bool parted = std::any_of(places.begin(), places.end(),
                                  [&](const Place& p) { return row.parted_at.contains(p); });
  if (!may_open() || places.empty() || parted) co_return false;
  if (size < symbol.tried.front()) {
    const std::int64_t least = co_await smallest_of_same_program(row, k, size);
    const bool left = co_await leave_below(row, k, least, reason);
    co_return left;
  }
  if (size <= symbol.tried.back()) co_return false;
  const SizesAt at = [&row, k](std::int64_t n) {
    return sizes_at(*row.probed, changed(row.probed->runs[0].values, k, n));
  };
  const std::int64_t most = co_await boundary(row, symbol.tried.back(), size, at);
  bound_symbol(*row.probed, k, 1, most);
  for (const auto& [place, unit] : units_of(*row.probed, k)) row.parted_at[place] = size * unit;
  co_return lower_maximum(row, k, most, reason, true);
}

// A dimension that was fixed because larger sizes execute another program, although some larger
// ones did not: it is dynamic up to there, and probed again.
Task<bool> Lab::finds_boundary(Row& row) {
  if (!may_open() || request_.cache) co_return false;  // a cache is followed by its next call
  std::map<std::pair<std::int64_t, std::string>, std::vector<Place>> groups;
  for (const FixedDim& fixed : row.probed->fixed) {
    const Place place{fixed.leaf, fixed.axis};
    if (fixed.why != FixedDim::Why::kBranches || row.parted_at.contains(place)) continue;
    groups[{fixed.size, fixed.reason}].push_back(place);
  }
  bool found = false;
  for (const auto& [key, places] : groups) {
    const bool one = co_await finds_boundary_of(row, places, key.first);
    found = one || found;
  }
  co_return found;
}

// Between a larger size of these dimensions than `size` that ran, and one at which the run parted.
// A dimension that grew as much (a mask) grows with them.
Task<bool> Lab::finds_boundary_of(Row& row, std::vector<Place> places, std::int64_t size) {
  const Place first = places[0];
  const auto at = [](const Sizes& sizes, const Place& p) { return sizes.at(p.leaf).at(p.axis); };
  const std::vector<Row::Parting> partings = row.partings;
  const std::map<int, Sizes> ran_at = row.sizes_of;
  for (const Row::Parting& parting : partings) {
    const Sizes& parted = parting.sizes;
    for (const auto& entry : ran_at) {  // not bindings: Clang before 16 lets no lambda have them
      const Sizes& ran = entry.second;
      const std::int64_t step = at(parted, first) - at(ran, first);
      const bool alike = std::all_of(places.begin(), places.end(), [&](const Place& p) {
        return at(ran, p) == at(ran, first) && at(parted, p) - at(ran, p) == step;
      });
      if (step < 1 || at(ran, first) <= size || !alike) continue;
      // Not one of a program that was looked at meanwhile, and left.
      const Ran own = co_await run_at(row, ran, row.probed->runs[0].run);
      if (own.run < 0) continue;
      const SizesAt on_the_way = [&](std::int64_t n) {
        Sizes sizes = ran;
        for (std::size_t leaf = 0; leaf < ran.size(); ++leaf) {
          for (std::size_t axis = 0; axis < ran[leaf].size(); ++axis) {
            if (parted[leaf][axis] - ran[leaf][axis] == step) {
              sizes[leaf][axis] += n - at(ran, first);
            }
          }
        }
        return sizes;
      };
      const std::optional<Evidence> why =
          co_await this->parting(row, on_the_way(at(parted, first)));
      if (!why) continue;
      const std::int64_t most =
          co_await boundary(row, at(ran, first), at(parted, first), on_the_way);
      bool learnt = false;
      for (const Place& place : places) {
        Fact fact{row.id, place, FactKind::kMost, most, *why, {most}, true};
        learnt = ledger_.add(std::move(fact)) || learnt;
        row.parted_at[place] = at(parted, first);
      }
      co_return learnt;
    }
  }
  co_return false;
}

// Larger sizes that execute another program become a further one of the file.
Task<void> Lab::branch_above(Row& row) {
  for (std::size_t k = 0; k < row.probed->symbols.size(); ++k) {
    const auto units = units_of(*row.probed, k);
    const auto parted_at = [&] {
      for (const auto& [place, unit] : units) {
        const auto it = row.parted_at.find(place);
        if (it != row.parted_at.end()) return it->second / unit;
      }
      return std::int64_t{0};
    };
    ProbedSymbol& symbol = row.probed->symbols[k];
    if (symbol.other_above && may_open() && parted_at() == 0) {
      std::int64_t larger = kLargest;
      bool told = true;
      for (const Row::Parting& parting : row.partings) {
        for (const auto& [place, unit] : units) {
          const std::int64_t size = parting.sizes.at(place.leaf).at(place.axis);
          if (size % unit != 0 || size / unit <= symbol.max || size / unit >= larger) continue;
          larger = size / unit;
          told = !parting.ran.untold;
        }
      }
      // Where it executes the same alone, a question about several sizes decides, which is followed.
      bool joint = larger < kLargest && told && row.probed->symbols.size() > 1;
      if (joint) {
        const Setting alone = changed(row.probed->runs[0].values, k, larger);
        const Ran ran = co_await run_at(row, sizes_at(*row.probed, alone), row.probed->runs[0].run);
        joint = ran.run >= 0;
      }
      if (joint) {
        row.probed->symbols[k].max = allowed_most(row, k);
        row.probed->symbols[k].other_above = false;
      } else if (larger < kLargest) {
        Evidence none;
        co_await bound_at_other_program(row, k, larger, none);
      }
    }
    const std::int64_t differs = parted_at();
    if (differs > 0) co_await above(row, k, most_of(row, k), differs);
  }
}

// A dimension that has one size because the model executes another program at every other one (a
// table of positions that is kept for that size): those are a further program of the file.
Task<void> Lab::branch_elsewhere(Row& row) {
  if (row.id != 0 || request_.cache || request_.bounded) co_return;
  std::map<std::pair<std::int64_t, std::string>, std::vector<Place>> groups;
  for (const FixedDim& fixed : row.probed->fixed) {
    if (fixed.why != FixedDim::Why::kBranches || fixed.size < 2) continue;
    groups[{fixed.size, fixed.reason}].push_back({fixed.leaf, fixed.axis});
  }
  const Sizes base = sizes_at(*row.probed, row.probed->runs[0].values);
  const std::vector<Row::Parting> partings = row.partings;
  for (const auto& entry : groups) {
    const std::vector<Place>& places = entry.second;
    if (!first_time(row, places, Side::kAside)) continue;
    // All of them changed where the model ran so, else the first that did. Where no question of the
    // model's tells the programs apart, nobody knows which sizes are whose.
    Sizes chosen;
    Evidence why;
    std::size_t most = 0;
    for (const Row::Parting& parting : partings) {
      Sizes sizes = base;
      std::size_t changed = 0;
      for (const Place& p : places) {
        const std::int64_t size = parting.sizes.at(p.leaf).at(p.axis);
        changed += size != sizes[p.leaf][p.axis] ? 1 : 0;
        sizes[p.leaf][p.axis] = size;
      }
      if (changed <= most || parting.ran.untold) continue;
      const Ran ran = co_await run_at(row, sizes, row.probed->runs[0].run);
      if (!ran.parted || ran.untold) continue;
      // It may refuse them later on, where one of them is as large by chance only.
      const Ran alone = co_await run_at(row, sizes, -1);
      if (alone.run < 0) continue;
      most = changed;
      chosen = std::move(sizes);
      why = branches(ran);
    }
    if (most > 0) co_await elsewhere(row, places, std::move(chosen), std::move(why));
  }
}

}  // namespace fairlead
