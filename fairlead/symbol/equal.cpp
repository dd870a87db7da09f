// Sizes that are written otherwise: n + (-n) % 4 is 4*ceildiv(n, 4).
#include "fairlead/symbol/equal.h"

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

// Every remainder as what a division leaves: n % 4 is n - 4*(n // 4).
Expr without_rests(ExprPool& pool, Expr e) {
  if (e->kind == ExprKind::kMod && is_const(e->args[1])) {
    return pool.sub(e->args[0], pool.mul(e->args[1], pool.floordiv(e->args[0], e->args[1])));
  }
  if (e->kind == ExprKind::kAdd) {
    Expr sum = pool.constant(0);
    for (const Expr part : e->args) sum = pool.add(sum, without_rests(pool, part));
    return sum;
  }
  if (e->kind == ExprKind::kMul) {
    Expr product = pool.constant(e->value);
    for (const Expr part : e->args) product = pool.mul(product, without_rests(pool, part));
    return product;
  }
  return e;
}

}  // namespace

bool equal(ExprPool& pool, Expr a, Expr b) {
  if (a == b) return true;
  try {
    return without_rests(pool, a) == without_rests(pool, b);
  } catch (const Error&) {  // beyond 64 bits: nothing is known
    return false;
  }
}

}  // namespace fairlead
