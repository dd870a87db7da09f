// The ledger: appends what narrows, and nothing else.
#include "fairlead/experiment/facts.h"

#include <algorithm>

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

template <typename Map, typename Value>
Value at_or(const Map& map, const Place& place, Value otherwise) {
  const auto it = map.find(place);
  return it == map.end() ? otherwise : it->second;
}

// Whether the one says what the other does: some are said once of a file, or of a program.
bool same_reserve(const Fact& a, const Fact& b) {
  if (a.kind != b.kind || a.size != b.size || a.evidence.why != b.evidence.why) return false;
  switch (a.evidence.why) {
    case Why::kOverflows:
      return a.evidence.key == b.evidence.key;
    case Why::kIntegers:
      return a.of == b.of;
    case Why::kPackage:
      return a.evidence.source == b.evidence.source;
    default:
      return a == b;
  }
}

}  // namespace

bool Ledger::narrows(const Fact& fact) const {
  if (fact.kind == FactKind::kOpened) return !limits_.contains(fact.of);
  if (!is_open(fact.of)) return false;
  const Limits& known = limits_.at(fact.of);
  switch (fact.kind) {
    case FactKind::kFixed:
      return !known.fixed.contains(fact.place);
    case FactKind::kLeast:
      return fact.size > at_or(known.least, fact.place, std::int64_t{1});
    case FactKind::kMost:
      return fact.size < at_or(known.most, fact.place, kLargest);
    case FactKind::kOpened:
    case FactKind::kClosed:
      return true;
    case FactKind::kRequired:
    case FactKind::kDoubtful:
    case FactKind::kSolveFor:
    case FactKind::kGivenUp:
    case FactKind::kUntaken:
    case FactKind::kPlain:
    case FactKind::kForgets:
    case FactKind::kUnfused:
      // Once each: a question of one probing, a setting, a size.
      return std::none_of(
          facts_.begin() + static_cast<std::ptrdiff_t>(since_), facts_.end(), [&](const Fact& old) {
            return old.of == fact.of && old.kind == fact.kind && old.size == fact.size &&
                   old.setting == fact.setting && old.evidence.key == fact.evidence.key &&
                   old.evidence.symbol == fact.evidence.symbol;
          });
    case FactKind::kUnproven:
      return std::none_of(facts_.begin(), facts_.end(),
                          [&](const Fact& old) { return same_reserve(old, fact); });
  }
  return false;
}

bool Ledger::add(Fact fact) {
  if (!narrows(fact)) return false;
  Limits& known = limits_[fact.of];
  switch (fact.kind) {
    case FactKind::kFixed:
      known.fixed.emplace(fact.place, facts_.size());
      break;
    case FactKind::kLeast:
      known.least[fact.place] = fact.size;
      break;
    case FactKind::kMost:
      known.most[fact.place] = fact.size;
      break;
    case FactKind::kClosed:
      closed_.insert(fact.of);
      break;
    case FactKind::kForgets:
      known = {};
      since_ = facts_.size();
      break;
    default:
      break;
  }
  if (fact.kind != FactKind::kUnproven) ++narrowed_;
  facts_.push_back(std::move(fact));
  return true;
}

Limits& Ledger::inherited(ProgramId program) {
  const auto own = [&](const Fact& f) { return f.of == program && f.kind != FactKind::kOpened; };
  FAIRLEAD_CHECK(std::none_of(facts_.begin(), facts_.end(), own), "a program that has facts");
  return limits_.at(program);
}

const Fact* Ledger::closing(ProgramId program) const {
  for (const Fact& fact : facts_) {
    if (fact.of == program && fact.kind == FactKind::kClosed) return &fact;
  }
  return nullptr;
}

}  // namespace fairlead
