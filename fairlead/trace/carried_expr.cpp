// Python's arithmetic as expressions.
#include "fairlead/trace/carried_expr.h"

#include <utility>

namespace fairlead {
namespace {

// Functions of one number.
struct FunctionRow {
  CarryKind carry;
  ExprKind expr;
  bool to_integer;
};

constexpr FunctionRow kFunctions[] = {
    {CarryKind::kTrunc, ExprKind::kTrunc, true}, {CarryKind::kFloor, ExprKind::kFloor, true},
    {CarryKind::kCeil, ExprKind::kCeil, true},   {CarryKind::kRound, ExprKind::kRound, true},
    {CarryKind::kSqrt, ExprKind::kSqrt, false},  {CarryKind::kLog, ExprKind::kLog, false},
    {CarryKind::kLog2, ExprKind::kLog2, false},  {CarryKind::kExp, ExprKind::kExp, false},
};

}  // namespace

Expr computed(ExprPool& p, const Carry& node, Expr a, Expr b) {
  const bool real = p.is_real(a) || (b != nullptr && p.is_real(b));
  const auto either = [&](Expr integer, ExprKind kind) {
    return real ? p.real_op(kind, a, b) : integer;
  };
  switch (node.kind) {
    case CarryKind::kAdd:
      return either(real ? nullptr : p.add(a, b), ExprKind::kRealAdd);
    case CarryKind::kSub:
      return either(real ? nullptr : p.sub(a, b), ExprKind::kRealSub);
    case CarryKind::kMul:
      return either(real ? nullptr : p.mul(a, b), ExprKind::kRealMul);
    case CarryKind::kDiv:
      return p.real_op(ExprKind::kRealDiv, a, b);
    case CarryKind::kFloorDiv:
      if (real) return p.real_op(ExprKind::kRealFloorDiv, a, b);
      return is_const(b, 0) ? nullptr : p.floordiv(a, b);
    case CarryKind::kMod:
      if (real) return p.real_op(ExprKind::kRealMod, a, b);
      return is_const(b, 0) ? nullptr : p.mod(a, b);
    case CarryKind::kPow: {
      if (node.real) return p.real_op(ExprKind::kRealPow, a, b);
      if (is_const(a, 2)) return p.power2(b);
      constexpr std::int64_t kMostFactors = 8;
      if (!is_const(b) || b->value < 0 || b->value > kMostFactors) return nullptr;
      return p.product(std::vector<Expr>(static_cast<std::size_t>(b->value), a));
    }
    case CarryKind::kNeg:
      return real ? p.real_op(ExprKind::kRealMul, a, p.real(-1)) : p.neg(a);
    case CarryKind::kAbs:
      if (!real) return p.max(a, p.neg(a));
      return p.where(p.less(a, p.real(0)), p.real_op(ExprKind::kRealMul, a, p.real(-1)), a);
    case CarryKind::kShiftLeft:
      return p.mul(a, p.power2(b));
    case CarryKind::kShiftRight:
      if (!is_const(b)) return nullptr;
      return b->value >= 0 && b->value < 62 ? p.floordiv(a, p.power2(b)) : nullptr;
    case CarryKind::kAnd: {
      // n & 7 is a remainder; n & -8 rounds down to a multiple.
      if (is_const(a)) std::swap(a, b);
      if (!is_const(b)) return nullptr;
      const std::int64_t mask = b->value;
      if (mask >= 0 && (mask & (mask + 1)) == 0) return p.mod(a, p.constant(mask + 1));
      if (mask < 0 && (mask & -mask) == -mask) return p.sub(a, p.mod(a, p.constant(-mask)));
      return nullptr;
    }
    case CarryKind::kBitLength:
      return p.bit_length(a);
    case CarryKind::kToReal:
      return p.to_real(a);
    default:
      for (const FunctionRow& row : kFunctions) {
        if (row.carry != node.kind) continue;
        return row.to_integer ? p.rounded(row.expr, a) : p.real_op(row.expr, a);
      }
      return nullptr;
  }
}

}  // namespace fairlead
