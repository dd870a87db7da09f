// Finds the expression of the symbols that explains a vector of observed integers, one per run.
//
// Rules, in order; the first that explains every run wins (complexity in this order too):
//  1. all equal                       -> constant
//  2. one of the caller's hints (expressions of the operator's own input shapes) has these values
//  3. symbol; product of symbols (each at most squared, at most 4 factors); constant times such a
//     product, also the exact division of a product by a constant
//  4. product + constant; constant*product + constant; sums and differences of two products, of
//  three,
//     with constant coefficients and a constant
//  5. floordiv and ceildiv of one of the forms 3-4 by a constant, plus a constant;
//     rounding up to a multiple (ceildiv(a, k)*k), remainders (mod)
//  6. max and min of a form and a constant, or of two forms
// When two different simple answers of the same rule fit, the answer is `ambiguous` and names both:
// the caller may make one more run at sizes that separate them. Constants equal at every run are
// trusted (rule 1) even where a symbol never changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
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

  // A symbol met later (a data-dependent size, a value read), with its value in every run.
  void add_symbol(SymbolId id, std::span<const std::int64_t> values);

  // Amortised constant time for vectors seen before with no hint that fits.
  [[nodiscard]] Solution solve(std::span<const std::int64_t> observed,
                               std::span<const Expr> hints = {});
  [[nodiscard]] std::optional<FloatSolution> solve_float(std::span<const double> observed);

  // The value of an expression in every run.
  [[nodiscard]] std::vector<std::int64_t> values_of(Expr e) const;
  [[nodiscard]] std::size_t run_count() const { return values_.size(); }

 private:
  struct Impl;
  ExprPool& pool_;
  std::vector<std::vector<std::int64_t>> values_;
  struct VectorHash {
    std::size_t operator()(const std::vector<std::int64_t>& v) const;
  };
  std::unordered_map<std::vector<std::int64_t>, Solution, VectorHash> memo_;
  struct Term {
    Expr expr;
    std::vector<std::int64_t> values;
  };
  std::vector<Term> products_;  // rule 3's products, simplest first
  bool products_stale_ = true;
};

}  // namespace fairlead
