// Orders the solver's rules, judges what they offer, and remembers every answer.
#include "fairlead/symbol/solve.h"

#include <algorithm>

#include "fairlead/base/error.h"
#include "fairlead/symbol/expr_impl.h"
#include "fairlead/symbol/solve_impl.h"

namespace fairlead {
namespace {

constexpr int kMargin = 200;       // a form counts where the runs say two bits more than it does
constexpr int kWeakMargin = -300;  // a single term that falls short by three is a last resort
constexpr int kTie = 100;          // within one bit, two forms are equally simple
constexpr std::size_t kMaxHints = 6;
constexpr std::size_t kMaxHintDegree = 4;
constexpr std::size_t kMaxDegree = 4;

}  // namespace

Search::Search(ExprPool& pool_in, const Basis& basis_in, IntSpan observed_in,
               const std::vector<Ints>& runs)
    : pool(pool_in), basis(basis_in), observed(observed_in), runs_(runs) {
  std::uint64_t largest = 0;
  for (std::int64_t value : observed) largest = std::max(largest, magnitude(value));
  bits_per_run_ = bits_of(static_cast<double>(largest) + 1);
}

void Search::offer(Expr e, const Form& form) {
  const int margin = static_cast<int>(form.rows) * bits_per_run_ - form.bits;
  const bool enough_runs = form.constants == 0 || form.rows >= form.constants + 2;
  if (margin >= kMargin && enough_runs) {
    accepted_.push_back({e, form.bits});
  } else if (form.single && margin >= kWeakMargin) {
    weak_.push_back({e, form.bits});
  }
}

Solution Search::choose() { return choose_from(accepted_); }
Solution Search::choose_any() {
  std::vector<Candidate> all = accepted_;
  all.insert(all.end(), weak_.begin(), weak_.end());
  return choose_from(all);
}

Solution Search::choose_from(std::vector<Candidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bits < b.bits; });
  Solution solution;
  int bits = 0;
  for (const Candidate& candidate : candidates) {
    if (solution.found() && candidate.bits > bits + kTie) break;
    if (!reproduces(candidate.expr)) continue;
    if (!solution.found()) {
      solution.expr = candidate.expr;
      bits = candidate.bits;
    } else if (!same_everywhere(solution.expr, candidate.expr)) {
      solution.other = candidate.expr;
      break;
    }
  }
  return solution;
}

std::size_t Search::rows(std::initializer_list<std::size_t> products) const {
  std::size_t count = 0;
  for (std::size_t r = 0; r < basis.runs(); ++r) {
    bool is_new = true;
    for (std::size_t before = 0; before < r && is_new; ++before) {
      is_new = std::any_of(products.begin(), products.end(), [&](std::size_t p) {
        return basis.values(p)[r] != basis.values(p)[before];
      });
    }
    count += is_new ? 1 : 0;
  }
  return count;
}

bool Search::reproduces(Expr e) const {
  try {
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      if (pool.evaluate(e, runs_[r]) != observed[r]) return false;
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

// Two spellings of one function, such as h - h//2 and ceildiv(h, 2), are no rivals.
bool Search::same_everywhere(Expr a, Expr b) const {
  if (a == b) return true;
  Ints point(pool.symbols().size());
  std::uint64_t state = 0x2545F4914F6CDD1DU;
  try {
    for (int trial = 0; trial < 24; ++trial) {
      const std::uint64_t range = trial < 12 ? 12 : 5000;
      for (std::int64_t& value : point) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        value = static_cast<std::int64_t>(state % range) + 1;
      }
      if (pool.evaluate(a, point) != pool.evaluate(b, point)) return false;
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

Solver::Impl::Impl(ExprPool& pool_in, std::vector<Ints> values)
    : pool(pool_in), runs(std::move(values)) {
  const std::size_t count = runs.empty() ? 0 : runs[0].size();
  for (const Ints& run : runs) {
    if (run.size() != count) {
      throw Error(ErrorCode::kInvalidInput, "[Solver] Expected " + std::to_string(count) +
                                                " symbols in every run, got " +
                                                std::to_string(run.size()) + ".");
    }
  }
  known.assign(count, true);
}

void Solver::Impl::forget() {
  stale = true;
  simple_memo.clear();
  full_memo.clear();
  hinted_memo.clear();
}

const Basis& Solver::Impl::symbols() {
  if (stale) {
    std::vector<Expr> atoms;
    std::vector<Ints> values;
    for (std::size_t id = 0; id < known.size() && id < pool.symbols().size(); ++id) {
      if (!known[id]) continue;
      atoms.push_back(pool.symbol(pool.symbols()[id].name));
      Ints& row = values.emplace_back();
      for (const Ints& run : runs) row.push_back(run[id]);
    }
    basis.build(atoms, values, runs.size(), kMaxDegree);
    stale = false;
  }
  return basis;
}

const Ints* Solver::Impl::cached_values(Expr e) {
  if (const auto found = expr_values.find(e); found != expr_values.end()) return &found->second;
  for (const SymbolId id : pool.symbols_of(e)) {
    if (id >= known.size() || !known[id]) return nullptr;
  }
  Ints values;
  try {
    for (const Ints& run : runs) values.push_back(pool.evaluate(e, run));
  } catch (const Error&) {
    return nullptr;
  }
  return &expr_values.emplace(e, std::move(values)).first->second;
}

Solution Solver::Impl::solve(IntSpan observed, std::span<const Expr> hints) {
  if (all_equal(observed)) return {pool.constant(observed[0]), nullptr};

  Solution exact;
  Ints key(observed.begin(), observed.end());
  std::vector<Expr> varying;
  for (Expr hint : hints) {
    if (hint == nullptr || is_const(hint)) continue;
    const Ints* values = cached_values(hint);
    if (values == nullptr || all_equal(*values)) continue;
    if (std::equal(values->begin(), values->end(), observed.begin())) {
      if (exact.found() && exact.expr != hint && !exact.ambiguous()) {
        exact.other = hint;
      } else if (!exact.found()) {
        exact.expr = hint;
      }
    }
    if (varying.size() < kMaxHints &&
        std::find(varying.begin(), varying.end(), hint) == varying.end()) {
      varying.push_back(hint);
      key.push_back(hint->id);
    }
  }
  if (exact.found()) return exact;

  const auto [entry, is_new] = hinted_memo.try_emplace(std::move(key));
  if (is_new) {
    const Ints vector(observed.begin(), observed.end());
    entry->second = solve_uncached(vector, varying);
  }
  return entry->second;
}

Solution Solver::Impl::solve_uncached(const Ints& observed, const std::vector<Expr>& hints) {
  const auto too_large = [](std::int64_t v) { return v > kLargestValue || v < -kLargestValue; };
  if (std::any_of(observed.begin(), observed.end(), too_large)) {
    for (std::size_t id = 0; id < known.size() && id < pool.symbols().size(); ++id) {
      Expr symbol = pool.symbol(pool.symbols()[id].name);
      const Ints* values = cached_values(symbol);
      if (values != nullptr && *values == observed) return {symbol, nullptr};
    }
    return {};
  }

  if (hints.empty()) {
    const Solution simple = solve_by_symbols(observed, true);
    return simple.found() ? simple : solve_by_symbols(observed, false);
  }
  std::vector<Ints> values;
  for (Expr hint : hints) values.push_back(*cached_values(hint));
  Basis own;
  own.build(hints, values, runs.size(), kMaxHintDegree);
  Search search(pool, own, observed, runs);

  try_products(search);
  if (const Solution found = search.choose(); found.found()) return found;
  try_scaled_products(search);
  const Solution scaled = search.choose();
  const Solution simple = solve_by_symbols(observed, true);
  // A product of symbols with no constant says more than a constant fitted to a hint.
  if (scaled.found() && !simple.found()) return scaled;
  if (simple.found()) {
    const bool has_constant = simple.expr->kind != ExprKind::kSymbol &&
                              !(simple.expr->kind == ExprKind::kMul && simple.expr->value == 1);
    return scaled.found() && has_constant ? scaled : simple;
  }
  try_affine(search);
  try_sums(search);
  if (const Solution found = search.choose(); found.found()) return found;
  try_quotients(search);
  try_extrema(search);
  if (const Solution found = search.choose(); found.found()) return found;
  const Solution general = solve_by_symbols(observed, false);
  return general.found() ? general : search.choose_any();
}

Solution Solver::Impl::solve_by_symbols(const Ints& observed, bool simple) {
  auto& memo = simple ? simple_memo : full_memo;
  if (const auto found = memo.find(observed); found != memo.end()) return found->second;
  Search search(pool, symbols(), observed, runs);
  Solution solution;
  if (simple) {
    try_products(search);
    solution = search.choose();
    if (!solution.found()) {
      try_scaled_products(search);
      solution = search.choose();
    }
  } else {
    try_affine(search);
    try_sums(search);
    solution = search.choose();
    if (!solution.found()) {
      // All of these have more constants than three runs decide, so the shortest of all is taken.
      try_scaled_products(search);
      try_quotients(search);
      try_quotient_products(search);
      try_sums_of_three(search);
      try_extrema(search);
      solution = search.choose_any();
    }
  }
  memo.emplace(observed, solution);
  return solution;
}

Solver::Solver(ExprPool& pool, std::vector<std::vector<std::int64_t>> values)
    : impl_(std::make_unique<Impl>(pool, std::move(values))) {}
Solver::~Solver() = default;

void Solver::add_symbol(SymbolId id, std::span<const std::int64_t> values) {
  Impl& impl = *impl_;
  if (values.size() != impl.runs.size()) {
    throw Error(ErrorCode::kInvalidInput,
                "[add_symbol] Expected " + std::to_string(impl.runs.size()) +
                    " values, one per run, got " + std::to_string(values.size()) + ".");
  }
  if (id < impl.known.size() && impl.known[id]) impl.expr_values.clear();
  if (id >= impl.known.size()) impl.known.resize(id + 1, false);
  impl.known[id] = true;
  for (std::size_t r = 0; r < values.size(); ++r) {
    impl.runs[r].resize(impl.known.size(), 0);
    impl.runs[r][id] = values[r];
  }
  impl.forget();
}

Solution Solver::solve(std::span<const std::int64_t> observed, std::span<const Expr> hints) {
  if (observed.size() != run_count() || observed.empty()) {
    throw Error(ErrorCode::kInvalidInput, "[solve] Expected " + std::to_string(run_count()) +
                                              " values, one per run, got " +
                                              std::to_string(observed.size()) + ".");
  }
  return impl_->solve(observed, hints);
}

std::vector<std::int64_t> Solver::values_of(Expr e) const {
  if (const Ints* values = impl_->cached_values(e)) return *values;
  for (const SymbolId id : impl_->pool.symbols_of(e)) {
    if (id < impl_->known.size() && impl_->known[id]) continue;
    throw Error(ErrorCode::kInvalidInput, "[values_of] Expected values for symbol '" +
                                              impl_->pool.symbols()[id].name + "', got none.");
  }
  Ints values;
  for (const Ints& run : impl_->runs) values.push_back(impl_->pool.evaluate(e, run));
  return values;
}

std::vector<double> Solver::real_values_of(Expr e) const {
  std::vector<double> values;
  const bool real = impl_->pool.is_real(e);
  for (const Ints& run : impl_->runs) {
    values.push_back(real ? impl_->pool.evaluate_real(e, run)
                          : static_cast<double>(impl_->pool.evaluate(e, run)));
  }
  return values;
}

std::size_t Solver::run_count() const { return impl_->runs.size(); }

}  // namespace fairlead
