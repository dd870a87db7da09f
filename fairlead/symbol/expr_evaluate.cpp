// Gives expressions values: evaluation, substitution, and the symbols an expression depends on.
#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "fairlead/base/error.h"
#include "fairlead/symbol/expr.h"
#include "fairlead/symbol/expr_impl.h"

namespace fairlead {
namespace {

// Beyond this weight shared parts are looked at once.
constexpr std::uint32_t kLight = 64;

void collect_symbols(Expr e, std::vector<SymbolId>& found, std::unordered_set<Expr>& seen) {
  if (e->kind == ExprKind::kSymbol) found.push_back(static_cast<SymbolId>(e->value));
  if (e->weight > kLight && !seen.insert(e).second) return;
  for (Expr arg : e->args) collect_symbols(arg, found, seen);
}

[[noreturn]] void fail_divisor(const ExprPool& pool, Expr e) {
  throw Error(ErrorCode::kInvalidInput, "[evaluate] Expected a divisor other than 0, got " +
                                            pool.to_string(e->args[1]) + " = 0 in " +
                                            pool.to_string(e) + ".");
}

}  // namespace

std::int64_t ExprPool::evaluate(Expr e, std::span<const std::int64_t> values) const {
  switch (e->kind) {
    case ExprKind::kConst:
      return e->value;
    case ExprKind::kSymbol: {
      const auto id = static_cast<std::size_t>(e->value);
      if (id < values.size()) return values[id];
      throw Error(ErrorCode::kInvalidInput, "[evaluate] Expected a value for symbol '" +
                                                symbols_[id].name + "', got values for " +
                                                std::to_string(values.size()) + " symbols only.");
    }
    case ExprKind::kAdd: {
      std::int64_t sum = 0;
      for (Expr arg : e->args) sum = checked_add(sum, evaluate(arg, values), "evaluate");
      return sum;
    }
    case ExprKind::kMul: {
      std::int64_t product = e->value;
      for (Expr arg : e->args) product = checked_mul(product, evaluate(arg, values), "evaluate");
      return product;
    }
    case ExprKind::kFloorDiv:
    case ExprKind::kMod: {
      const std::int64_t dividend = evaluate(e->args[0], values);
      const std::int64_t divisor = evaluate(e->args[1], values);
      if (divisor == 0) fail_divisor(*this, e);
      return e->kind == ExprKind::kMod ? floor_modulo(dividend, divisor)
                                       : floor_divide(dividend, divisor, "evaluate");
    }
    case ExprKind::kMax:
    case ExprKind::kMin: {
      std::int64_t best = evaluate(e->args[0], values);
      for (std::size_t i = 1; i < e->args.size(); ++i) {
        const std::int64_t value = evaluate(e->args[i], values);
        best = e->kind == ExprKind::kMax ? std::max(best, value) : std::min(best, value);
      }
      return best;
    }
    case ExprKind::kLess:
    case ExprKind::kSame: {
      const double a = number(e->args[0], values), b = number(e->args[1], values);
      return e->kind == ExprKind::kLess ? a < b : a == b;
    }
    case ExprKind::kWhere:
      return evaluate(e->args[evaluate(e->args[0], values) != 0 ? 1 : 2], values);
    case ExprKind::kBitLength:
      return std::bit_width(magnitude(evaluate(e->args[0], values)));
    case ExprKind::kPower2: {
      const std::int64_t power = evaluate(e->args[0], values);
      if (power > 62) fail_overflow("evaluate");
      return power < 0 ? 0 : std::int64_t{1} << power;
    }
    case ExprKind::kTrunc:
    case ExprKind::kFloor:
    case ExprKind::kCeil:
    case ExprKind::kRound:
      return round_real(e->kind, evaluate_real(e->args[0], values));
    default:
      break;
  }
  FAIRLEAD_CHECK(false, "a real number where an integer is expected");
  return 0;
}

double ExprPool::number(Expr e, std::span<const std::int64_t> values) const {
  return is_real(e) ? evaluate_real(e, values) : static_cast<double>(evaluate(e, values));
}

double ExprPool::evaluate_real(Expr e, std::span<const std::int64_t> values) const {
  switch (e->kind) {
    case ExprKind::kReal:
      return std::bit_cast<double>(e->value);
    case ExprKind::kSymbol:
      return std::bit_cast<double>(evaluate(e, values));
    case ExprKind::kToReal:
      return static_cast<double>(evaluate(e->args[0], values));
    case ExprKind::kSqrt:
    case ExprKind::kLog:
    case ExprKind::kLog2:
    case ExprKind::kExp:
      return compute_real(e->kind, evaluate_real(e->args[0], values), 0);
    case ExprKind::kWhere:
      return evaluate_real(e->args[evaluate(e->args[0], values) != 0 ? 1 : 2], values);
    default:
      return compute_real(e->kind, evaluate_real(e->args[0], values),
                          evaluate_real(e->args[1], values));
  }
}

Expr ExprPool::replaced(Expr e, Expr part, Expr by) {
  std::unordered_map<Expr, Expr> done;
  const auto rebuild = [&](const auto& self, Expr from) -> Expr {
    if (from == part) return by;
    if (from->args.empty() || from->weight < part->weight) return from;
    if (const auto known = done.find(from); known != done.end()) return known->second;
    std::vector<Expr> args;
    for (Expr arg : from->args) args.push_back(self(self, arg));
    Expr result = args == from->args ? from : rebuilt(from, args);
    done.emplace(from, result);
    return result;
  };
  return rebuild(rebuild, e);
}

Expr ExprPool::substitute(Expr e, std::span<const Expr> map) {
  // Shared parts are rebuilt once.
  std::unordered_map<Expr, Expr> done;
  const auto rebuild = [&](const auto& self, Expr from) -> Expr {
    if (from->args.empty() && from->kind != ExprKind::kSymbol) return from;
    if (from->kind == ExprKind::kSymbol) {
      const auto id = static_cast<std::size_t>(from->value);
      return id < map.size() && map[id] != nullptr ? map[id] : from;
    }
    if (const auto known = done.find(from); known != done.end()) return known->second;
    std::vector<Expr> args;
    for (Expr arg : from->args) args.push_back(self(self, arg));
    Expr result = rebuilt(from, args);
    done.emplace(from, result);
    return result;
  };
  return rebuild(rebuild, e);
}

std::vector<SymbolId> ExprPool::symbols_of(Expr e) const {
  std::vector<SymbolId> found;
  std::unordered_set<Expr> seen;
  collect_symbols(e, found, seen);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace fairlead
