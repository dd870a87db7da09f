// What numbers remember, as expressions of the program's symbols.
//
// Nodes of a run are translated in order, each once: a dimension is the expression of the value's
// shape, a read is the symbol born there. A number that went through min() or a branch is another
// node on each side; the runs of both sides are asked.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "fairlead/base/error.h"
#include "fairlead/trace/carried_expr.h"
#include "fairlead/trace/program_impl.h"

namespace fairlead {

// Which reads the model goes on computing with, in any run.
void ProgramBuilder::find_read_uses() {
  translated_.resize(request_.runs.size());
  if (request_.nested || request_.rolled != nullptr) return;
  for (const Run* run : request_.runs) {
    for (const Carry& node : run->carried) {
      if (node.kind == CarryKind::kRead) used_reads_[{node.a, node.b}] = true;
    }
    std::vector<char> asked(run->carried.size(), 0);
    const auto mark = [&](CarryId id) {
      if (id != kNoCarry) asked[static_cast<std::size_t>(id)] = 1;
    };
    for (const Guard& guard : run->guards) {
      mark(guard.left);
      mark(guard.right);
    }
    for (std::size_t k = asked.size(); k-- > 0;) {
      const Carry& node = run->carried[k];
      if (asked[k] == 0) continue;
      if (node.kind == CarryKind::kRead) asked_reads_.insert({node.a, node.b});
      if (node.kind <= CarryKind::kRead) continue;  // what they refer to is no node
      mark(node.a);
      mark(node.b);
    }
  }
}

Expr ProgramBuilder::shape_at(std::size_t r, RunValue v, int axis) {
  if (request_.rolled != nullptr) {  // rolled runs number their values anew
    const auto& own = request_.rolled->values[r];
    const auto it = own.find(v);
    if (it == own.end()) return nullptr;
    v = it->second;
  }
  if (const auto it = shapes_.find(v); it != shapes_.end()) {
    return static_cast<std::size_t>(axis) < it->second.size() ? it->second[axis] : nullptr;
  }
  if (static_cast<std::size_t>(v) >= run_.values.size() || axis >= run_.values[v].rank) {
    return nullptr;
  }
  const std::int64_t size = run_.dim(v, axis);
  for (const Run* run : request_.runs) {
    if (run->dim(v, axis) != size) return nullptr;
  }
  return pool().constant(size);
}

Expr ProgramBuilder::translate(std::size_t r, const Carry& node) {
  ExprPool& p = pool();
  const std::vector<Expr>& done = translated_[r].nodes;
  switch (node.kind) {
    case CarryKind::kInt:
      return p.constant(node.i);
    case CarryKind::kFloat:
      return p.real(node.f);
    case CarryKind::kDim:
      return shape_at(r, node.a, node.b);
    case CarryKind::kRead: {
      if (request_.rolled != nullptr) return nullptr;  // operators are numbered otherwise
      const auto it = reads_.find({node.a, node.b});
      return it == reads_.end() ? nullptr : it->second;
    }
    default:
      break;
  }
  const Expr a = done[node.a];
  const Expr b = node.b == kNoCarry ? nullptr : done[node.b];
  if (a == nullptr || (node.b != kNoCarry && b == nullptr)) return nullptr;
  return computed(p, node, a, b);
}

Expr ProgramBuilder::carried(std::size_t r, CarryId id) {
  // The steps of a loop number their values anew, and have no memory of their own.
  if (id == kNoCarry || request_.nested) return nullptr;
  std::vector<Expr>& done = translated_[r].nodes;
  const std::vector<Carry>& nodes = recorded(r).carried;
  while (done.size() <= static_cast<std::size_t>(id)) {
    Expr made = nullptr;
    try {
      made = translate(r, nodes[done.size()]);
    } catch (const Error&) {  // an overflow, a division by 0: it was not computed at every size
    }
    if (made != nullptr && made->weight > kHeaviest) made = nullptr;
    done.push_back(made);
  }
  return done[static_cast<std::size_t>(id)];
}

void ProgramBuilder::add_call_numbers(std::size_t r) {
  if (request_.nested || request_.rolled != nullptr) return;
  const OpRecord& record = request_.runs[r]->ops[op_];
  for (std::uint32_t k = 0; k < record.call_count; ++k) {
    const Expr e = carried(r, request_.runs[r]->call_numbers[record.call_numbers + k]);
    if (e == nullptr) continue;
    if (std::find(call_numbers_.begin(), call_numbers_.end(), e) == call_numbers_.end()) {
      call_numbers_.push_back(e);
    }
  }
}

bool ProgramBuilder::explains(Expr e, const std::vector<std::int64_t>& observed) {
  if (pool().is_real(e) || e->weight > kHeaviest) return false;
  auto [it, fresh] = values_.try_emplace(e);
  if (fresh) {
    try {
      it->second = solver_.values_of(e);
    } catch (const Error&) {  // no value in some run
    }
  }
  return it->second == observed;
}

// The numbers of all runs at one place: the argument itself, or number `k` of the Python call.
std::vector<CarryId> ProgramBuilder::number_ids(std::uint32_t offset, int k) const {
  std::vector<CarryId> ids;
  for (const Run* run : request_.runs) {
    const OpRecord& record = run->ops[op_];
    if (k < 0) {
      ids.push_back(run->items[record.items + offset].carried);
    } else {
      ids.push_back(static_cast<std::uint32_t>(k) < record.call_count
                        ? run->call_numbers[record.call_numbers + static_cast<std::uint32_t>(k)]
                        : kNoCarry);
    }
    if (ids.back() == kNoCarry) return {};
  }
  return ids;
}

Expr ProgramBuilder::remembered(std::uint32_t at, const std::vector<std::int64_t>& observed) {
  const std::uint32_t offset = at - run_.ops[op_].items;
  if (request_.nested) {
    const Expr own = read_in_step(offset, observed);
    return own != nullptr ? own : read_below(observed);
  }
  const Fits fits = [&](Expr e) { return explains(e, observed); };
  if (const std::vector<CarryId> own = number_ids(offset, -1); !own.empty()) {
    const Expr e = unified(own, fits);
    if (e != nullptr && is_const(e) && forgot()) note_fitted(e, "a number");
    return e;
  }
  if (const Expr e = read_below(observed); e != nullptr) return e;
  if (request_.rolled != nullptr) return nullptr;  // operators of a loop have the call of another
  // Where some runs gave a number of their own, others a plain one: not what stood at one place of
  // two different calls.
  const bool some = std::any_of(request_.runs.begin(), request_.runs.end(), [&](const Run* run) {
    return run->items[run->ops[op_].items + offset].carried != kNoCarry;
  });
  if (some) {
    if (const Expr e = written(offset, observed, fits); e != nullptr) return e;
  }
  const Expr e =
      called([&](std::size_t r, const Carry& n) { return !n.real && n.i == observed[r]; }, fits);
  return e != nullptr ? e : written(offset, observed, fits);
}

// The steps of a loop remember what they read themselves, and nothing else (roll_write.cpp).
Expr ProgramBuilder::read_in_step(std::uint32_t offset, const std::vector<std::int64_t>& observed) {
  const std::vector<CarryId> ids = number_ids(offset, -1);
  Expr found = nullptr;
  for (std::size_t r = 0; r < ids.size(); ++r) {
    const Carry& node = request_.runs[r]->carried[static_cast<std::size_t>(ids[r])];
    const auto it = reads_.find({node.a, node.b});
    if (it == reads_.end() || (r > 0 && it->second != found)) return nullptr;
    found = it->second;
  }
  return found != nullptr && explains(found, observed) ? found : nullptr;
}

// Numbers that stand in the source, of which a question chose: x[:, 1:] if n % 2 else x[:, 2:].
// Only where no number has lost its memory so far, which would look the same, and not those that an
// operator computes of a factor below Python.
Expr ProgramBuilder::written(std::uint32_t offset, const std::vector<std::int64_t>& observed,
                             const Fits& fits) {
  if (forgot() || !just_read_.empty()) return nullptr;
  if (vocabulary_.ops[run_.ops[op_].op].name.has(Trait::kScales)) return nullptr;
  std::vector<Expr> by_run;
  for (std::size_t r = 0; r < observed.size(); ++r) {
    const Run& run = *request_.runs[r];
    const CarryId id = run.items[run.ops[op_].items + offset].carried;
    by_run.push_back(id == kNoCarry ? pool().constant(observed[r]) : carried(r, id));
  }
  const auto same = [&](Expr e) { return e == by_run[0]; };
  if (std::all_of(by_run.begin(), by_run.end(), same)) return nullptr;
  return unified(by_run, fits);
}

// What a number of the Python call is that had these values in every run; null where none had.
Expr ProgramBuilder::called(const Matches& matches, const Fits& fits, int place) {
  std::vector<std::vector<CarryId>> places;
  for (std::uint32_t k = 0; k < run_.ops[op_].call_count; ++k) {
    std::vector<CarryId> ids = number_ids(0, static_cast<int>(k));
    bool literal = !ids.empty(), same = !ids.empty();
    for (std::size_t r = 0; r < ids.size() && same; ++r) {
      const Carry& node = request_.runs[r]->carried[ids[r]];
      const Carry& first = request_.runs[0]->carried[ids[0]];
      same = matches(r, node);
      literal = literal && (node.kind == CarryKind::kInt || node.kind == CarryKind::kFloat) &&
                node.i == first.i;
    }
    if (!same) continue;
    if (static_cast<int>(k) == place) {
      if (const Expr e = unified(ids, fits); e != nullptr) return e;
    }
    // Of two that are equal throughout, what stands in the source as a number is the likelier.
    if (literal && place < 0) {
      const Expr e = carried(0, ids[0]);
      if (e != nullptr && forgot()) note_fitted(e, "a number");
      return e;
    }
    places.push_back(std::move(ids));
  }
  Expr first = nullptr;
  for (const auto& ids : places) {
    const Expr e = unified(ids, fits);
    if (e == nullptr || e == first) continue;
    if (first == nullptr) {
      first = e;
    } else {
      add_rival(first, e);
    }
  }
  return first;
}

// Another expression with the same values in every run.
void ProgramBuilder::add_rival(Expr chosen, Expr other) {
  ProgramGuard guard;
  guard.left = chosen;
  guard.right = other;
  guard.rival = true;
  program_.guards.push_back(std::move(guard));
}

namespace {

std::vector<std::size_t> all_runs(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace

Expr ProgramBuilder::unified(const std::vector<CarryId>& ids, const Fits& fits) {
  std::vector<Expr> by_run;
  for (std::size_t r = 0; r < ids.size(); ++r) by_run.push_back(carried(r, ids[r]));
  return unified(by_run, fits);
}

Expr ProgramBuilder::unified(const std::vector<Expr>& by_run, const Fits& fits) {
  if (std::find(by_run.begin(), by_run.end(), nullptr) != by_run.end()) return nullptr;
  const std::vector<std::size_t> all = all_runs(by_run.size());
  follow_ways();
  const bool by_ways = program_.by_ways;
  const Expr e = by_way(by_run, all, 0, {});
  if (e == nullptr || !fits(e)) {
    program_.by_ways = by_ways;
    return of_some(by_run, fits);
  }
  const bool chosen = std::any_of(by_run.begin(), by_run.end(), [&](Expr one) { return one != e; });
  if (chosen && !request_.nested && !require_seen(all, 0, {})) return nullptr;
  return e;
}

// A cache gives back the number of an earlier run, which has no memory in this one, nor has what is
// computed from it: what it is in the others, if that has its value here too.
Expr ProgramBuilder::of_some(const std::vector<Expr>& by_run, const Fits& fits) {
  const auto is_number = [](Expr e) { return is_const(e) || e->kind == ExprKind::kReal; };
  Expr found = nullptr;
  std::size_t symbols = 0;
  for (const Expr e : by_run) {  // in the order of the runs: the first of several
    const std::size_t over = is_number(e) ? 0 : pool().symbols_of(e).size();
    if (over <= symbols || !fits(e)) continue;
    found = e;
    symbols = over;
  }
  if (found != nullptr) note_fitted(found, "a number");
  return found;
}

// What else these runs would allow: a choice by another question that all of them were asked,
// behind the answers that led to it.
void ProgramBuilder::add_choices(Expr found, const std::vector<Expr>& by_run,
                                 const std::vector<std::size_t>& runs,
                                 const std::vector<ProgramGuard>& before) {
  constexpr int kMostRivals = 4, kMostInAll = 64;
  const Expr there = all_hold(pool(), before);
  const auto behind = [&](Expr e) {
    return there == nullptr ? e : pool().where(there, e, pool().constant(0));
  };
  int rivals = 0;
  for (const Way::Step& step : ways_[runs[0]].steps) {
    const Expr other = by_question(step.guard, by_run, runs);
    if (other == nullptr || other == found) continue;
    if (++rivals > kMostRivals || ++choices_ > kMostInAll) return;
    add_rival(behind(found), behind(other));
  }
}

// The questions of every run up to the operator at hand; one that is asked again counts once.
// A count that values decide is the question which of the counts it is that were seen.
void ProgramBuilder::follow_ways() {
  ways_.resize(request_.runs.size());
  const bool all = !request_.recorded.empty();  // operators are numbered otherwise
  const auto is_next = [&](std::size_t r, std::size_t k) {
    const std::vector<Guard>& guards = recorded(r).guards;
    return k < guards.size() && (all || guards[k].op <= op_);
  };
  std::map<Expr, std::set<Expr, ByValue>> counts;
  for (std::size_t r = 0; r < ways_.size(); ++r) {
    for (std::size_t k = ways_[r].next; is_next(r, k); ++k) {
      const auto [left, right] = value_count(r, recorded(r).guards[k]);
      if (left != nullptr) counts[left].insert(right);
    }
  }
  for (std::size_t r = 0; r < ways_.size(); ++r) {
    Way& way = ways_[r];
    const auto add = [&](Compare compare, Expr left, Expr right, bool answer) {
      if (!way.seen.try_emplace({compare, left, right}, answer).second) return;
      way.steps.push_back({{compare, true, left, right, {}, {}}, answer});
    };
    for (; is_next(r, way.next); ++way.next) {
      const Guard& guard = recorded(r).guards[way.next];
      if (guard.right == kNoCarry || way.steps.size() >= kLongestWay) continue;
      if (guard.compare == Compare::kCount) {
        const auto [left, right] = value_count(r, guard);
        if (left == nullptr || counts[left].size() > kMostCounts) continue;
        for (const Expr count : counts[left]) {
          add(Compare::kEqual, left, count, count == right);
          if (count == right) break;
        }
        continue;
      }
      const Expr left = carried(r, guard.left), right = carried(r, guard.right);
      if (left == nullptr || right == nullptr || left == right) continue;
      if (pool().symbols_of(left).empty() && pool().symbols_of(right).empty()) continue;
      add(guard.compare, left, right, guard.outcome);
    }
  }
}

// How often a loop went round, and which number that was, where values that were read decide it.
std::pair<Expr, Expr> ProgramBuilder::value_count(std::size_t r, const Guard& guard) {
  if (guard.compare != Compare::kCount || request_.rolled != nullptr) return {};
  const Expr left = carried(r, guard.left), right = carried(r, guard.right);
  if (left == nullptr || right == nullptr || !is_const(right)) return {};
  if (!is_of_values({Compare::kEqual, true, left, right})) return {};
  return {left, right};
}

// One expression where this question alone tells the runs apart, else null.
Expr ProgramBuilder::by_question(const ProgramGuard& asked, const std::vector<Expr>& by_run,
                                 const std::vector<std::size_t>& runs) {
  Expr yes = nullptr, no = nullptr;
  std::vector<std::size_t> with_yes, with_no;
  for (const std::size_t r : runs) {
    const auto it = ways_[r].seen.find({asked.compare, asked.left, asked.right});
    if (it == ways_[r].seen.end()) return nullptr;
    Expr& side = it->second ? yes : no;
    if (side == nullptr) side = by_run[r];
    if (side != by_run[r]) return nullptr;
    (it->second ? with_yes : with_no).push_back(r);
  }
  if (yes == nullptr || no == nullptr || yes->weight + no->weight > kHeaviest) return nullptr;
  note_thin(yes, with_yes);
  note_thin(no, with_no);
  return either(asked, yes, no);
}

// One expression for runs that went the same way up to step `at`: theirs, or a choice by the last
// question that tells them apart, or by all questions in the order in which the model asked them.
Expr ProgramBuilder::by_way(const std::vector<Expr>& by_run, const std::vector<std::size_t>& runs,
                            std::size_t at, const std::vector<ProgramGuard>& before) {
  const auto alike = [&](std::size_t r) { return by_run[r] == by_run[runs[0]]; };
  if (std::all_of(runs.begin(), runs.end(), alike)) {
    note_thin(by_run[runs[0]], runs);
    return by_run[runs[0]];
  }
  const std::vector<Way::Step>& steps = ways_[runs[0]].steps;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (const Expr e = by_question(step->guard, by_run, runs); e != nullptr) {
      add_choices(e, by_run, runs, before);
      return e;
    }
  }
  for (;; ++at) {
    if (at >= ways_[runs[0]].steps.size()) return nullptr;
    const ProgramGuard& asked = ways_[runs[0]].steps[at].guard;
    std::vector<std::size_t> yes, no;
    for (const std::size_t r : runs) {
      if (at >= ways_[r].steps.size()) return nullptr;
      const auto& [guard, answer] = ways_[r].steps[at];
      if (guard.compare != asked.compare || guard.left != asked.left ||
          guard.right != asked.right) {
        return nullptr;  // something else led them apart
      }
      (answer ? yes : no).push_back(r);
    }
    if (yes.empty() || no.empty()) continue;
    program_.by_ways = true;
    std::vector<ProgramGuard> behind = before;
    behind.push_back(asked);
    behind.back().outcome = true;
    const Expr a = by_way(by_run, yes, at + 1, behind);
    behind.back().outcome = false;
    const Expr b = a == nullptr ? nullptr : by_way(by_run, no, at + 1, behind);
    if (b == nullptr || a == b || a->weight + b->weight > kHeaviest) return a == b ? b : nullptr;
    return either(asked, a, b);
  }
}

// A plain number that may come from a size (it went where no memory is kept) looks like a constant
// where the runs behind the same answers have one size of it.
void ProgramBuilder::note_thin(Expr e, const std::vector<std::size_t>& runs) {
  if (runs.size() == request_.runs.size() || !forgot()) return;
  if (!is_const(e) && e->kind != ExprKind::kReal) return;
  const std::vector<std::int64_t>& first = request_.symbols[runs[0]];
  for (std::size_t s = 0; s < first.size(); ++s) {
    const auto same = [&](std::size_t r) { return request_.symbols[r][s] == first[s]; };
    if (!std::all_of(runs.begin(), runs.end(), same)) continue;
    if (std::find(program_.thin.begin(), program_.thin.end(), first) == program_.thin.end()) {
      program_.thin.push_back(first);
    }
    return;
  }
}

// a where the guard says yes, else b.
Expr ProgramBuilder::either(const ProgramGuard& asked, Expr a, Expr b) {
  const bool reals = pool().is_real(a) || pool().is_real(b);
  const bool less = asked.compare == Compare::kLess || asked.compare == Compare::kLessEqual;
  const bool more = asked.compare == Compare::kGreater || asked.compare == Compare::kGreaterEqual;
  if (!reals && (less || more)) {
    const Expr low = less ? asked.left : asked.right, high = less ? asked.right : asked.left;
    if (a == low && b == high) return pool().min(a, b);
    if (a == high && b == low) return pool().max(a, b);
  }
  return pool().where(holds(pool(), asked), a, b);
}

Expr ProgramBuilder::remembered_real(std::uint32_t at, const std::vector<double>& observed) {
  if (request_.nested) return nullptr;
  const std::uint32_t offset = at - run_.ops[op_].items;
  const Fits fits = [&](Expr e) { return explains_real(e, observed, false); };
  if (const std::vector<CarryId> own = number_ids(offset, -1); !own.empty()) {
    return unified(own, fits);
  }
  if (request_.rolled != nullptr) return nullptr;
  return called_real(observed, false);
}

// Elements of a tensor in single precision are rounded once more.
bool ProgramBuilder::explains_real(Expr e, const std::vector<double>& observed, bool single) {
  try {
    std::vector<double> values = solver_.real_values_of(e);
    for (double& v : values) v = single ? static_cast<float>(v) : v;
    return values == observed;
  } catch (const Error&) {
    return false;
  }
}

Expr ProgramBuilder::called_real(const std::vector<double>& observed, bool single, int place) {
  const auto matches = [&](std::size_t r, const Carry& n) {
    const double value = n.real ? n.f : static_cast<double>(n.i);
    return (single ? static_cast<double>(static_cast<float>(value)) : value) == observed[r];
  };
  return called(matches, [&](Expr e) { return explains_real(e, observed, single); }, place);
}

// How often a rolled loop goes round: what some range() was made of.
Expr ProgramBuilder::counted(const std::vector<std::int64_t>& observed) {
  if (request_.nested || request_.recorded.empty()) return nullptr;
  const std::size_t calls = recorded(0).ranges.size();
  for (const Run* run : request_.recorded) {
    if (run->ranges.size() != calls) return nullptr;
  }
  for (std::size_t k = 0; k < calls; ++k) {
    std::vector<CarryId> ids;
    bool same = true;
    for (std::size_t r = 0; r < request_.recorded.size() && same; ++r) {
      ids.push_back(recorded(r).ranges[k]);
      same = ids.back() != kNoCarry && !recorded(r).carried[ids.back()].real &&
             recorded(r).carried[ids.back()].i == observed[r];
    }
    if (!same) continue;
    const Fits fits = [&](Expr e) { return explains(e, observed); };
    if (const Expr e = unified(ids, fits); e != nullptr && !is_const(e)) return e;
  }
  return nullptr;
}

// Whether a plain number may come from a size: some went where no memory is kept.
bool ProgramBuilder::forgot() const {
  return std::any_of(request_.runs.begin(), request_.runs.end(),
                     [&](const Run* run) { return run->forgot_at <= op_; });
}

// What a model does with a number that forgets (range(n % 7), a table by it) is known for the
// numbers that were seen. Where there are few of them altogether, the others are named, each by the
// nearest sizes on both sides that give it behind the same answers: the program may end before one.
void ProgramBuilder::note_unseen(Expr number, const Counted& counted) {
  constexpr std::size_t kMost = 128;
  const std::vector<SymbolId> over = pool().symbols_of(number);
  const auto is_size = [&](SymbolId s) { return pool().symbols()[s].kind == SymbolKind::kSize; };
  if (!std::all_of(over.begin(), over.end(), is_size) || over.empty()) return;
  if (over.size() != 1) return note_spread(over, counted);
  const std::vector<std::int64_t>& example = request_.symbols[counted.run];
  std::vector<std::int64_t> setting = example;
  const std::int64_t base = setting.at(over[0]);
  const std::int64_t looked = std::clamp<std::int64_t>(4 * base, 512, 8192);
  const auto leads_there = [&] {
    return std::all_of(counted.way.begin(), counted.way.end(), [&](const GuardPath::Step& step) {
      const std::optional<bool> found = answer_at(pool(), program_.guards[step.guard], setting);
      return !found || *found == step.answer;
    });
  };
  std::map<std::int64_t, std::array<std::int64_t, 2>> sizes;  // by number: below, above; 0: none
  std::map<std::int64_t, std::int64_t> elsewhere;  // by number: a size that leads another way
  for (std::int64_t size = 1; size <= looked; ++size) {
    setting[over[0]] = size;
    std::int64_t value = 0;
    try {
      const bool there = leads_there();
      if (!there && elsewhere.size() >= kMost) continue;
      value = pool().evaluate(number, setting);
      if (!there) elsewhere.try_emplace(value, size);
      if (!there) continue;
    } catch (const Error&) {
      continue;
    }
    const auto [it, fresh] = sizes.try_emplace(value);
    if (size <= base || it->second[1] == 0) it->second[size <= base ? 0 : 1] = size;
    // Its range is not to be seen from here.
    if (sizes.size() > kMost || (fresh && size > looked / 2)) return note_spread(over, counted);
  }
  for (const Expr each : counted.numbers) {
    if (!is_const(each)) continue;
    sizes.erase(each->value);
    elsewhere.erase(each->value);
  }
  setting = example;
  for (const auto& [value, nearest] : sizes) {
    elsewhere.erase(value);
    for (const std::int64_t size : nearest) {
      if (size == 0) continue;
      setting[over[0]] = size;
      program_.unseen.push_back(setting);
    }
  }
  // Behind the same answers other numbers may be met where another size is smaller or larger.
  std::set<SymbolId> others;
  for (const GuardPath::Step& step : counted.way) {
    const ProgramGuard& guard = program_.guards[step.guard];
    for (const Expr e : {guard.left, guard.right}) {
      if (e == nullptr) continue;
      for (const SymbolId s : pool().symbols_of(e)) {
        if (s != over[0] && is_size(s)) others.insert(s);
      }
    }
  }
  for (const auto& [value, size] : elsewhere) {
    for (const SymbolId other : others) {
      setting = example;
      setting[over[0]] = size;
      bool found = false;
      for (std::int64_t n = 1; n <= 1024 && !found; n += std::max<std::int64_t>(1, n / 2)) {
        setting[other] = n;
        found = leads_there();
      }
      if (!found) continue;
      program_.unseen.push_back(setting);
      break;
    }
  }
}

// Which of any number of numbers it is may matter anywhere: small sizes, those around powers, and
// pairs of them that share no step.
void ProgramBuilder::note_spread(const std::vector<SymbolId>& over, const Counted& counted) {
  if (counted.told) return;
  static constexpr std::int64_t kFar[] = {
      31,  32,  33,  36,  40,  45,  48,  50,  60,  63,  64,  65,  80,  96,  99,   100,  101, 120,
      127, 128, 129, 144, 200, 255, 256, 257, 300, 500, 512, 513, 720, 999, 1000, 1024, 1025};
  constexpr std::int64_t kNear = 26;
  const auto add = [&](std::vector<std::int64_t> setting) {
    if (std::find(program_.unseen.begin(), program_.unseen.end(), setting) == program_.unseen.end())
      program_.unseen.push_back(std::move(setting));
  };
  const std::vector<std::int64_t>& base = request_.symbols[counted.run];
  for (const SymbolId s : over) {
    std::vector<std::int64_t> setting = base;
    for (setting[s] = 1; setting[s] <= kNear; ++setting[s]) add(setting);
    for (const std::int64_t size : kFar) {
      setting[s] = size;
      add(setting);
    }
  }
  for (std::int64_t k = 1; over.size() > 1 && k <= kNear; ++k) {
    std::vector<std::int64_t> setting = base;
    for (std::size_t n = 0; n < over.size(); ++n) {
      setting[over[n]] = 1 + k * static_cast<std::int64_t>(7 + 4 * n) % (kNear + 3);
    }
    add(setting);
  }
}

// The way of every run through the guards. A guard that is asked again and again (a loop) counts
// once in a way.
void ProgramBuilder::add_guards() {
  std::vector<ProgramGuard>& found = program_.guards;
  std::map<std::tuple<Compare, Expr, Expr>, std::size_t> known;
  std::map<std::vector<std::pair<std::size_t, bool>>, bool> ways;
  std::map<Expr, Counted> counts;
  for (std::size_t r = 0; r < request_.runs.size(); ++r) {
    const Run& run = recorded(r);
    GuardPath path;
    path.setting = request_.symbols[r];
    std::vector<std::pair<std::size_t, bool>> way;
    std::vector<bool> seen(found.size(), false);
    for (const Guard& guard : run.guards) {
      if (way.size() >= kLongestWay) break;
      const Expr left = carried(r, guard.left);
      const Expr right = guard.right == kNoCarry ? nullptr : carried(r, guard.right);
      if (left == nullptr || left == right) continue;
      if (right == nullptr && guard.compare != Compare::kKey) continue;
      if (guard.compare == Compare::kCount) {
        const auto [counted, fresh] = counts.try_emplace(left);
        if (fresh) {
          counted->second.run = r;
          counted->second.way = path.steps;
          counted->second.module = vocabulary_.strings[guard.module];
          counted->second.source = vocabulary_.strings[guard.source];
        }
        counted->second.numbers.insert(right);
        counted->second.told = counted->second.told && guard.told;
        continue;
      }
      if (pool().symbols_of(left).empty() &&
          (right == nullptr || pool().symbols_of(right).empty())) {
        continue;
      }
      const auto [it, fresh] = known.try_emplace({guard.compare, left, right}, found.size());
      if (fresh) {
        found.push_back({guard.compare, guard.outcome, left, right,
                         vocabulary_.strings[guard.module], vocabulary_.strings[guard.source]});
      }
      const std::size_t g = it->second;
      if (seen.size() <= g) seen.resize(g + 1, false);
      if (seen[g]) continue;
      seen[g] = true;
      found[g].both = found[g].both || found[g].outcome != guard.outcome;
      path.steps.push_back({g, guard.outcome});
      way.emplace_back(g, guard.outcome);
    }
    if (ways.try_emplace(std::move(way), true).second) program_.paths.push_back(std::move(path));
  }
  for (const auto& [left, counted] : counts) note_unseen(left, counted);
  // A loop that always went round as often as now may be there as often as that. What it computed
  // in plain numbers, as often as values say, is known for the counts that were seen.
  for (const auto& [left, counted] : counts) {
    const std::set<Expr>& numbers = counted.numbers;
    if (request_.rolled != nullptr || pool().symbols_of(left).empty()) continue;
    // Messages name what values count, and are made whether anybody reads them or not.
    if (counted.told && is_of_values({Compare::kEqual, true, left, left})) continue;
    if (!std::all_of(numbers.begin(), numbers.end(), [](Expr n) { return is_const(n); })) continue;
    if (numbers.size() == 1) {
      found.push_back(
          {Compare::kEqual, true, left, *numbers.begin(), counted.module, counted.source});
    } else if (is_of_values({Compare::kEqual, true, left, *numbers.begin()})) {
      Expr seen = pool().constant(0);
      std::string words = pool().to_string(left) + " is one of";
      for (const Expr n : std::set<Expr, ByValue>(numbers.begin(), numbers.end())) {
        seen = pool().add(seen, pool().same(left, n));
        words += " " + pool().to_string(n);
      }
      // Before the others: what is refused is said in its words.
      auto& required = graph().requirements;
      if (seen->weight <= kHeaviest) required.insert(required.begin(), {seen, words});
    }
  }
  // What was asked of values, the file asks again: here, so that what they come from is kept.
  for (std::size_t g = 0; g < found.size(); ++g) {
    const ProgramGuard& guard = found[g];
    if (guard.rival || guard.both || guard.right == nullptr) continue;
    if (is_of_values(guard)) require_answer(g);
  }
}

}  // namespace fairlead
