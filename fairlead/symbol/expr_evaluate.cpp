// Gives expressions values: evaluation, substitution, and the symbols an expression depends on.
#include <algorithm>
#include <unordered_map>

#include "fairlead/base/error.h"
#include "fairlead/symbol/expr.h"
#include "fairlead/symbol/expr_impl.h"

namespace fairlead {
namespace {

void collect_symbols(Expr e, std::vector<SymbolId>& found) {
  if (e->kind == ExprKind::kSymbol) found.push_back(static_cast<SymbolId>(e->value));
  for (Expr arg : e->args) collect_symbols(arg, found);
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
  }
  FAIRLEAD_CHECK(false, "an expression of an unknown kind");
  return 0;
}

Expr ExprPool::substitute(Expr e, std::span<const Expr> map) {
  // Shared parts are rebuilt once.
  std::unordered_map<Expr, Expr> done;
  const auto rebuild = [&](const auto& self, Expr from) -> Expr {
    if (from->kind == ExprKind::kConst) return from;
    if (from->kind == ExprKind::kSymbol) {
      const auto id = static_cast<std::size_t>(from->value);
      return id < map.size() && map[id] != nullptr ? map[id] : from;
    }
    if (const auto known = done.find(from); known != done.end()) return known->second;
    Expr result = from->kind == ExprKind::kMul ? constant(from->value) : self(self, from->args[0]);
    for (std::size_t i = from->kind == ExprKind::kMul ? 0 : 1; i < from->args.size(); ++i) {
      Expr arg = self(self, from->args[i]);
      switch (from->kind) {
        case ExprKind::kAdd:
          result = add(result, arg);
          break;
        case ExprKind::kMul:
          result = mul(result, arg);
          break;
        case ExprKind::kFloorDiv:
          result = floordiv(result, arg);
          break;
        case ExprKind::kMod:
          result = mod(result, arg);
          break;
        case ExprKind::kMax:
          result = max(result, arg);
          break;
        case ExprKind::kMin:
          result = min(result, arg);
          break;
        case ExprKind::kConst:
        case ExprKind::kSymbol:
          break;
      }
    }
    done.emplace(from, result);
    return result;
  };
  return rebuild(rebuild, e);
}

std::vector<SymbolId> ExprPool::symbols_of(Expr e) const {
  std::vector<SymbolId> found;
  collect_symbols(e, found);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace fairlead
