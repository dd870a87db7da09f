// Sizes as torch.export writes them: sympy's srepr, read into expressions.
//
//   "Add(Mul(Integer(2), Symbol('s40', positive=True, integer=True)), Integer(1))" -> 2*s40 + 1
#pragma once

#include <functional>
#include <string_view>

#include "fairlead/symbol/expr.h"

namespace fairlead::pt2 {

using SymbolOf = std::function<Expr(std::string_view name)>;

// number * base^power; `base` is null for a plain number.
struct SymFloat {
  double number = 0;
  Expr base = nullptr;
  double power = 1;
};

// A flag (a comparison of sizes) is read as an expression that is 0 or 1. Throws Error(kParse)
// where the text is no such expression, Error(kUnsupported) where it holds a function that
// expressions have not.
[[nodiscard]] Expr parse_sympy(std::string_view text, ExprPool& pool, const SymbolOf& symbol);
[[nodiscard]] SymFloat parse_sympy_float(std::string_view text, ExprPool& pool,
                                         const SymbolOf& symbol);

}  // namespace fairlead::pt2
