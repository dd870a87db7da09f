// Finds the expression of the symbols that explains a vector of observed integers, one per run.
//
// Rules, in order; the first that explains every run wins, and of what one rule finds the shortest:
//  1. all equal                       -> constant
//  2. one of the caller's hints (expressions of the operator's own input shapes) has these values
//  3. symbol; product of symbols (each at most squared, at most 4 factors); constant times such a
//     product, also the exact division of a product by a constant
//  4. product + constant; constant*product + constant; sums and differences of two products, of
//     three, with constant coefficients and a constant
//  5. floordiv and ceildiv of one of the forms 3-4 by a constant, plus a constant;
//     rounding up to a multiple (ceildiv(a, k)*k), remainders (mod), products of such quotients
//  6. max and min of a form and a constant, or of two forms
// Rules 5 and 6, and sums of three, are compared with each other.
// Rules 3 to 6 are tried on the hints as if they were the symbols before they are tried on the
// symbols, except that rule 3 on the symbols comes before rule 4 on the hints.
//
// Few runs fit many forms. So every form has a length in bits (its symbols and its constants), and
// it counts only where the runs that differ say more than that; a form with f constants that are
// not tiny needs f + 2 such runs. A single term that falls short by little is given when nothing
// else fits. When two different answers of the same rule and nearly the same length fit, the answer
// is `ambiguous` and names both: the caller may make one more run at sizes that separate them.
// Constants equal at every run are trusted (rule 1) even where a symbol never changed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fairlead/symbol/expr.h"

namespace fairlead {

struct Solution {
  Expr expr = nullptr;   // null: nothing fits
  Expr other = nullptr;  // another answer of the same complexity, where there is one
  [[nodiscard]] bool found() const { return expr != nullptr; }
  [[nodiscard]] bool ambiguous() const { return other != nullptr; }
};

// coefficient * base^power; base is null for a plain constant.
struct FloatSolution {
  double coefficient = 0;
  Expr base = nullptr;
  double power = 1;
};

class Solver {
 public:
  // `values[r]` are the symbols' values in run r, by SymbolId, for the symbols known so far.
  Solver(ExprPool& pool, std::vector<std::vector<std::int64_t>> values);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // A symbol met later (a data-dependent size, a value read), with its value in every run.
  void add_symbol(SymbolId id, std::span<const std::int64_t> values);

  // Amortised constant time for vectors seen before; with the same hints where none of them fits.
  // Throws Error(kInvalidInput) where `observed` does not have one value per run.
  [[nodiscard]] Solution solve(std::span<const std::int64_t> observed,
                               std::span<const Expr> hints = {});
  [[nodiscard]] std::optional<FloatSolution> solve_float(std::span<const double> observed);

  // The value of an expression in every run; throws as ExprPool::evaluate does.
  [[nodiscard]] std::vector<std::int64_t> values_of(Expr e) const;
  [[nodiscard]] std::vector<double> real_values_of(Expr e) const;  // also of an integer
  [[nodiscard]] std::size_t run_count() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead
