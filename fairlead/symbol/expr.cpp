// Builds expressions in normal form.
#include "fairlead/symbol/expr.h"

#include <algorithm>

#include "fairlead/base/error.h"
#include "fairlead/symbol/expr_impl.h"

namespace fairlead {
namespace {

// Sizes of real models stay below ten terms; text from outside may multiply sums without end.
constexpr std::size_t kMaxTerms = 4096;

[[nodiscard]] bool is_extremum(Expr e) {
  return e->kind == ExprKind::kMax || e->kind == ExprKind::kMin;
}

// Graded: a higher degree first, so that the constant is last.
[[nodiscard]] int compare_monomials(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (const int order = compare_exprs(a[i], b[i]); order != 0) return order;
  }
  return 0;
}

void sort_atoms(std::vector<Expr>& atoms) {
  std::sort(atoms.begin(), atoms.end(), [](Expr a, Expr b) { return compare_exprs(a, b) < 0; });
}

[[nodiscard]] ExprTerm multiply(const ExprTerm& a, const ExprTerm& b) {
  ExprTerm result{checked_mul(a.coefficient, b.coefficient, "mul"), a.atoms};
  result.atoms.insert(result.atoms.end(), b.atoms.begin(), b.atoms.end());
  sort_atoms(result.atoms);
  return result;
}

// Removes `atoms` (sorted) from `from` (sorted); false and unspecified content where one is
// missing.
[[nodiscard]] bool remove_atoms(std::vector<Expr>& from, const std::vector<Expr>& atoms) {
  for (Expr atom : atoms) {
    const auto found = std::find(from.begin(), from.end(), atom);
    if (found == from.end()) return false;
    from.erase(found);
  }
  return true;
}

[[nodiscard]] bool divides(std::int64_t divisor, std::int64_t value) {
  return floor_modulo(value, divisor) == 0;
}

[[nodiscard]] bool divide_term(const ExprTerm& a, const ExprTerm& b, ExprTerm& quotient) {
  if (!divides(b.coefficient, a.coefficient)) return false;
  quotient = {floor_divide(a.coefficient, b.coefficient, "floordiv"), a.atoms};
  return remove_atoms(quotient.atoms, b.atoms);
}

[[nodiscard]] std::int64_t constant_of(const std::vector<ExprTerm>& terms) {
  return !terms.empty() && terms.back().atoms.empty() ? terms.back().coefficient : 0;
}

void fail_zero_divisor(const char* where) {
  throw Error(ErrorCode::kInvalidInput,
              std::string("[") + where + "] Expected a divisor other than 0, got 0.");
}

struct Bounds {
  std::int64_t least = INT64_MIN;
  std::int64_t most = INT64_MAX;
};

// The ends of 64 bits stand for no bound, and what leaves them has none.
[[nodiscard]] std::int64_t saturated(__int128 value) {
  return value <= INT64_MIN   ? INT64_MIN
         : value >= INT64_MAX ? INT64_MAX
                              : static_cast<std::int64_t>(value);
}

[[nodiscard]] bool is_unbounded(const Bounds& b) {
  return b.least == INT64_MIN || b.most == INT64_MAX;
}

[[nodiscard]] Bounds times(const Bounds& a, const Bounds& b) {
  const auto by = [](std::int64_t x, std::int64_t y) { return static_cast<__int128>(x) * y; };
  if (a.least >= 0 && b.least >= 0) {
    const bool open = (a.most == INT64_MAX && b.most > 0) || (b.most == INT64_MAX && a.most > 0);
    return {saturated(by(a.least, b.least)), open ? INT64_MAX : saturated(by(a.most, b.most))};
  }
  if (is_unbounded(a) || is_unbounded(b)) {
    if (a.most <= 0 && b.least >= 0) return {INT64_MIN, saturated(by(a.most, b.least))};
    if (b.most <= 0 && a.least >= 0) return {INT64_MIN, saturated(by(b.most, a.least))};
    return {};
  }
  const auto ends = {by(a.least, b.least), by(a.least, b.most), by(a.most, b.least),
                     by(a.most, b.most)};
  return {saturated(std::min(ends)), saturated(std::max(ends))};
}

[[nodiscard]] Bounds bounds_of(Expr e) { return {e->least, e->most}; }

[[nodiscard]] Bounds bounds_of(ExprKind kind, std::int64_t value, const std::vector<Expr>& args) {
  switch (kind) {
    case ExprKind::kConst:
      return {value, value};
    case ExprKind::kAdd: {
      Bounds sum{0, 0};
      for (Expr arg : args) {
        const bool below = sum.least != INT64_MIN && arg->least != INT64_MIN;
        const bool above = sum.most != INT64_MAX && arg->most != INT64_MAX;
        sum.least = below ? saturated(static_cast<__int128>(sum.least) + arg->least) : INT64_MIN;
        sum.most = above ? saturated(static_cast<__int128>(sum.most) + arg->most) : INT64_MAX;
      }
      return sum;
    }
    case ExprKind::kMul: {
      Bounds product{1, 1};
      for (Expr arg : args) product = times(product, bounds_of(arg));
      return times(product, {value, value});
    }
    case ExprKind::kFloorDiv: {
      const Bounds a = bounds_of(args[0]);
      if (is_const(args[1]) && args[1]->value > 0) {
        const std::int64_t by = args[1]->value;
        return {a.least == INT64_MIN ? a.least : floor_divide(a.least, by, "floordiv"),
                a.most == INT64_MAX ? a.most : floor_divide(a.most, by, "floordiv")};
      }
      // A divisor is taken to be other than 0.
      return a.least >= 0 && args[1]->least >= 0 ? Bounds{0, a.most} : Bounds{};
    }
    case ExprKind::kMod: {
      if (args[1]->least < 0) return {};
      const std::int64_t most = args[1]->most == INT64_MAX ? INT64_MAX : args[1]->most - 1;
      return {0, args[0]->least >= 0 ? std::min(most, args[0]->most) : most};
    }
    case ExprKind::kMax:
    case ExprKind::kMin: {
      Bounds found = bounds_of(args[0]);
      for (Expr arg : args) {
        const bool max = kind == ExprKind::kMax;
        found.least = max ? std::max(found.least, arg->least) : std::min(found.least, arg->least);
        found.most = max ? std::max(found.most, arg->most) : std::min(found.most, arg->most);
      }
      return found;
    }
    case ExprKind::kLess:
    case ExprKind::kSame:
      return {0, 1};
    case ExprKind::kWhere:
      return {std::min(args[1]->least, args[2]->least), std::max(args[1]->most, args[2]->most)};
    case ExprKind::kBitLength:
      return {0, 64};
    case ExprKind::kPower2:
      return {0, INT64_MAX};
    default:
      return {};
  }
}

}  // namespace

int compare_exprs(Expr a, Expr b) {
  if (a == b) return 0;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->args.size() != b->args.size()) return a->args.size() < b->args.size() ? -1 : 1;
  for (std::size_t i = 0; i < a->args.size(); ++i) {
    if (const int order = compare_exprs(a->args[i], b->args[i]); order != 0) return order;
  }
  return a->value < b->value ? -1 : 1;
}

std::vector<ExprTerm> terms_of(Expr e) {
  std::vector<ExprTerm> terms;
  const auto append = [&terms](Expr term) {
    if (term->kind == ExprKind::kConst) {
      if (term->value != 0) terms.push_back({term->value, {}});
    } else if (term->kind == ExprKind::kMul) {
      terms.push_back({term->value, term->args});
    } else {
      terms.push_back({1, {term}});
    }
  };
  if (e->kind == ExprKind::kAdd) {
    terms.reserve(e->args.size());
    for (Expr term : e->args) append(term);
  } else {
    append(e);
  }
  return terms;
}

Expr ExprPool::intern(ExprKind kind, std::int64_t value, std::vector<Expr> args) {
  std::size_t hash = static_cast<std::size_t>(kind) * 0x9E3779B97F4A7C15U;
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 0xBF58476D1CE4E5B9U;
    hash ^= hash >> 29;
  };
  mix(static_cast<std::uint64_t>(value));
  for (Expr arg : args) mix(arg->id + 1U);
  const auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    Expr known = it->second;
    if (known->kind == kind && known->value == value && known->args == args) return known;
  }
  std::uint64_t weight = 1;
  for (Expr arg : args) weight += arg->weight;
  const Bounds bounds = bounds_of(kind, value, args);
  nodes_.push_back({kind, value, std::move(args), static_cast<std::uint32_t>(nodes_.size()),
                    static_cast<std::uint32_t>(std::min<std::uint64_t>(weight, UINT32_MAX)),
                    bounds.least, bounds.most});
  index_.emplace(hash, &nodes_.back());
  return &nodes_.back();
}

Expr ExprPool::from_terms(std::vector<ExprTerm> terms) {
  if (terms.size() > kMaxTerms) {
    throw Error(ErrorCode::kInvalidInput, "[expr] Expected at most " + std::to_string(kMaxTerms) +
                                              " terms, got " + std::to_string(terms.size()) + ".");
  }
  std::sort(terms.begin(), terms.end(), [](const ExprTerm& a, const ExprTerm& b) {
    return compare_monomials(a.atoms, b.atoms) < 0;
  });
  std::vector<Expr> args;
  for (std::size_t i = 0; i < terms.size();) {
    std::int64_t coefficient = 0;
    std::size_t end = i;
    for (; end < terms.size() && terms[end].atoms == terms[i].atoms; ++end) {
      coefficient = checked_add(coefficient, terms[end].coefficient, "add");
    }
    std::vector<Expr>& atoms = terms[i].atoms;
    if (coefficient != 0 && atoms.empty()) {
      args.push_back(constant(coefficient));
    } else if (coefficient == 1 && atoms.size() == 1) {
      args.push_back(atoms[0]);
    } else if (coefficient != 0) {
      args.push_back(intern(ExprKind::kMul, coefficient, std::move(atoms)));
    }
    i = end;
  }
  if (args.empty()) return constant(0);
  return args.size() == 1 ? args[0] : intern(ExprKind::kAdd, 0, std::move(args));
}

Expr ExprPool::constant(std::int64_t value) { return intern(ExprKind::kConst, value, {}); }

Expr ExprPool::symbol(std::string_view name, SymbolKind kind) {
  if (name.empty() || name.find('`') != std::string_view::npos) {
    throw Error(ErrorCode::kInvalidInput,
                "[symbol] Expected a name without backquotes, got '" + std::string(name) + "'.");
  }
  const auto [it, is_new] = by_name_.try_emplace(std::string(name), nullptr);
  if (is_new) {
    it->second = intern(ExprKind::kSymbol, static_cast<std::int64_t>(symbols_.size()), {});
    symbols_.push_back({std::string(name), kind});
  }
  return it->second;
}

Expr ExprPool::add(Expr a, Expr b) {
  if (is_const(a, 0)) return b;
  if (is_const(b, 0)) return a;
  std::vector<ExprTerm> terms = terms_of(a);
  for (ExprTerm& term : terms_of(b)) terms.push_back(std::move(term));
  return from_terms(std::move(terms));
}

Expr ExprPool::sub(Expr a, Expr b) { return a == b ? constant(0) : add(a, neg(b)); }

Expr ExprPool::neg(Expr a) { return mul(a, constant(-1)); }

Expr ExprPool::mul(Expr a, Expr b) {
  if (is_const(a, 1)) return b;
  if (is_const(b, 1)) return a;
  const std::vector<ExprTerm> left = terms_of(a);
  const std::vector<ExprTerm> right = terms_of(b);
  std::vector<ExprTerm> terms;
  for (const ExprTerm& l : left) {
    for (const ExprTerm& r : right) terms.push_back(multiply(l, r));
  }
  return from_terms(std::move(terms));
}

Expr ExprPool::product(std::span<const Expr> factors) {
  Expr result = constant(1);
  for (Expr factor : factors) result = mul(result, factor);
  return result;
}

// Division by k > 1, each rule exact for all integers:
//  1. terms that k divides, and the constant's quotient, are pulled out
//  2. the first coefficient is made positive: a//k is -((-a + k - 1)//k)
//  3. (g*a + c)//(g*k) is (a + c//g)//k
//  4. (a//m + c)//k is (a + c*m)//(m*k); (a mod m)//k is 0 where m <= k
//  5. a mod m is a - m*(a//m): where k divides m the quotient is pulled out, and of
//     b - a//k, which is (k*b - a + k - 1)//k, the lighter form is taken
Expr ExprPool::floordiv_constant(const std::vector<ExprTerm>& dividend, std::int64_t divisor) {
  std::vector<ExprTerm> whole;
  std::vector<ExprTerm> rest;
  for (const ExprTerm& term : dividend) {
    if (term.atoms.empty()) {
      whole.push_back({floor_divide(term.coefficient, divisor, "floordiv"), {}});
      const std::int64_t left = floor_modulo(term.coefficient, divisor);
      if (left != 0) rest.push_back({left, {}});
    } else if (divides(divisor, term.coefficient)) {
      whole.push_back({term.coefficient / divisor, term.atoms});
    } else {
      rest.push_back(term);
    }
  }
  const std::int64_t offset = constant_of(rest);
  if (rest.empty() || rest[0].atoms.empty()) return from_terms(std::move(whole));
  if (rest[0].coefficient < 0) {
    for (ExprTerm& term : rest) term.coefficient = checked_mul(term.coefficient, -1, "floordiv");
    Expr flipped = add(from_terms(std::move(rest)), constant(divisor - 1));
    return sub(from_terms(std::move(whole)), floordiv_constant(terms_of(flipped), divisor));
  }
  auto common = static_cast<std::uint64_t>(divisor);
  for (const ExprTerm& term : rest) {
    if (!term.atoms.empty()) common = std::gcd(common, magnitude(term.coefficient));
  }
  if (common > 1) {
    const auto by = static_cast<std::int64_t>(common);
    for (ExprTerm& term : rest) term.coefficient = floor_divide(term.coefficient, by, "floordiv");
    Expr inner = from_terms(std::move(rest));
    return add(from_terms(std::move(whole)), floordiv_constant(terms_of(inner), divisor / by));
  }
  const std::size_t count = rest.size() - (offset != 0 ? 1 : 0);
  if (count == 1 && rest[0].coefficient == 1 && rest[0].atoms.size() == 1) {
    Expr atom = rest[0].atoms[0];
    const bool by_constant = !atom->args.empty() && is_const(atom->args.back());
    if (by_constant && atom->kind == ExprKind::kFloorDiv && atom->args[1]->value > 0) {
      const std::int64_t inner = atom->args[1]->value;
      Expr sum = add(atom->args[0], constant(checked_mul(offset, inner, "floordiv")));
      Expr divided = floordiv_constant(terms_of(sum), checked_mul(inner, divisor, "floordiv"));
      return add(from_terms(std::move(whole)), divided);
    }
    if (by_constant && atom->kind == ExprKind::kMod && offset == 0 && atom->args[1]->value > 0 &&
        atom->args[1]->value <= divisor) {
      return from_terms(std::move(whole));
    }
  }
  for (const ExprTerm& term : rest) {
    if (term.atoms.size() != 1 || term.atoms[0]->kind != ExprKind::kMod) continue;
    Expr of = term.atoms[0]->args[0], by = term.atoms[0]->args[1];
    if (!is_const(by) || by->value <= 0 || !divides(divisor, by->value)) continue;
    const std::int64_t times = checked_mul(term.coefficient, by->value / divisor, "floordiv");
    Expr without = sub(from_terms(rest), from_terms({term}));
    without = add(without, mul(constant(term.coefficient), of));
    Expr left = add(from_terms(whole), floordiv_constant(terms_of(without), divisor));
    Expr plain = sub(left, mul(constant(times), floordiv(of, by)));
    if (times != 1 || by->value != divisor) return plain;
    Expr top = add(sub(mul(constant(divisor), left), of), constant(divisor - 1));
    Expr joined = floordiv_constant(terms_of(top), divisor);
    return joined->weight <= plain->weight ? joined : plain;
  }
  Expr inner = from_terms(std::move(rest));
  whole.push_back({1, {intern(ExprKind::kFloorDiv, 0, {inner, constant(divisor)})}});
  return from_terms(std::move(whole));
}

// Division by an expression: exact polynomial quotients, then, where the divisor is one term, the
// terms it divides are pulled out and common factors cancel. A divisor is taken to be other than 0.
Expr ExprPool::floordiv(Expr a, Expr b) {
  if (is_const(b, 0)) fail_zero_divisor("floordiv");
  if (is_const(b, 1)) return a;
  if (is_const(b) && b->value < 0) return floordiv(neg(a), neg(b));
  if (is_const(b)) return floordiv_constant(terms_of(a), b->value);
  if (is_const(a, 0)) return a;

  const std::vector<ExprTerm> divisor = terms_of(b);
  std::vector<ExprTerm> whole;
  Expr left = a;
  for (std::size_t step = 0; step < kMaxTerms && !is_const(left, 0); ++step) {
    ExprTerm quotient;
    if (!divide_term(terms_of(left)[0], divisor[0], quotient)) break;
    whole.push_back(quotient);
    left = sub(left, mul(from_terms({quotient}), b));
  }
  if (is_const(left, 0)) return from_terms(std::move(whole));
  if (divisor.size() > 1) return intern(ExprKind::kFloorDiv, 0, {a, b});

  whole.clear();
  std::vector<ExprTerm> rest;
  for (const ExprTerm& term : terms_of(a)) {
    ExprTerm quotient;
    const bool exact = divide_term(term, divisor[0], quotient);
    (exact ? whole : rest).push_back(exact ? quotient : term);
  }
  ExprTerm common = divisor[0];
  std::uint64_t scale = magnitude(common.coefficient);
  for (const ExprTerm& term : rest) {
    scale = std::gcd(scale, magnitude(term.coefficient));
    std::vector<Expr> shared;
    std::vector<Expr> left_over = term.atoms;
    for (Expr atom : common.atoms) {
      if (remove_atoms(left_over, {atom})) shared.push_back(atom);
    }
    common.atoms = std::move(shared);
  }
  common.coefficient = scale > INT64_MAX ? 1 : static_cast<std::int64_t>(scale);
  Expr divided = nullptr;
  if (common.coefficient != 1 || !common.atoms.empty()) {
    ExprTerm smaller;
    for (ExprTerm& term : rest) {
      if (divide_term(term, common, smaller)) term = smaller;
    }
    (void)divide_term(divisor[0], common, smaller);
    divided = floordiv(from_terms(std::move(rest)), from_terms({smaller}));
  } else {
    divided = intern(ExprKind::kFloorDiv, 0, {from_terms(std::move(rest)), b});
  }
  return add(from_terms(std::move(whole)), divided);
}

Expr ExprPool::ceildiv(Expr a, Expr b) { return neg(floordiv(neg(a), b)); }

// Remainder by k > 1: coefficients are reduced to (-k/2, k/2], the constant to [0, k), and
// (g*a + g*c) mod (g*k) is g*((a + c) mod k). A remainder by a multiple of k tells no more than what
// it is of: (-(n % 8)) % 4 is (-n) % 4.
Expr ExprPool::mod_constant(const std::vector<ExprTerm>& dividend, std::int64_t divisor) {
  for (const ExprTerm& term : dividend) {
    if (term.atoms.size() != 1 || term.atoms[0]->kind != ExprKind::kMod) continue;
    Expr of = term.atoms[0]->args[0], by = term.atoms[0]->args[1];
    if (!is_const(by) || by->value <= 0 || !divides(divisor, by->value)) continue;
    if (dividend.size() == 1 && term.coefficient == 1 && by->value == divisor) break;  // itself
    const ExprTerm factor{floor_modulo(term.coefficient, divisor), {}};
    Expr without = sub(from_terms(dividend), from_terms({term}));
    return mod_constant(terms_of(add(without, mul(from_terms({factor}), of))), divisor);
  }
  std::vector<ExprTerm> rest;
  auto common = static_cast<std::uint64_t>(divisor);
  for (const ExprTerm& term : dividend) {
    std::int64_t left = floor_modulo(term.coefficient, divisor);
    if (!term.atoms.empty() && left > divisor / 2) left -= divisor;
    if (left == 0) continue;
    common = std::gcd(common, magnitude(left));
    rest.push_back({left, term.atoms});
  }
  if (rest.empty() || rest[0].atoms.empty()) return from_terms(std::move(rest));
  if (common > 1) {
    const auto by = static_cast<std::int64_t>(common);
    for (ExprTerm& term : rest) term.coefficient /= by;
    Expr inner = from_terms(std::move(rest));
    return mul(constant(by), mod_constant(terms_of(inner), divisor / by));
  }
  Expr inner = from_terms(std::move(rest));
  if (inner->kind == ExprKind::kMod && is_const(inner->args[1]) && inner->args[1]->value > 0) {
    const std::int64_t known = inner->args[1]->value;
    if (known <= divisor) return inner;
    if (divides(divisor, known)) return mod_constant(terms_of(inner->args[0]), divisor);
  }
  return intern(ExprKind::kMod, 0, {inner, constant(divisor)});
}

Expr ExprPool::mod(Expr a, Expr b) {
  if (is_const(b, 0)) fail_zero_divisor("mod");
  if (is_const(b, 1) || is_const(b, -1) || is_const(a, 0)) return constant(0);
  if (is_const(b) && b->value < 0) return neg(mod(neg(a), neg(b)));
  if (is_const(b)) return mod_constant(terms_of(a), b->value);
  Expr quotient = floordiv(a, b);
  // What floordiv could take out exactly leaves the remainder unchanged.
  const auto is_open = [](const ExprTerm& term) {
    return std::any_of(term.atoms.begin(), term.atoms.end(),
                       [](Expr atom) { return atom->kind == ExprKind::kFloorDiv; });
  };
  std::vector<ExprTerm> exact;
  for (ExprTerm& term : terms_of(quotient)) {
    if (!is_open(term)) exact.push_back(std::move(term));
  }
  Expr rest = sub(a, mul(from_terms(std::move(exact)), b));
  return is_const(rest, 0) ? rest : intern(ExprKind::kMod, 0, {rest, b});
}

// By its range, or that of what is no larger: 7*(n//7) is at most n and 5*(n//10) at most n//2;
// 7*ceildiv(n, 7) is at least n, and 5*ceildiv(n, 10) at least ceildiv(n, 2).
bool ExprPool::never_below_zero(Expr e) {
  if (e->least >= 0) return true;
  for (const ExprTerm& term : terms_of(e)) {
    if (term.atoms.size() != 1 || term.coefficient == INT64_MIN) continue;
    const Expr rounded = term.atoms[0];
    if (rounded->kind != ExprKind::kFloorDiv || !is_const(rounded->args[1])) continue;
    const std::int64_t times = std::abs(term.coefficient), divisor = rounded->args[1]->value;
    if (divisor <= 0 || (!divides(divisor, times) && !divides(times, divisor))) continue;
    const bool up = term.coefficient > 0;  // the same as ceildiv of what is divisor - 1 less
    try {
      const Expr inner = up ? sub(rounded->args[0], constant(divisor - 1)) : rounded->args[0];
      const Expr part = constant(times >= divisor ? times / divisor : divisor / times);
      const Expr least = times >= divisor ? mul(up ? part : neg(part), inner)
                         : up             ? ceildiv(inner, part)
                                          : neg(floordiv(inner, part));
      if (add(sub(e, from_terms({term})), least)->least >= 0) return true;
    } catch (const Error&) {  // beyond 64 bits: nothing is known
      continue;
    }
  }
  return false;
}

// Flattened, without repetitions; of two arguments whose difference has one sign one is enough, and
// max(a, min(a, b)) is a.
Expr ExprPool::extremum(ExprKind kind, Expr a, Expr b) {
  // What an extremum has already is compared with what is new alone: a hundred conditions that hold
  // together are a chain of them.
  if (a->kind != kind) std::swap(a, b);
  std::vector<Expr> kept = a->kind == kind ? a->args : std::vector<Expr>{a};
  const auto wins = [&](Expr x, Expr y) {
    const Expr apart = sub(x, y);
    return kind == ExprKind::kMax ? never_below_zero(apart) : never_below_zero(neg(apart));
  };
  for (Expr e : b->kind == kind ? b->args : std::vector<Expr>{b}) {
    if (std::any_of(kept.begin(), kept.end(), [&](Expr other) { return wins(other, e); })) continue;
    std::erase_if(kept, [&](Expr other) { return wins(e, other); });
    kept.push_back(e);
  }
  const std::vector<Expr> all = kept;
  std::erase_if(kept, [&](Expr e) {
    return is_extremum(e) && e->kind != kind &&
           std::any_of(e->args.begin(), e->args.end(), [&](Expr arg) {
             return std::find(all.begin(), all.end(), arg) != all.end();
           });
  });
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end(), [](Expr x, Expr y) {
    if (is_const(x) != is_const(y)) return is_const(y);
    return compare_exprs(x, y) < 0;
  });
  return intern(kind, 0, std::move(kept));
}

Expr ExprPool::max(Expr a, Expr b) { return extremum(ExprKind::kMax, a, b); }
Expr ExprPool::min(Expr a, Expr b) { return extremum(ExprKind::kMin, a, b); }

}  // namespace fairlead
