// Real numbers on the way from one integer to another: int(0.3 * n), math.ceil(n / 4).
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "fairlead/base/error.h"
#include "fairlead/symbol/expr.h"
#include "fairlead/symbol/expr_impl.h"

namespace fairlead {

namespace {

double floored_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

}  // namespace

double compute_real(ExprKind kind, double a, double b) {
  switch (kind) {
    case ExprKind::kRealAdd:
      return a + b;
    case ExprKind::kRealSub:
      return a - b;
    case ExprKind::kRealMul:
      return a * b;
    case ExprKind::kRealDiv:
      return a / b;
    case ExprKind::kRealPow:
      return std::pow(a, b);
    case ExprKind::kRealFloorDiv:
      return std::nearbyint((a - floored_remainder(a, b)) / b);
    case ExprKind::kRealMod:
      return floored_remainder(a, b);
    case ExprKind::kSqrt:
      return std::sqrt(a);
    case ExprKind::kLog:
      return std::log(a);
    case ExprKind::kLog2:
      return std::log2(a);
    case ExprKind::kExp:
      return std::exp(a);
    default:
      FAIRLEAD_CHECK(false, "no operation on real numbers");
  }
}

std::int64_t round_real(ExprKind kind, double value) {
  const double whole = kind == ExprKind::kTrunc   ? std::trunc(value)
                       : kind == ExprKind::kFloor ? std::floor(value)
                       : kind == ExprKind::kCeil  ? std::ceil(value)
                                                  : std::nearbyint(value);
  if (!(std::abs(whole) < 9e18)) fail_overflow("evaluate");
  return static_cast<std::int64_t>(whole);
}

bool ExprPool::is_real(Expr e) const {
  if (e->kind == ExprKind::kSymbol) {
    return symbols_[static_cast<std::size_t>(e->value)].kind == SymbolKind::kReadReal;
  }
  if (e->kind == ExprKind::kWhere) return is_real(e->args[1]);
  return e->kind >= ExprKind::kReal;
}

bool ExprPool::may_be_negative(Expr e) const {
  switch (e->kind) {
    case ExprKind::kConst:
      return e->value < 0;
    case ExprKind::kSymbol: {
      const SymbolKind kind = symbols_[static_cast<std::size_t>(e->value)].kind;
      return kind == SymbolKind::kRead || kind == SymbolKind::kReadReal;
    }
    case ExprKind::kMul:
      if (e->value < 0) return true;
      break;
    case ExprKind::kMod:
      return may_be_negative(e->args[1]);
    case ExprKind::kMax:
      return std::all_of(e->args.begin(), e->args.end(),
                         [&](Expr arg) { return may_be_negative(arg); });
    case ExprKind::kLess:
    case ExprKind::kSame:
    case ExprKind::kBitLength:
    case ExprKind::kPower2:
      return false;
    case ExprKind::kWhere:
      return may_be_negative(e->args[1]) || may_be_negative(e->args[2]);
    case ExprKind::kReal:
      return !(std::bit_cast<double>(e->value) >= 0);
    case ExprKind::kRealMod:
      return may_be_negative(e->args[1]);
    case ExprKind::kRealSub:
    case ExprKind::kLog:
    case ExprKind::kLog2:
      return true;
    case ExprKind::kExp:
      return false;
    default:
      break;
  }
  return std::any_of(e->args.begin(), e->args.end(),
                     [&](Expr arg) { return may_be_negative(arg); });
}

Expr ExprPool::less(Expr a, Expr b) {
  if (!is_real(a) && !is_real(b)) {
    const Expr apart = sub(b, a);
    if (is_const(apart)) return constant(apart->value > 0 ? 1 : 0);
  }
  return intern(ExprKind::kLess, 0, {a, b});
}

Expr ExprPool::same(Expr a, Expr b) {
  if (!is_real(a) && !is_real(b)) {
    const Expr apart = sub(b, a);
    if (is_const(apart)) return constant(apart->value == 0 ? 1 : 0);
  }
  return intern(ExprKind::kSame, 0, {a, b});
}

// Where a number is asked for one of its values, it is that in `yes`; of two values it has the
// other in `no`: where(n % 2 == 0, 1, 3 - n % 2) is n % 2 + 1.
Expr ExprPool::where(Expr flag, Expr yes, Expr no) {
  if (yes == no) return yes;
  if (is_real(yes) != is_real(no)) {
    yes = to_real(yes);
    no = to_real(no);
  }
  if (is_const(flag)) return flag->value != 0 ? yes : no;
  const bool asks = flag->kind == ExprKind::kSame && !is_real(yes) && !is_real(no);
  if (asks && !is_real(flag->args[0]) && is_const(flag->args[1])) {
    const Expr asked = flag->args[0], value = flag->args[1];
    const bool two = asked->least != INT64_MIN && asked->most != INT64_MAX &&
                     asked->most - asked->least == 1 && value->value >= asked->least &&
                     value->value <= asked->most;
    yes = replaced(yes, asked, value);
    if (two) {
      const Expr other = constant(asked->least + asked->most - value->value);
      no = replaced(no, asked, other);
      const Expr apart = sub(no, yes);
      if (is_const(apart)) {
        const Expr is_other = mul(sub(asked, value), constant(other->value - value->value));
        return add(yes, mul(apart, is_other));
      }
    }
    if (yes == no) return yes;
  }
  return intern(ExprKind::kWhere, 0, {flag, yes, no});
}

Expr ExprPool::bit_length(Expr a) {
  if (is_const(a)) return constant(std::bit_width(magnitude(a->value)));
  return intern(ExprKind::kBitLength, 0, {a});
}

Expr ExprPool::power2(Expr a) {
  if (is_const(a) && a->value <= 62)
    return constant(a->value < 0 ? 0 : std::int64_t{1} << a->value);
  return intern(ExprKind::kPower2, 0, {a});
}

Expr ExprPool::real(double value) {
  // 0/0 has a sign on some processors; it is one number, so that texts read back in the same order.
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return intern(ExprKind::kReal, std::bit_cast<std::int64_t>(value), {});
}

Expr ExprPool::to_real(Expr a) {
  if (is_real(a)) return a;
  return is_const(a) ? real(static_cast<double>(a->value)) : intern(ExprKind::kToReal, 0, {a});
}

namespace {

// The integer that a real number is, as long as it has 53 bits; null where it is none.
Expr whole(ExprPool& pool, Expr e) {
  constexpr double kMost = 9007199254740992.0;
  switch (e->kind) {
    case ExprKind::kToReal:
      return e->args[0];
    case ExprKind::kReal: {
      const double value = std::bit_cast<double>(e->value);
      const bool fits = value == std::floor(value) && std::abs(value) < kMost;
      return fits ? pool.constant(static_cast<std::int64_t>(value)) : nullptr;
    }
    case ExprKind::kRealAdd:
    case ExprKind::kRealSub:
    case ExprKind::kRealMul: {
      const Expr a = whole(pool, e->args[0]);
      const Expr b = a == nullptr ? nullptr : whole(pool, e->args[1]);
      if (b == nullptr) return nullptr;
      return e->kind == ExprKind::kRealAdd   ? pool.add(a, b)
             : e->kind == ExprKind::kRealSub ? pool.sub(a, b)
                                             : pool.mul(a, b);
    }
    default:
      return nullptr;
  }
}

}  // namespace

Expr ExprPool::real_op(ExprKind kind, Expr a, Expr b) {
  a = to_real(a);
  if (b == nullptr) {
    if (a->kind != ExprKind::kReal) return intern(kind, 0, {a});
    return real(compute_real(kind, std::bit_cast<double>(a->value), 0));
  }
  b = to_real(b);
  if (a->kind == ExprKind::kReal && b->kind == ExprKind::kReal) {
    return real(
        compute_real(kind, std::bit_cast<double>(a->value), std::bit_cast<double>(b->value)));
  }
  if (kind == ExprKind::kRealFloorDiv || kind == ExprKind::kRealMod) {
    const Expr top = whole(*this, a), bottom = whole(*this, b);
    if (top != nullptr && bottom != nullptr && !is_const(bottom, 0)) {
      return to_real(kind == ExprKind::kRealMod ? mod(top, bottom) : floordiv(top, bottom));
    }
  }
  return intern(kind, 0, {a, b});
}

// A quotient of integers below 2**53 is rounded to a double that lies between the same whole
// numbers, so that its floor and ceiling are those of the exact quotient.
Expr ExprPool::rounded(ExprKind kind, Expr a) {
  if (!is_real(a)) return a;
  if (Expr integer = whole(*this, a); integer != nullptr) return integer;
  if (a->kind == ExprKind::kReal) {
    return constant(round_real(kind, std::bit_cast<double>(a->value)));
  }
  if (a->kind == ExprKind::kRealDiv && kind != ExprKind::kRound) {
    Expr top = whole(*this, a->args[0]);
    Expr bottom = whole(*this, a->args[1]);
    if (top != nullptr && bottom != nullptr && is_const(bottom) && bottom->value != 0) {
      if (kind == ExprKind::kFloor) return floordiv(top, bottom);
      if (kind == ExprKind::kCeil) return ceildiv(top, bottom);
      if (!may_be_negative(top) && bottom->value > 0) return floordiv(top, bottom);
    }
  }
  // Logarithms of whole numbers are rounded exactly by counting bits; those of 0 and less are
  // errors.
  if (a->kind == ExprKind::kLog2 && kind != ExprKind::kRound) {
    if (Expr n = whole(*this, a->args[0]); n != nullptr) {
      return kind == ExprKind::kCeil ? bit_length(sub(n, constant(1)))
                                     : sub(bit_length(n), constant(1));
    }
  }
  if (kind == ExprKind::kTrunc && !may_be_negative(a)) kind = ExprKind::kFloor;
  return intern(kind, 0, {a});
}

Expr ExprPool::rebuilt(Expr like, std::span<const Expr> args) {
  if (args.empty()) return like;
  if (like->kind >= ExprKind::kReal) {
    return like->kind == ExprKind::kToReal
               ? to_real(args[0])
               : real_op(like->kind, args[0], args.size() > 1 ? args[1] : nullptr);
  }
  switch (like->kind) {
    case ExprKind::kLess:
      return less(args[0], args[1]);
    case ExprKind::kSame:
      return same(args[0], args[1]);
    case ExprKind::kWhere:
      return where(args[0], args[1], args[2]);
    case ExprKind::kBitLength:
      return bit_length(args[0]);
    case ExprKind::kPower2:
      return power2(args[0]);
    case ExprKind::kTrunc:
    case ExprKind::kFloor:
    case ExprKind::kCeil:
    case ExprKind::kRound:
      return rounded(like->kind, args[0]);
    default:
      break;
  }
  Expr result = like->kind == ExprKind::kMul ? mul(constant(like->value), args[0]) : args[0];
  for (std::size_t i = 1; i < args.size(); ++i) {
    switch (like->kind) {
      case ExprKind::kAdd:
        result = add(result, args[i]);
        break;
      case ExprKind::kMul:
        result = mul(result, args[i]);
        break;
      case ExprKind::kFloorDiv:
        result = floordiv(result, args[i]);
        break;
      case ExprKind::kMod:
        result = mod(result, args[i]);
        break;
      case ExprKind::kMax:
        result = max(result, args[i]);
        break;
      default:
        result = min(result, args[i]);
        break;
    }
  }
  return result;
}

}  // namespace fairlead
