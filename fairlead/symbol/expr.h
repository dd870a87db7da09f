// Integer expressions over named symbols, hash-consed: two equal expressions are one pointer.
//
// An expression is kept in a normal form: a sum of terms, each an integer coefficient times a
// sorted product of factors; a factor is a symbol or one of floordiv, mod, max, min over normal
// forms. So (a + b)*2 - 2*b is 2*a, and equality is pointer equality. Division by a constant pulls
// out what divides exactly and keeps its dividend's first coefficient positive: (h - 3)//2 + 1 and
// (h - 1)//2 are one expression, and ceildiv(a, k) is (a + k - 1)//k. ceildiv by another expression
// is -floordiv(-a, b). Both are recognised again when printed.
//
// A size may go through Python's floats on its way: int(0.3 * n). Real nodes say so, computed in
// double as Python does, and a rounding node makes an integer of one; quotients of integers that
// are rounded at once become floordiv and ceildiv.
//
//   ExprPool pool;
//   Expr batch = pool.symbol("batch"), seq = pool.symbol("sequence");
//   pool.to_string(pool.mul(batch, seq));                     // "batch*sequence"
//   pool.evaluate(pool.mul(batch, seq), {2, 3});              // 6
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fairlead {

using SymbolId = std::uint32_t;

enum class ExprKind : std::uint8_t {
  kConst,      // value
  kSymbol,     // value is the SymbolId
  kAdd,        // args: two or more terms, constant last
  kMul,        // args: factors; value is the coefficient (1 when there is none)
  kFloorDiv,   // args: dividend, divisor; rounds towards minus infinity
  kMod,        // args: dividend, divisor; the sign of the divisor, as in Python
  kMax,        // args: two or more, sorted
  kMin,        // args: two or more, sorted
  kLess,       // args: two, integers or real numbers; 1 where the first is less, else 0
  kSame,       // args: two; 1 where they are equal, else 0
  kWhere,      // args: three; the second where the first is not 0, else the third; both may be real
  kBitLength,  // args: an integer; of its magnitude, as in Python
  kPower2,     // args: an integer; 2 to its power, 0 where that is negative
  // Integers from a real number: towards zero, down, up, to the nearest and then even.
  kTrunc,
  kFloor,
  kCeil,
  kRound,
  // Real numbers, in double. A symbol of SymbolKind::kReadReal is one too.
  kReal,     // value holds the bits
  kToReal,   // args: an integer
  kRealAdd,  // args: two
  kRealSub,
  kRealMul,
  kRealDiv,
  kRealPow,
  kRealFloorDiv,  // as Python's floats: the floor of the exact quotient
  kRealMod,       // with the divisor's sign
  kSqrt,          // args: one
  kLog,           // args: one
  kLog2,          // args: one
  kExp,           // args: one
};

struct ExprNode {
  ExprKind kind;
  std::int64_t value = 0;
  std::vector<const ExprNode*> args;
  std::uint32_t id = 0;      // creation order within its pool
  std::uint32_t weight = 1;  // nodes of the whole expression, shared ones as often as they stand
  // Bounds of an integer's value, whatever its symbols are; the ends of 64 bits are none.
  std::int64_t least = INT64_MIN;
  std::int64_t most = INT64_MAX;
};

// Beyond this an expression is no size that anyone would write: it is not worked with.
inline constexpr std::uint32_t kHeaviest = 1000;

struct ExprTerm;  // expr_impl.h

// A handle into a pool; valid as long as the pool, never null inside a shape.
using Expr = const ExprNode*;

enum class SymbolKind : std::uint8_t {
  kSize,      // a dimension of a graph input
  kData,      // a size that an operator's data decides (nonzero, unique)
  kRead,      // an integer that the model read from a tensor
  kReadReal,  // a real number that it read; its value is held as the bits of the double
};

struct Symbol {
  std::string name;
  SymbolKind kind = SymbolKind::kSize;
};

class ExprPool {
 public:
  ExprPool() = default;
  ExprPool(const ExprPool&) = delete;
  ExprPool& operator=(const ExprPool&) = delete;

  // Every operation throws Error(kInvalidInput) where a coefficient leaves 64 bits, where a divisor
  // is the constant 0, and where a product grows beyond thousands of terms.
  [[nodiscard]] Expr constant(std::int64_t value);
  // The symbol of that name, made on first use; the kind is set by the first use. A name that is
  // not letters, digits, '_' and '.' is printed between backquotes, so it may not hold one.
  [[nodiscard]] Expr symbol(std::string_view name, SymbolKind kind = SymbolKind::kSize);

  [[nodiscard]] Expr add(Expr a, Expr b);
  [[nodiscard]] Expr sub(Expr a, Expr b);
  [[nodiscard]] Expr mul(Expr a, Expr b);
  [[nodiscard]] Expr neg(Expr a);
  [[nodiscard]] Expr floordiv(Expr a, Expr b);  // simplifies exact divisions: (4*a)//2 is 2*a
  [[nodiscard]] Expr ceildiv(Expr a, Expr b);
  [[nodiscard]] Expr mod(Expr a, Expr b);
  [[nodiscard]] Expr max(Expr a, Expr b);
  [[nodiscard]] Expr min(Expr a, Expr b);
  [[nodiscard]] Expr product(std::span<const Expr> factors);
  [[nodiscard]] Expr less(Expr a, Expr b);
  [[nodiscard]] Expr same(Expr a, Expr b);
  [[nodiscard]] Expr where(Expr flag, Expr yes, Expr no);
  [[nodiscard]] Expr bit_length(Expr a);
  [[nodiscard]] Expr power2(Expr a);

  [[nodiscard]] Expr real(double value);
  [[nodiscard]] Expr to_real(Expr a);  // `a` itself where it is real
  // kRealAdd to kRealMod of two, kSqrt to kExp of one (b is null).
  [[nodiscard]] Expr real_op(ExprKind kind, Expr a, Expr b = nullptr);
  [[nodiscard]] Expr rounded(ExprKind kind, Expr real);  // kTrunc to kRound
  [[nodiscard]] bool is_real(Expr e) const;
  // False only where no value of the symbols makes it negative; sizes are 0 or more.
  [[nodiscard]] bool may_be_negative(Expr e) const;
  // The expression of the same kind as `like` over other arguments.
  [[nodiscard]] Expr rebuilt(Expr like, std::span<const Expr> args);

  // Values by SymbolId; throws Error(kInvalidInput) where a symbol has no value or a divisor is 0.
  [[nodiscard]] std::int64_t evaluate(Expr e, std::span<const std::int64_t> values) const;
  [[nodiscard]] double evaluate_real(Expr e, std::span<const std::int64_t> values) const;
  [[nodiscard]] double number(Expr e,
                              std::span<const std::int64_t> values) const;  // of either kind
  // Every symbol replaced by what `map` (by SymbolId) says; a null entry keeps the symbol.
  [[nodiscard]] Expr substitute(Expr e, std::span<const Expr> map);
  // Every occurrence of `part` replaced.
  [[nodiscard]] Expr replaced(Expr e, Expr part, Expr by);
  [[nodiscard]] std::vector<SymbolId> symbols_of(Expr e) const;  // sorted, each once

  [[nodiscard]] std::string to_string(Expr e) const;
  // The inverse of to_string, which also reads a**2, FloorDiv(a, b), Mod(a, b), Max and Min;
  // unknown names become size symbols. Throws Error(kParse) with the column.
  [[nodiscard]] Expr parse(std::string_view text);

  [[nodiscard]] const std::vector<Symbol>& symbols() const { return symbols_; }
  [[nodiscard]] Symbol& symbol_info(SymbolId id) { return symbols_[id]; }

  // For all sizes; false where it is not known.
  [[nodiscard]] bool never_below_zero(Expr e);

 private:
  [[nodiscard]] Expr intern(ExprKind kind, std::int64_t value, std::vector<Expr> args);
  [[nodiscard]] Expr from_terms(std::vector<ExprTerm> terms);
  [[nodiscard]] Expr floordiv_constant(const std::vector<ExprTerm>& dividend, std::int64_t divisor);
  [[nodiscard]] Expr mod_constant(const std::vector<ExprTerm>& dividend, std::int64_t divisor);
  [[nodiscard]] Expr extremum(ExprKind kind, Expr a, Expr b);

  std::deque<ExprNode> nodes_;
  std::unordered_multimap<std::size_t, Expr> index_;
  std::vector<Symbol> symbols_;
  std::unordered_map<std::string, Expr> by_name_;
};

[[nodiscard]] inline bool is_const(Expr e) { return e->kind == ExprKind::kConst; }
[[nodiscard]] inline bool is_const(Expr e, std::int64_t value) {
  return e->kind == ExprKind::kConst && e->value == value;
}

}  // namespace fairlead
