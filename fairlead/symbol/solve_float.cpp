// Solves floats that vary with the sizes: a constant times a power or a root of a form.
//
// Rules, in order:
//  1. all equal (bit by bit)                          -> constant
//  2. P^power with no coefficient, P a product, an atom plus or minus 1 or 2, or a sum of two atoms
//  3. coefficient * P^power, to the last digits of a double
//  4. integers to some power (1/v, v*v, 1/(v*v)) that the integer solver explains
//  5. rule 3 to the last digits of a float
// Python's sqrt, ** and / round differently in the last bit, so equality is within a tolerance.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "fairlead/base/error.h"
#include "fairlead/symbol/solve_impl.h"

namespace fairlead {
namespace {

constexpr double kDoubleTolerance = 1e-14;
constexpr double kFloatTolerance = 3e-7;
constexpr std::array<double, 10> kPowers = {1, -1, -0.5, 0.5, 2, -2, -0.25, 0.25, 1.5, -1.5};

struct Base {
  Expr expr;
  std::vector<double> values;
};

[[nodiscard]] bool is_close(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

// The coefficient that all runs agree on; 0 where they do not.
[[nodiscard]] double coefficient_of(std::span<const double> v, const Base& base, double power,
                                    double tolerance) {
  double first = 0;
  for (std::size_t r = 0; r < v.size(); ++r) {
    const double coefficient = v[r] / std::pow(base.values[r], power);
    if (!std::isfinite(coefficient) || coefficient == 0) return 0;
    if (r == 0) first = coefficient;
    if (!is_close(coefficient, first, tolerance)) return 0;
  }
  // 1/sqrt(64) computed through a power is 0.125 again, and 1/3 stays what it was.
  if (is_close(first, std::round(first), tolerance)) return std::round(first);
  const double inverse = std::round(1 / first);
  return is_close(first, 1 / inverse, tolerance) ? 1 / inverse : first;
}

[[nodiscard]] std::vector<Base> bases_of(ExprPool& pool, const Basis& basis) {
  std::vector<Base> bases;
  const auto add = [&](Expr e, auto&& value) {
    Base base{e, {}};
    for (std::size_t r = 0; r < basis.runs(); ++r) {
      base.values.push_back(static_cast<double>(value(r)));
      if (base.values.back() <= 0) return;
    }
    bases.push_back(std::move(base));
  };
  const std::size_t atoms = basis.atom_count();
  for (std::size_t i = 0; i < basis.count_up_to(3); ++i) {
    add(basis.expr(pool, i), [&](std::size_t r) { return basis.values(i)[r]; });
  }
  for (std::size_t i = 0; i < atoms; ++i) {
    for (const std::int64_t c : {-1, 1, -2, 2}) {
      add(pool.add(basis.expr(pool, i), pool.constant(c)),
          [&](std::size_t r) { return basis.values(i)[r] + c; });
    }
    for (std::size_t j = i + 1; j < atoms; ++j) {
      add(pool.add(basis.expr(pool, i), basis.expr(pool, j)),
          [&](std::size_t r) { return basis.values(i)[r] + basis.values(j)[r]; });
    }
  }
  return bases;
}

}  // namespace

std::optional<FloatSolution> Solver::solve_float(std::span<const double> observed) {
  if (observed.size() != run_count() || observed.empty()) {
    throw Error(ErrorCode::kInvalidInput, "[solve_float] Expected " + std::to_string(run_count()) +
                                              " values, one per run, got " +
                                              std::to_string(observed.size()) + ".");
  }
  const auto same_bits = [&](double v) {
    return std::bit_cast<std::uint64_t>(v) == std::bit_cast<std::uint64_t>(observed[0]);
  };
  if (std::all_of(observed.begin(), observed.end(), same_bits)) {
    return FloatSolution{observed[0], nullptr, 1};
  }
  if (!std::all_of(observed.begin(), observed.end(), [](double v) { return std::isfinite(v); })) {
    return std::nullopt;
  }

  const std::vector<Base> bases = bases_of(impl_->pool, impl_->symbols());
  const auto search = [&](double tolerance, bool unit) -> std::optional<FloatSolution> {
    for (const Base& base : bases) {
      for (const double power : kPowers) {
        const double c = coefficient_of(observed, base, power, tolerance);
        if (c != 0 && (!unit || c == 1)) return FloatSolution{c, base.expr, power};
      }
    }
    return std::nullopt;
  };
  if (auto found = search(kDoubleTolerance, true)) return found;
  if (auto found = search(kDoubleTolerance, false)) return found;

  for (const double power : {1.0, -1.0, 0.5, -0.5}) {
    Ints integers;
    for (const double v : observed) {
      if (power != 1.0 && v <= 0) break;
      const double value = std::pow(v, 1 / power);
      if (std::abs(value) > static_cast<double>(kLargestValue)) break;
      const double rounded = std::round(value);
      if (rounded != value && !is_close(rounded, value, 4 * kDoubleTolerance)) break;
      integers.push_back(static_cast<std::int64_t>(rounded));
    }
    if (integers.size() != observed.size() || all_equal(integers)) continue;
    if (const Solution found = solve(integers); found.found() && !found.ambiguous()) {
      return FloatSolution{1, found.expr, power};
    }
  }

  // Two runs fit a coefficient to too much.
  std::vector<double> distinct(observed.begin(), observed.end());
  std::sort(distinct.begin(), distinct.end());
  const auto count = std::unique(distinct.begin(), distinct.end()) - distinct.begin();
  return count >= 3 ? search(kFloatTolerance, false) : std::nullopt;
}

}  // namespace fairlead
