// The sum-of-terms view of an expression and checked 64-bit arithmetic, shared by this folder's
// sources.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/symbol/expr.h"

namespace fairlead {

// coefficient * atoms[0] * atoms[1] * ...; atoms are sorted and never sums, products or constants.
// The constant of a sum is the term with no atoms.
struct ExprTerm {
  std::int64_t coefficient = 1;
  std::vector<Expr> atoms;
};

// An order that depends on structure and symbol ids alone, never on when a node was made.
[[nodiscard]] int compare_exprs(Expr a, Expr b);

// The terms of a normal form, highest degree first, constant last; none for 0.
[[nodiscard]] std::vector<ExprTerm> terms_of(Expr e);

[[noreturn]] inline void fail_overflow(const char* where) {
  throw Error(ErrorCode::kInvalidInput,
              std::string("[") + where + "] Expected integers of 64 bits, got an overflow.");
}

[[nodiscard]] inline std::int64_t checked_add(std::int64_t a, std::int64_t b, const char* where) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) fail_overflow(where);
  return result;
}

[[nodiscard]] inline std::int64_t checked_mul(std::int64_t a, std::int64_t b, const char* where) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) fail_overflow(where);
  return result;
}

// floor_divide(-7, 2) is -4; the divisor is not 0.
[[nodiscard]] inline std::int64_t floor_divide(std::int64_t a, std::int64_t b, const char* where) {
  if (b == -1) return checked_mul(a, -1, where);
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

// floor_modulo(-7, 4) is 1: the sign of the divisor, which is not 0.
[[nodiscard]] inline std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// What Python's floats compute; rounding throws where the number has no 64 bits.
[[nodiscard]] double compute_real(ExprKind kind, double a, double b);
[[nodiscard]] std::int64_t round_real(ExprKind kind, double value);

// -2**63 has no absolute value in 64 bits, so magnitudes are unsigned.
[[nodiscard]] inline std::uint64_t magnitude(std::int64_t a) {
  return a < 0 ? 0 - static_cast<std::uint64_t>(a) : static_cast<std::uint64_t>(a);
}

}  // namespace fairlead
