// Bounds from the form of an expression, and slices from bounds.
#include "fairlead/graph/places.h"

#include <algorithm>

namespace fairlead {
namespace {

constexpr std::int64_t kUnknown = INT64_MIN;
constexpr std::int64_t kHuge = std::int64_t{1} << 40;  // beyond it bounds are not multiplied

std::int64_t least_term(const ExprPool& pool, Expr e) {
  std::int64_t product = e->value;
  if (product < 0) return kUnknown;
  for (const Expr factor : e->args) {
    const std::int64_t least = least_value(pool, factor);
    if (least < 0) return kUnknown;
    product = std::min(least, kHuge) * std::min(product, kHuge) > kHuge ? kHuge : product * least;
  }
  return product;
}

}  // namespace

std::int64_t least_value(const ExprPool& pool, Expr e) {
  switch (e->kind) {
    case ExprKind::kConst:
      return e->value;
    case ExprKind::kSymbol: {
      const SymbolKind kind = pool.symbols()[static_cast<std::size_t>(e->value)].kind;
      return kind == SymbolKind::kSize ? 1 : kind == SymbolKind::kData ? 0 : kUnknown;
    }
    case ExprKind::kMul:
      return least_term(pool, e);
    case ExprKind::kAdd: {
      std::int64_t sum = 0;
      for (const Expr term : e->args) {
        const std::int64_t least = least_value(pool, term);
        if (least == kUnknown || least < -kHuge) return kUnknown;
        sum += std::min(least, kHuge);
      }
      return sum;
    }
    case ExprKind::kFloorDiv: {
      const std::int64_t least = least_value(pool, e->args[0]);
      const std::int64_t divisor = least_value(pool, e->args[1]);
      if (least < 0 || divisor < 1) return kUnknown;
      return is_const(e->args[1]) ? least / divisor : 0;
    }
    case ExprKind::kMod:
      return least_value(pool, e->args[1]) >= 1 ? 0 : kUnknown;
    case ExprKind::kMax:
    case ExprKind::kMin: {
      std::int64_t found = least_value(pool, e->args[0]);
      for (const Expr part : e->args) {
        const std::int64_t least = least_value(pool, part);
        found = e->kind == ExprKind::kMax ? std::max(found, least) : std::min(found, least);
      }
      return found;
    }
    case ExprKind::kLess:
    case ExprKind::kSame:
    case ExprKind::kBitLength:
    case ExprKind::kPower2:
      return 0;
    case ExprKind::kWhere:
      return std::min(least_value(pool, e->args[1]), least_value(pool, e->args[2]));
    default:
      return pool.may_be_negative(e) ? kUnknown : 0;
  }
}

namespace {

struct Places {
  ExprPool& pool;

  [[nodiscard]] Expr not_negative(Expr e) const {
    return least_value(pool, e) >= 0 ? e : pool.max(e, pool.constant(0));
  }

  [[nodiscard]] Expr lesser(Expr a, Expr b) const {
    if (least_value(pool, pool.sub(a, b)) >= 0) return b;
    return least_value(pool, pool.sub(b, a)) >= 0 ? a : pool.min(a, b);
  }

  // Counted from the beginning; null where it is not known from which side it counts.
  [[nodiscard]] Expr from_start(Expr place, Expr size) const {
    if (least_value(pool, place) >= 0) return place;
    if (least_value(pool, pool.neg(place)) < 1) return nullptr;
    return not_negative(pool.add(size, place));
  }
};

}  // namespace

Span slice_span(ExprPool& pool, Expr size, Expr start, Expr end, Expr step) {
  const Places p{pool};
  const Expr zero = pool.constant(0);
  if (start == nullptr || is_const(start, INT64_MIN)) start = zero;
  const bool open = end == nullptr || end == size || (is_const(end) && end->value > kHuge);
  Span span;
  span.start = p.from_start(start, size);
  if (span.start == nullptr) return span;
  const bool from_end = least_value(pool, start) < 0;
  if (open && from_end && is_const(step, 1)) {
    span.length = p.lesser(size, pool.neg(start));
    return span;
  }
  Expr last = size;
  if (!open) {
    last = p.from_start(end, size);
    if (last == nullptr) return span;
    last = p.lesser(last, size);
  }
  span.length = p.not_negative(pool.ceildiv(pool.sub(last, span.start), step));
  return span;
}

std::vector<std::int64_t> squeezed_axes(std::span<const Expr> shape,
                                        std::vector<std::int64_t> named, std::size_t left) {
  std::vector<std::int64_t> ones;
  for (const std::int64_t axis : named) {
    if (is_const(shape[static_cast<std::size_t>(axis)], 1)) ones.push_back(axis);
  }
  return ones.size() + left == shape.size() ? ones : named;
}

}  // namespace fairlead
