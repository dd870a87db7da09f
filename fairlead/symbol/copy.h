// Expressions from one pool into another, and simple forms of them.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fairlead/symbol/expr.h"

namespace fairlead {

// An expression of one pool in another, or null where it has a symbol that `symbols` leaves out.
class ExprCopier {
 public:
  // symbols: by SymbolId of the pool that is copied from
  ExprCopier(ExprPool& to, std::vector<Expr> symbols) : to_(to), symbols_(std::move(symbols)) {}

  // With the same names: what the other pool has not yet is made there.
  ExprCopier(ExprPool& to, const ExprPool& from) : to_(to) {
    for (const Symbol& symbol : from.symbols()) {
      symbols_.push_back(to.symbol(symbol.name, symbol.kind));
    }
  }

  Expr operator()(Expr e) {
    const auto it = known_.find(e);
    if (it != known_.end()) return it->second;
    const Expr made = make(e);
    known_.emplace(e, made);
    return made;
  }

 private:
  Expr make(Expr e) {
    if (e->kind == ExprKind::kConst) return to_.constant(e->value);
    if (e->kind == ExprKind::kReal) return to_.real(std::bit_cast<double>(e->value));
    if (e->kind == ExprKind::kSymbol) {
      const auto id = static_cast<std::size_t>(e->value);
      return id < symbols_.size() ? symbols_[id] : nullptr;
    }
    std::vector<Expr> args;
    for (const Expr arg : e->args) {
      args.push_back((*this)(arg));
      if (args.back() == nullptr) return nullptr;
    }
    return to_.rebuilt(e, args);
  }

  ExprPool& to_;
  std::vector<Expr> symbols_;
  std::unordered_map<Expr, Expr> known_;
};

struct Multiple {
  SymbolId symbol;
  std::int64_t unit;
};

// 4*batch is four times batch, batch once; nothing else is a multiple of one symbol.
[[nodiscard]] inline std::optional<Multiple> as_multiple(Expr e) {
  const bool scaled = e->kind == ExprKind::kMul && e->args.size() == 1;
  const Expr symbol = scaled ? e->args.front() : e;
  if (symbol->kind != ExprKind::kSymbol) return std::nullopt;
  return Multiple{static_cast<SymbolId>(symbol->value), scaled ? e->value : 1};
}

}  // namespace fairlead
