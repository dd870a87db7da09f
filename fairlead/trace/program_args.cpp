// Arguments: values, and integers and floats that are solved where they vary.
#include <algorithm>
#include <cmath>
#include <functional>

#include "fairlead/base/error.h"
#include "fairlead/trace/fresh.h"
#include "fairlead/trace/program_impl.h"

namespace fairlead {
namespace {

bool rounds(Expr e) {
  if (e->kind > ExprKind::kMul) return true;
  return std::any_of(e->args.begin(), e->args.end(), rounds);
}

}  // namespace

// batch*sequence: what views and flattenings make, and nothing else that several runs would allow.
bool is_product(Expr e) {
  const auto is_symbol = [](Expr part) { return part->kind == ExprKind::kSymbol; };
  return is_symbol(e) ||
         (e->kind == ExprKind::kMul && std::all_of(e->args.begin(), e->args.end(), is_symbol));
}

void ProgramBuilder::note_unsolved(std::string cause, std::string_view what,
                                   std::vector<std::string> values) {
  if (unsolved_.empty()) first_unsolved_ = std::move(cause);
  const bool at_operator = op_ < run_.ops.size();
  const auto text = [&](std::uint32_t id) { return at_operator ? vocabulary_.strings[id] : ""; };
  const OpRecord record = at_operator ? run_.ops[op_] : OpRecord{};
  ErrorDetail& detail = unsolved_.emplace_back();
  detail.kind = "unsolved number";
  detail.fields = {{"what", std::string(what)},
                   {"operator", at_operator ? vocabulary_.ops[record.op].name.str() : ""},
                   {"module", text(record.module)},
                   {"source", text(record.source)}};
  detail.values = std::move(values);
}

// In this order: what the number remembers, a size of the operator's own inputs, a size of any
// value made before, a search.
Expr ProgramBuilder::solve_int(const std::vector<std::int64_t>& observed, std::string_view what,
                               std::uint32_t at) {
  if (at != kNowhere) {
    if (const Expr known = remembered(at, observed); known != nullptr) return known;
  }
  if (std::all_of(observed.begin(), observed.end(),
                  [&](std::int64_t v) { return v == observed[0]; })) {
    // A size that happened not to vary (a value that was read, a bound) goes on being one.
    if (at == kNowhere &&
        std::find(constants_.begin(), constants_.end(), observed[0]) == constants_.end()) {
      for (const Expr hint : hints_) {
        if (explains(hint, observed)) return hint;
      }
      // 0 and 1 are what operators make of anything.
      const bool follows = !hints_.empty() && std::abs(observed[0]) > 1;
      if (follows) note_fitted(pool().constant(observed[0]), what);
    }
    return pool().constant(observed[0]);
  }
  for (const Expr hint : hints_) {
    auto [it, fresh] = values_.try_emplace(hint);
    if (fresh) it->second = solver_.values_of(hint);
    if (it->second == observed) return hint;
  }
  if (const auto it = sizes_.find(observed); it != sizes_.end()) return it->second;
  // x[-n:]
  std::vector<std::int64_t> negative(observed.size());
  std::transform(observed.begin(), observed.end(), negative.begin(), std::negate<>());
  if (const auto it = sizes_.find(negative); it != sizes_.end()) return pool().neg(it->second);
  const Solution solution = solver_.solve(observed, hints_);
  if (!solution.found()) {
    if (const Expr found = solve_apart(observed); found != nullptr) return found;
    constexpr std::size_t kMostShown = 24;
    std::string seen;
    for (std::size_t k = 0; k < std::min(observed.size(), kMostShown); ++k) {
      seen += (seen.empty() ? "" : ", ") + std::to_string(observed[k]);
    }
    if (observed.size() > kMostShown) {
      seen += " and " + std::to_string(observed.size() - kMostShown) + " more";
    }
    std::vector<std::string> values;
    for (const std::int64_t v : observed) values.push_back(std::to_string(v));
    note_unsolved("Expected every integer to follow from the input sizes, got " +
                      std::string(what) + " = " + seen + " over the runs (" + where() + ")",
                  what, std::move(values));
    // What follows from it is explained by it: only the roots are named.
    return new_symbol("unsolved", SymbolKind::kData, observed);
  }
  if (!is_product(solution.expr)) note_fitted(solution.expr, what);
  if (solution.ambiguous()) {
    ++program_.ambiguous;
    if (!request_.nested) add_rival(solution.expr, solution.other);
  }
  if (!request_.nested && rounds(solution.expr)) ++program_.fragile;
  return solution.expr;
}

// Of a loop whose first step is none of the others: [(0, n)] + [(k, min(n, k + 8)) for ..].
Expr ProgramBuilder::solve_apart(const std::vector<std::int64_t>& observed) {
  if (request_.step == nullptr) return nullptr;
  const auto step = static_cast<std::size_t>(request_.step->value);
  const bool known = apart_[0] != nullptr && apart_symbols_ == pool().symbols().size();
  std::vector<std::int64_t> seen[2];
  std::vector<std::vector<std::int64_t>> settings[2];
  for (std::size_t run = 0; run < observed.size(); ++run) {
    const std::size_t later = symbol_values_[run].at(step) != 0 ? 1 : 0;
    seen[later].push_back(observed[run]);
    if (!known) settings[later].push_back(symbol_values_[run]);
  }
  if (seen[0].empty() || seen[1].empty()) return nullptr;
  Expr found[2] = {nullptr, nullptr};
  for (const std::size_t later : {0, 1}) {
    if (!known) apart_[later] = std::make_unique<Solver>(pool(), std::move(settings[later]));
  }
  apart_symbols_ = pool().symbols().size();
  for (const std::size_t later : {0, 1}) {
    const Solution solution = apart_[later]->solve(seen[later], hints_);
    if (!solution.found() || solution.ambiguous()) return nullptr;
    found[later] = solution.expr;
  }
  return pool().where(pool().same(request_.step, pool().constant(0)), found[0], found[1]);
}

// (n + 1) % 50 and n % 50 + 1 are the same but for one size in fifty: where the rest of a division is
// at its ends, an integer that only fits the runs is looked at once more.
void ProgramBuilder::note_edges(Expr e) {
  constexpr std::size_t kMostEdges = 24;
  constexpr std::int64_t kLargestDivisor = 1 << 11;
  for (const Expr arg : e->args) note_edges(arg);
  if ((e->kind != ExprKind::kMod && e->kind != ExprKind::kFloorDiv) || !is_const(e->args[1])) {
    return;
  }
  const std::int64_t divisor = e->args[1]->value;
  const std::vector<SymbolId> over = pool().symbols_of(e->args[0]);
  if (divisor < 2 || divisor > kLargestDivisor || over.size() != 1 ||
      pool().symbols()[over[0]].kind != SymbolKind::kSize) {
    return;
  }
  std::vector<std::int64_t> setting = request_.symbols[0];
  const std::int64_t base = setting.at(over[0]);
  const Expr rest = pool().mod(e->args[0], e->args[1]);
  bool first = false, last = false;
  for (std::int64_t size = base; size <= base + 2 * divisor && !(first && last); ++size) {
    setting[over[0]] = size;
    std::int64_t value = 0;
    try {
      value = pool().evaluate(rest, setting);
    } catch (const Error&) {
      return;
    }
    bool& known = value == 0 ? first : last;
    if ((value != 0 && value != divisor - 1) || known) continue;
    known = true;
    if (program_.unseen.size() < kMostEdges) program_.unseen.push_back(setting);
  }
}

void ProgramBuilder::note_fitted(Expr e, std::string_view what) {
  constexpr std::size_t kMostNoted = 100;
  if (request_.nested || op_ >= run_.ops.size() || program_.fitted.size() >= kMostNoted) return;
  note_edges(e);
  const OpRecord& record = run_.ops[op_];
  program_.fitted.push_back({e, std::string(what), vocabulary_.ops[record.op].name.str(),
                             vocabulary_.strings[record.module],
                             vocabulary_.strings[record.source]});
}

Arg ProgramBuilder::read_item(std::uint32_t& at, const std::string& name) {
  const Item item = run_.items[at];
  Arg arg;
  switch (item.kind) {
    case ItemKind::kNone:
      break;
    case ItemKind::kTensor:
      arg.kind = ArgKind::kValue;
      arg.value = read_value(static_cast<RunValue>(item.i));
      break;
    case ItemKind::kInt: {
      const auto reals =
          over_runs(at, false, [](const Item& i) { return i.kind == ItemKind::kFloat; });
      if (std::find(reals.begin(), reals.end(), true) != reals.end()) {
        read_float(at, name, arg);
        break;
      }
      arg.kind = ArgKind::kInt;
      arg.expr = solve_int(over_runs(at, false, [](const Item& i) { return i.i; }), name, at);
      break;
    }
    case ItemKind::kFloat:
      read_float(at, name, arg);
      break;
    case ItemKind::kBool: {
      const auto seen = over_runs(at, false, [](const Item& i) { return i.i; });
      if (std::count(seen.begin(), seen.end(), seen[0]) !=
          static_cast<std::ptrdiff_t>(seen.size())) {
        std::vector<std::string> values;
        for (const std::int64_t v : seen) values.emplace_back(v != 0 ? "true" : "false");
        note_unsolved(
            "Expected the flag " + name + " to be the same in every run (" + where() + ")", name,
            std::move(values));
      }
      arg.kind = ArgKind::kBool;
      arg.number = static_cast<double>(item.i);
      break;
    }
    case ItemKind::kString:
      arg.kind = ArgKind::kString;
      arg.text = vocabulary_.strings[item.i];
      break;
    case ItemKind::kDtype:
      arg.kind = ArgKind::kDtype;
      arg.dtype = static_cast<Dtype>(item.i);
      break;
    case ItemKind::kList: {
      arg.kind = ArgKind::kList;
      ++at;
      for (std::int64_t k = 0; k < item.i; ++k) arg.items.push_back(read_item(at, name));
      return arg;
    }
  }
  ++at;
  return arg;
}

void ProgramBuilder::read_float(std::uint32_t at, const std::string& name, Arg& arg) {
  const auto seen = over_runs(at, false, number_of);
  arg.kind = ArgKind::kFloat;
  arg.number = seen[0];
  if (const Expr known = remembered_real(at, seen); known != nullptr) {
    if (known->kind == ExprKind::kReal || is_const(known)) return;
    arg.number = 1;
    arg.expr = pool().to_real(known);
    return;
  }
  const bool constant = std::all_of(seen.begin(), seen.end(), [&](double v) {
    return v == seen[0] || (v != v && seen[0] != seen[0]);
  });
  if (constant) return;
  // One that remembers, and is computed in another way in some run, is not what a search would
  // find.
  bool remembers = false;
  if (!request_.nested && request_.rolled == nullptr) {
    const std::vector<CarryId> ids = number_ids(at - run_.ops[op_].items, -1);
    for (std::size_t r = 0; r < ids.size(); ++r) {
      const CarryKind kind = request_.runs[r]->carried[ids[r]].kind;
      remembers = remembers || (kind != CarryKind::kFloat && kind != CarryKind::kInt);
    }
  }
  std::optional<FloatSolution> solution;
  if (!remembers) solution = solver_.solve_float(seen);
  if (!remembers && !solution) solution = solve_fraction(seen);
  if (!solution) {
    std::string text;
    for (const double v : seen) text += (text.empty() ? "" : ", ") + std::to_string(v);
    std::vector<std::string> values;
    for (const double v : seen) values.push_back(std::to_string(v));
    note_unsolved("Expected the number " + name + " to follow from the input sizes, got " + text +
                      " over the runs (" + where() + ")",
                  name, std::move(values));
    return;
  }
  note_fitted(solution->base, name);
  arg.number = solution->coefficient;
  arg.expr = solution->base;
  arg.power = solution->power;
}

// h - 0.5 and its kin: an integer expression divided by a small power of two.
std::optional<FloatSolution> ProgramBuilder::solve_fraction(const std::vector<double>& seen) {
  for (const double scale : {1.0, 2.0, 4.0, 8.0}) {
    std::vector<std::int64_t> whole;
    for (const double v : seen) {
      const double scaled = v * scale;
      if (scaled != std::floor(scaled) || std::abs(scaled) > 1e12) break;
      whole.push_back(static_cast<std::int64_t>(scaled));
    }
    if (whole.size() != seen.size()) continue;
    const Solution solution = solver_.solve(whole, hints_);
    if (solution.found()) return FloatSolution{1 / scale, solution.expr, 1};
  }
  return std::nullopt;
}

ValueId ProgramBuilder::read_value(RunValue v) {
  if (!functional_.defined(v)) {
    const ValueFact& fact = run_.values[v];
    FAIRLEAD_CHECK(fact.origin == Origin::kConstant, "value is read before it is made, " + where());
    add_constant(v);
  }
  const ValueId id = functional_.read(v);
  for (const Expr e : graph().values[id].shape) add_hint(e);
  return id;
}

void ProgramBuilder::add_hint(Expr e) {
  if (is_const(e)) constants_.push_back(e->value);
  if (!is_const(e) && std::find(hints_.begin(), hints_.end(), e) == hints_.end())
    hints_.push_back(e);
}

void ProgramBuilder::add_constant(RunValue v) {
  CallNumbers numbers;
  numbers.integer = [&](int k, const std::vector<std::int64_t>& seen) {
    return called([&](std::size_t r, const Carry& n) { return !n.real && n.i == seen[r]; },
                  [&](Expr e) { return explains(e, seen); }, k);
  };
  numbers.real = [&](int k, const std::vector<double>& seen, bool single) {
    return called_real(seen, single, k);
  };
  const bool known = !request_.nested && request_.rolled == nullptr && op_ < run_.ops.size() &&
                     vocabulary_.ops[run_.ops[op_].op].name == Op::lift_fresh;
  const std::size_t before = graph().nodes.size();
  functional_.define_root(
      v, constant_value(graph(), request_.runs, v, solver_, known ? &numbers : nullptr, where()));
  if (graph().nodes.size() > before) note_number(graph().nodes.back());
}

}  // namespace fairlead
