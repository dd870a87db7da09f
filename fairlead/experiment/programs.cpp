// Sizes at which a model executes another program: the file holds that program too, and the sizes
// choose.
//
// 1. Where a run parts at a size, what lies beyond the boundary is a further program, solved from
//    an example on that side.
// 2. A cache that branches on how full it is: the call that comes next in generation is one.
// 3. One that cannot be solved, or that is wrong, is closed: its sizes are refused or fixed.
#include <algorithm>

#include "fairlead/experiment/lab.h"
#include "fairlead/probe/sizes.h"

namespace fairlead {
namespace {

constexpr std::size_t kMostPrograms = 6;
constexpr std::size_t kMostOpened = 40;  // with those that were closed again
constexpr std::ptrdiff_t kMostByValue = 3;

}  // namespace

bool Lab::may_open() const {
  return request_.several && !request_.strict && programs().size() < kMostPrograms &&
         rows_.size() < kMostOpened;
}

bool Lab::first_time(const Row& row, const std::vector<Place>& places, Side side) {
  if (row.side == Side::kStep) return false;
  const bool fresh = looked_beyond_.emplace(row.id, places, side).second;
  return fresh && may_open();
}

// Whether another program of the file is what the model executes there. One that waits to be solved
// was opened for sizes on one side of a bound: where it is the same one beyond another bound, its
// own questions tell its sizes, and not that bound.
Task<bool> Lab::is_held(Row& row, Sizes sizes) {
  for (const ProgramId id : programs()) {
    Row& other = *rows_[static_cast<std::size_t>(id)];
    if (&other == &row || other.side == Side::kStep || other.by_value) continue;
    if (other.solved) {
      const std::optional<Setting> setting = setting_of(*other.probed, sizes);
      if (!setting || !within(other, *setting)) continue;
      const Ran ran = co_await run_at(other, sizes, other.probed->runs[0].run);
      if (ran.run >= 0) co_return true;
    } else if (other.id > 0 && other.probings == 0 && !other.fixed) {
      const Ran first = co_await run_at(other, other.example, -1);
      if (first.run < 0) continue;
      const Ran ran = co_await run_at(other, sizes, first.run);
      if (ran.run < 0) continue;
      Limits& limits = ledger_.inherited(other.id);
      for (std::size_t leaf = 0; leaf < sizes.size(); ++leaf) {
        for (std::size_t axis = 0; axis < sizes[leaf].size(); ++axis) {
          const std::int64_t size = sizes[leaf][axis];
          const auto least = limits.least.find({leaf, axis});
          if (least != limits.least.end() && size < least->second) limits.least.erase(least);
          const auto most = limits.most.find({leaf, axis});
          if (most != limits.most.end() && size > most->second) limits.most.erase(most);
        }
      }
      other.side = Side::kAside;
      other.places.clear();
      other.rest.clear();
      other.elsewhere.push_back(std::move(sizes));
      co_return true;
    }
  }
  co_return false;
}

// Whether these sizes are within the bounds of a program.
bool Lab::within(const Row& row, const Setting& setting) const {
  for (std::size_t k = 0; k < setting.size(); ++k) {
    const auto [least, most] = range_of(row, k);
    if (setting[k] < least || setting[k] > most) return false;
  }
  return true;
}

// A program for the sizes of a symbol below `least`; false where there is none to try.
Task<bool> Lab::below(Row& row, std::size_t k, std::int64_t least, Evidence reason) {
  const std::vector<Place> places = places_of(*row.probed, k);
  const Setting base = row.probed->runs[0].values;
  const std::optional<Evidence> why =
      co_await parting(row, sizes_at(*row.probed, changed(base, k, least - 1)));
  if (!why || !first_time(row, places, Side::kBelow)) co_return false;
  const bool known = co_await is_held(row, sizes_at(*row.probed, changed(base, k, least - 1)));
  if (known) co_return true;
  std::vector<std::int64_t> others;
  if (least <= 3) {  // one or two sizes: each is a program of its own
    for (std::int64_t size = least - 1; size > 0; --size) others.push_back(size);
    co_await each(row, k, std::move(others), reason);
    co_return true;
  }
  const std::int64_t most = least - 1;
  std::vector<std::int64_t> primes;
  for (std::int64_t n = 2; n <= most; ++n) {
    if (is_prime(n)) primes.push_back(n);
  }
  const std::int64_t size = primes.size() > 1 ? primes[primes.size() - 2] : primes[0];
  others.push_back(1);  // where the program is for one size only, the others may have theirs
  for (std::int64_t n = most; n > 1; --n) others.push_back(n);
  std::erase(others, size);
  Opening opening;
  opening.side = Side::kBelow;
  opening.symbol = row.probed->symbols[k].name;
  opening.words = opening.symbol + " = 1 to " + std::to_string(most);
  opening.parting = *why;
  opening.places = places;
  opening.size = least;
  opening.reason = reason;
  Input input;
  input.sizes = sizes_at(*row.probed, changed(base, k, size));
  Row* made = co_await open(row, std::move(input), std::move(opening));
  if (made == nullptr) co_return false;
  made->rest = std::move(others);
  for (const auto& [place, unit] : units_of(*row.probed, k)) {
    ledger_.inherited(made->id).most[place] = most * unit;
  }
  co_return true;
}

// A program for every single size of a symbol.
Task<void> Lab::each(Row& row, std::size_t k, std::vector<std::int64_t> sizes, Evidence reason) {
  const std::vector<Place> places = places_of(*row.probed, k);
  const std::string symbol = row.probed->symbols[k].name;
  for (const std::int64_t size : sizes) {
    if (!may_open()) {
      Fact fact;
      fact.of = row.id;
      fact.kind = FactKind::kUntaken;
      fact.size = size;
      fact.evidence = reason;
      fact.evidence.symbol = symbol;
      (void)ledger_.add(std::move(fact));
      continue;
    }
    Input input;
    input.sizes = sizes_at(*row.probed, changed(row.probed->runs[0].values, k, size));
    const std::optional<Evidence> why = co_await parting(row, input.sizes);
    Opening opening;
    opening.side = Side::kAt;
    opening.words = symbol + " = " + std::to_string(size);
    opening.parting = why ? *why : reason;
    opening.places = places;
    opening.fixed = true;
    opening.size = size;
    opening.reason = reason;
    opening.symbol = symbol;
    co_await open(row, std::move(input), std::move(opening));
  }
}

// A program for the sizes of a symbol above `most`, from an example of `size`.
Task<bool> Lab::above(Row& row, std::size_t k, std::int64_t most, std::int64_t size) {
  const std::vector<Place> places = places_of(*row.probed, k);
  Input input;
  input.sizes = sizes_at(*row.probed, changed(row.probed->runs[0].values, k, size));
  const std::optional<Evidence> why = co_await parting(row, input.sizes);
  if (!why || !first_time(row, places, Side::kAbove)) co_return false;
  const bool known = co_await is_held(row, input.sizes);
  if (known) co_return true;
  Opening opening;
  opening.side = Side::kAbove;
  opening.symbol = row.probed->symbols[k].name;
  opening.words = opening.symbol + " = " + std::to_string(most + 1) + " and more";
  opening.parting = opening.reason = *why;
  opening.places = places;
  opening.size = most;
  Row* made = co_await open(row, std::move(input), std::move(opening));
  if (made == nullptr) co_return false;
  for (const auto& [place, unit] : units_of(*row.probed, k)) {
    ledger_.inherited(made->id).least[place] = (most + 1) * unit;
  }
  co_return true;
}

// A program from an example at which a question has the other answer; false where there is none to
// try.
Task<bool> Lab::aside(Row& row, Setting setting, std::string key, Evidence why) {
  if (row.side == Side::kStep || !looked_aside_.emplace(row.id, key).second) co_return false;
  Input input;
  input.sizes = sizes_at(*row.probed, setting);
  const bool known = co_await is_held(row, input.sizes);
  if (known) co_return true;
  if (!may_open() || is_costly(row, input.sizes)) co_return false;
  // A call of the user's that goes the same way is a better example than one that is made up.
  for (std::size_t n = 1; n < request_.calls.size(); ++n) {
    Input given;
    given.kind = Input::Kind::kCall;
    given.number = static_cast<int>(n);
    const Input kept = given;
    const std::optional<Evidence> parted = co_await parting_of(row, std::move(given));
    if (!parted) continue;
    input = kept;
    break;
  }
  Opening opening;
  opening.side = Side::kAside;
  opening.words = key;
  opening.parting = opening.reason = why;
  opening.reason.key = key;
  Row* made = co_await open(row, std::move(input), std::move(opening));
  co_return made != nullptr;
}

// A program from an example in which dimensions have other sizes than the one that this program has
// them at.
Task<void> Lab::elsewhere(Row& row, std::vector<Place> places, Sizes sizes, Evidence why) {
  const bool known = co_await is_held(row, sizes);
  if (known) co_return;
  Opening opening;
  opening.side = Side::kAside;
  for (const Place& p : places) {
    opening.words += (opening.words.empty() ? "axis " : " or axis ") + std::to_string(p.axis) +
                     " of " + request_.leaves.at(p.leaf).name + " is not " +
                     std::to_string(row.example.at(p.leaf).at(p.axis));
  }
  opening.parting = opening.reason = why;
  opening.reason.key = opening.words;
  Input input;
  input.sizes = std::move(sizes);
  Row* made = co_await open(row, std::move(input), std::move(opening));
  if (made == nullptr) co_return;
  for (const Place& p : places) {
    ledger_.inherited(made->id).least.erase(p);
    ledger_.inherited(made->id).most.erase(p);
  }
  made->to_vary = std::move(places);
}

// A program from an example with other values, which a question about them answers otherwise.
Task<void> Lab::by_value(Row& row, Input input, Ran ran) {
  const std::vector<ProgramId> held = programs();
  const auto of_values = std::count_if(held.begin(), held.end(), [&](ProgramId id) {
    return rows_[static_cast<std::size_t>(id)]->by_value;
  });
  if (!by_values_ || row.built.asked_of_values() == 0 || row.side == Side::kStep || !may_open() ||
      of_values >= kMostByValue)
    co_return;
  // Back to where it came from.
  for (const Row* each = &row; each->by_value; each = rows_[each->parent].get()) {
    if (each->parting.before == ran.now && each->parting.now == ran.before) co_return;
  }
  if (!looked_aside_.emplace(row.id, ran.now).second) co_return;
  input.of = row.id;
  for (const ProgramId id : programs()) {
    Row& other = *rows_[static_cast<std::size_t>(id)];
    if (!other.probed || &other == &row) continue;
    const std::optional<Evidence> parted = co_await parting_of(other, input);
    if (!parted) co_return;  // the file holds that program
  }
  Opening opening;
  opening.side = Side::kAside;
  opening.words = "other values";
  opening.parting = opening.reason = branches(ran);
  opening.reason.key = opening.words;
  Row* made = co_await open(row, std::move(input), std::move(opening));
  if (made != nullptr) made->by_value = true;
}

// Leaves what is chosen by values to the assumptions of the contract.
bool Lab::drop_by_values(const Evidence& why) {
  by_values_ = false;
  bool any = false;
  for (Row* row : held()) {
    if (!row->by_value || !ledger_.is_open(row->id)) continue;
    drop(*row, why);
    any = true;
  }
  return any;
}

// Whether a program beside another that values lead to answers one of its questions otherwise: the
// file goes by that, and takes either but not both.
bool Lab::chosen_by_values(const Row& row) const {
  const auto asked = [](const Row& of) {
    std::map<std::string, std::vector<std::string>> answers;  // by line, in order
    for (const Built::Question& q : of.built.questions) {
      if (q.kind == Built::Kind::kValue) answers[q.source].push_back(q.form);
    }
    return answers;
  };
  const auto own = asked(row);
  for (const Row* each = &row; each->parent >= 0; each = &this->row(each->parent)) {
    if (!each->by_value) continue;
    const auto other = asked(this->row(each->parent));
    const bool apart = std::any_of(own.begin(), own.end(), [&](const auto& line) {
      const auto it = other.find(line.first);
      if (it == other.end()) return false;
      const std::size_t both = std::min(line.second.size(), it->second.size());
      return !std::equal(line.second.begin(),
                         line.second.begin() + static_cast<std::ptrdiff_t>(both),
                         it->second.begin());
    });
    if (!apart) return false;
  }
  return true;
}

// The example has sizes of 1 and larger ones are another program: its own is a further one beside
// the larger.
Task<bool> Lab::at_example(Row& row, std::vector<std::size_t> ones, Evidence reason) {
  std::vector<std::size_t> parted;
  for (const std::size_t k : ones) {
    const Setting at_one = changed(row.probed->runs[0].values, k, 1);
    const std::optional<Evidence> other = co_await parting(row, sizes_at(*row.probed, at_one));
    if (other) parted.push_back(k);
  }
  std::vector<Place> places;
  std::string words;
  for (const std::size_t k : parted) {
    for (const Place& place : places_of(*row.probed, k)) places.push_back(place);
    words += (words.empty() ? "" : ", ") + row.probed->symbols[k].name + " = 1";
  }
  const std::optional<Evidence> why = co_await parting(row, row.example);
  if (parted.empty() || !why || !first_time(row, places, Side::kExample)) co_return false;
  std::vector<std::int64_t> least;
  for (const std::size_t k : parted) {
    const std::int64_t size = co_await smallest_of_same_program(row, k, 1);
    least.push_back(size);
  }
  Opening opening;
  opening.side = Side::kExample;
  opening.words = words;
  opening.parting = *why;
  opening.places = places;
  opening.fixed = true;
  opening.reason = reason;
  Input input;
  input.sizes = row.example;
  Row* made = co_await open(row, std::move(input), std::move(opening));
  if (made == nullptr) co_return false;
  for (std::size_t i = 0; i < parted.size(); ++i) {
    (void)raise_minimum(row, parted[i], least[i], reason, true);
  }
  co_return true;
}

// ---- generation ---------------------------------------------------------------------------------

// Whether a cache, or the number of new tokens, has a fixed size because the model branches on it.
bool Lab::branches_on_cache_or_tokens(const Row& row) const {
  if (!request_.cache || !row.probed) return false;
  const auto& learnt = ledger_.limits(row.id).fixed;
  return std::any_of(row.probed->fixed.begin(), row.probed->fixed.end(), [&](const FixedDim& f) {
    const Role role = request_.roles.at(f.leaf);
    const bool counts = role == Role::kCache || (role == Role::kTokens && f.axis == 1);
    return counts && (learnt.contains({f.leaf, f.axis}) || f.why == FixedDim::Why::kBranches ||
                      f.why == FixedDim::Why::kZero);
  });
}

// The next calls of generation, where a cache or the number of tokens is fixed because the model
// branches.
Task<void> Lab::follow() {
  Row* row = rows_[0].get();
  if (followed_ || !branches_on_cache_or_tokens(*row)) co_return;
  followed_ = true;
  while (may_open() && branches_on_cache_or_tokens(*row)) {
    NextCall next;
    next.program = row->id;
    const CallFacts call = co_await ask<CallFacts>(next);
    if (!call.found) co_return;
    Evidence why;
    Input input;
    input.kind = Input::Kind::kNext;
    input.number = row->id;
    for (const ProgramId id : programs()) {
      Row& other = *rows_[static_cast<std::size_t>(id)];
      if (!other.solved) continue;
      const std::optional<Evidence> parted = co_await parting_of(other, input);
      if (!parted) co_return;
      if (why.why == Why::kNone) why = *parted;
    }
    Opening opening;
    opening.side = Side::kStep;
    opening.words = call.words;
    opening.parting = opening.reason = why;
    opening.inherits = false;
    Row* made = co_await open(*row, input, std::move(opening));
    if (made == nullptr) co_return;
    made->parent = 0;
    row = made;
    const bool solved = co_await solve_further(*row);
    if (!solved) co_return;
  }
}

// ---- rows ---------------------------------------------------------------------------------------

std::vector<Row*> Lab::held() {
  std::vector<Row*> found;
  for (const ProgramId id : programs()) {
    if (id > 0) found.push_back(rows_[static_cast<std::size_t>(id)].get());
  }
  return found;
}

// A program of the model that parts from its parent at dimensions in which it may be fixed.
Task<Row*> Lab::open(Row& parent, Input input, Opening opening) {
  const auto id = static_cast<ProgramId>(rows_.size());
  Open step;
  step.program = id;
  step.parent = parent.id;
  step.input = std::move(input);
  step.plain = parent.plain;
  step.forgets = parent.forgets;
  const CallFacts call = co_await ask<CallFacts>(std::move(step));
  if (!call.found) co_return nullptr;
  rows_.push_back(std::make_unique<Row>());
  Row& row = *rows_.back();
  row.id = id;
  row.parent = parent.id;
  row.example = call.sizes;
  row.plain = parent.plain;
  row.forgets = parent.forgets;
  row.side = opening.side;
  row.symbol = opening.symbol;
  row.words =
      (parent.id > 0 && opening.side != Side::kStep ? parent.words + " and " : "") + opening.words;
  row.parting = opening.parting;
  row.places = opening.places;
  row.fixed = opening.fixed;
  row.size = opening.size;
  row.reason = opening.reason;
  Fact fact;
  fact.of = id;
  fact.kind = FactKind::kOpened;
  fact.size = opening.size;
  fact.evidence = opening.parting;
  fact.evidence.key = row.words;
  fact.evidence.symbol = opening.symbol;
  FAIRLEAD_CHECK(ledger_.add(std::move(fact)), "a program that was opened before");
  Limits& limits = ledger_.inherited(id);
  if (opening.inherits) limits = ledger_.limits(parent.id);
  for (const Place& place : row.places) {
    limits.least.erase(place);
    limits.most.erase(place);
    if (!opening.fixed) continue;
    limits.only[place] = {text_at(*parent.probed, place),
                          row.example.at(place.leaf).at(place.axis)};
  }
  co_return &row;
}

// Every program that has not been solved yet; solving may find further ones.
Task<std::optional<Trouble>> Lab::solve_all() {
  for (;;) {
    Row* waiting = nullptr;
    for (const ProgramId id : programs()) {
      Row& each = *rows_[static_cast<std::size_t>(id)];
      if (!each.solved && waiting == nullptr) waiting = &each;
    }
    if (waiting == nullptr) co_return std::nullopt;
    if (waiting->id > 0) {
      co_await solve_further(*waiting);
      continue;
    }
    std::optional<Trouble> trouble = co_await solve(*waiting);
    if (trouble) co_return trouble;
    drop_fixed();
    co_await follow();
  }
}

// Closes a program where solving it fails, or where it is not what it was to be.
Task<bool> Lab::solve_further(Row& row) {
  for (;;) {
    const std::size_t known = ledger_.facts().size();
    const std::optional<Trouble> trouble = co_await solve(row);
    if (!trouble) break;
    const bool learnt = co_await learns_from(row, *trouble);
    if (!learnt) {
      drop(row, trouble->evidence);
      co_return false;
    }
    FAIRLEAD_CHECK(ledger_.facts().size() > known, "a program that learnt nothing");
  }
  if (!ledger_.is_open(row.id)) co_return false;
  if (!chosen_by_values(row)) {
    Evidence why;
    why.why = Why::kUnchosen;
    drop(row, why);
    co_return false;
  }
  if (row.side == Side::kAbove) {
    // It is to take every size above the smallest, up to what the user asked for.
    std::int64_t asked = kLargest;
    for (const Place& p : row.places) {
      asked = std::min(asked, request_.leaves.at(p.leaf).requests.at(p.axis).max);
    }
    std::size_t open = 0, all = 0;
    for (std::size_t k = 0; k < row.probed->symbols.size(); ++k) {
      const ProbedSymbol& symbol = row.probed->symbols[k];
      for (const auto& [place, unit] : units_of(*row.probed, k)) {
        const bool decides =
            std::find(row.places.begin(), row.places.end(), place) != row.places.end();
        if (!decides) continue;
        ++all;
        open += symbol.max >= asked / unit && !symbol.other_above ? 1 : 0;
        break;
      }
    }
    if (all == 0 || open < all) {
      Evidence why;
      why.why = Why::kEnds;
      drop(row, why);
      co_return false;
    }
  }
  const auto constant = [&](const Place& p) { return is_constant(*row.probed, p); };
  if (!row.to_vary.empty() && std::all_of(row.to_vary.begin(), row.to_vary.end(), constant)) {
    Evidence why;
    why.why = Why::kEnds;
    drop(row, why);  // for one more size a file would be twice as large
    co_return false;
  }
  const bool fixed = std::all_of(row.places.begin(), row.places.end(), constant);
  if (!row.rest.empty() && fixed) {
    const std::vector<std::int64_t> sizes = std::exchange(row.rest, {});
    Row& parent = *rows_[static_cast<std::size_t>(row.parent)];
    for (std::size_t k = 0; k < parent.probed->symbols.size(); ++k) {
      if (parent.probed->symbols[k].name != row.symbol) continue;
      co_await each(parent, k, sizes, row.reason);
      break;
    }
  }
  co_return true;
}

// With those that part from it.
void Lab::drop(Row& row, const Evidence& why) {
  Fact fact;
  fact.of = row.id;
  fact.kind = FactKind::kClosed;
  fact.evidence = why;
  if (!ledger_.add(fact)) return;
  for (Row* inner : held()) {
    if (inner->parent != row.id) continue;
    fact.of = inner->id;
    fact.evidence = {};
    fact.evidence.why = Why::kOuter;
    (void)ledger_.add(fact);
  }
  if (row.side != Side::kExample) return;
  // The example's own program is the one that counts: its sizes are fixed.
  Row& parent = *rows_[static_cast<std::size_t>(row.parent)];
  for (const Place& place : row.places) {
    Fact fixed;
    fixed.of = parent.id;
    fixed.place = place;
    fixed.kind = FactKind::kFixed;
    fixed.size = row.example.at(place.leaf).at(place.axis);
    fixed.evidence = row.reason;
    fixed.setting = {row.id};  // the program that was to be for them
    (void)ledger_.add(std::move(fixed));
  }
  parent.solved = parent.keeps_probed = false;
}

// A dimension that the example's program has fixed meanwhile decides nothing any more.
void Lab::drop_fixed() {
  const auto& fixed = ledger_.limits(0).fixed;
  for (Row* row : held()) {
    const bool decided =
        !row->places.empty() && std::all_of(row->places.begin(), row->places.end(),
                                            [&](const Place& p) { return fixed.contains(p); });
    if (!decided) continue;
    Fact fact;
    fact.of = row->id;
    fact.kind = FactKind::kClosed;
    fact.evidence.why = Why::kDecided;
    (void)ledger_.add(std::move(fact));
  }
}

}  // namespace fairlead
