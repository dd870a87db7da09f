// Rules 5 and 6 of the solver: quotients, roundings, remainders, and max and min.
#include <algorithm>
#include <numeric>

#include "fairlead/symbol/expr_impl.h"
#include "fairlead/symbol/solve_impl.h"

namespace fairlead {
namespace {

constexpr int kQuotientBits = 200;
constexpr int kRemainderBits = 300;
constexpr int kExtremumBits = 200;
constexpr std::int64_t kLargestPatch = 32;      // divisors tried in products of quotients
constexpr std::int64_t kLargestSide = 1 << 20;  // so that three of them multiply within 64 bits

// Every divisor up to 64, then the round ones.
[[nodiscard]] const Ints& divisors() {
  static const Ints list = [] {
    Ints all(63);
    std::iota(all.begin(), all.end(), 2);
    for (std::int64_t k : {80, 96, 100, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768,
                           1000, 1024, 2048, 4096}) {
      all.push_back(k);
    }
    return all;
  }();
  return list;
}

// Divisors are read off kernels and blocks, not drawn from all integers; most are powers of two.
[[nodiscard]] int divisor_bits(std::int64_t k) {
  const int size = k <= 64 ? bits_of(static_cast<double>(k)) : std::min(constant_bits(k), 900);
  const bool is_power = (k & (k - 1)) == 0;
  return is_power ? std::min(size, 100 + bits_of(__builtin_ctzll(magnitude(k)))) : size;
}

// What stands under a division: a product, or the sum or difference of two atoms.
struct Dividend {
  Ints values;
  std::size_t first;
  std::size_t second;
  std::int64_t sign;  // 0: `first` alone
  std::int64_t scale = 1;
  int bits = 0;
  std::size_t rows = 0;
};

[[nodiscard]] Expr dividend_expr(Search& search, const Dividend& d) {
  ExprPool& pool = search.pool;
  Expr e = search.basis.expr(pool, d.first);
  if (d.sign != 0) {
    e = pool.add(e, pool.mul(pool.constant(d.sign), search.basis.expr(pool, d.second)));
  }
  return pool.mul(e, pool.constant(d.scale));
}

[[nodiscard]] std::vector<Dividend> dividends_of(const Search& search) {
  const Basis& basis = search.basis;
  std::vector<Dividend> all;
  const std::size_t atoms = basis.atom_count();
  const auto add = [&](Dividend d) {
    for (std::size_t r = 0; r < basis.runs(); ++r) {
      const std::int64_t other = d.sign == 0 ? 0 : d.sign * basis.values(d.second)[r];
      d.values.push_back(d.scale * (basis.values(d.first)[r] + other));
    }
    if (!all_equal(d.values)) all.push_back(std::move(d));
  };
  for (std::size_t i = 0; i < basis.count_up_to(atoms > kManyAtoms ? 1 : 2); ++i) {
    add({{}, i, i, 0, 1, basis[i].bits, search.rows({i})});
  }
  for (std::size_t i = 0; i < atoms; ++i) {
    for (std::int64_t scale : {2, 3}) {
      add({{}, i, i, 0, scale, basis[i].bits + coefficient_bits(scale), search.rows({i})});
    }
    for (std::size_t j = 0; j < atoms && atoms <= 10; ++j) {
      const int bits = basis[i].bits + basis[j].bits + 100;
      if (j > i) add({{}, i, j, 1, 1, bits, search.rows({i, j})});
      if (j != i) add({{}, i, j, -1, 1, bits + 100, search.rows({i, j})});
    }
  }
  return all;
}

// outer*((dividend + e)//k) + shift, for the e that every run allows.
struct Rounding {
  std::int64_t k;
  std::int64_t outer = 1;
  std::int64_t shift = 0;
  int bits = 0;           // of outer and shift
  std::size_t large = 0;  // constants that are not tiny
};

// v = (d + e)//k in every run exactly where max(k*v - d) <= e <= min(k*v - d) + k - 1: an interval.
// Of its members at most one is a multiple of k (floor) and at most one is k - 1 more (ceiling);
// else the smallest are offered.
void offer_quotients(Search& search, const Dividend& d, IntSpan v, const Rounding& form) {
  const std::int64_t k = form.k;
  std::int64_t low = INT64_MIN;
  std::int64_t high = INT64_MAX;
  for (std::size_t r = 0; r < v.size(); ++r) {
    const std::int64_t gap = k * v[r] - d.values[r];
    low = std::max(low, gap);
    high = std::min(high, gap + k - 1);
    if (low > high) return;
  }
  ExprPool& pool = search.pool;
  const auto offer = [&](std::int64_t e) {
    const std::int64_t whole = floor_divide(e, k, "solve");
    const std::int64_t inside = floor_modulo(e, k);
    // e itself, a floor or a ceiling plus a constant: whichever is shorter to say.
    int bits = offset_bits(e);
    if (inside == 0) bits = std::min(bits, offset_bits(whole));
    if (inside == k - 1) bits = std::min(bits, offset_bits(whole));
    bits = std::min(bits, offset_bits(inside) + offset_bits(whole));
    // Strides this small come with any kernel and padding, so the remainder says nothing about what
    // is likelier: sizes that are all odd do not tell h//2 from (h - 1)//2.
    if (k <= 4) {
      bits = std::min(bits, 50 + std::min(offset_bits(whole), offset_bits(whole + 1)));
    }
    Expr quotient =
        pool.floordiv(pool.add(dividend_expr(search, d), pool.constant(e)), pool.constant(k));
    Expr result =
        pool.add(pool.mul(quotient, pool.constant(form.outer)), pool.constant(form.shift));
    const bool tiny = is_tiny(whole) && (inside == 0 || inside == k - 1 || is_tiny(e));
    search.offer(result, {d.bits + kQuotientBits + divisor_bits(k) + bits + form.bits, d.rows,
                          (k <= 64 ? 0U : 1U) + (tiny ? 0U : 1U) + form.large, d.sign == 0});
  };
  const std::int64_t floor_e = floor_divide(high, k, "solve") * k;
  const std::int64_t ceiling_e = floor_divide(high + 1, k, "solve") * k - 1;
  if (floor_e >= low) offer(floor_e);
  if (ceiling_e >= low) offer(ceiling_e);
  const std::int64_t nearest = low > 0 ? low : std::min<std::int64_t>(high, 0);
  if (nearest != floor_e && nearest != ceiling_e) offer(nearest);
  const std::int64_t next = low > 0 ? low + 1 : nearest - 1;
  if (next >= low && next <= high && next != floor_e && next != ceiling_e) offer(next);
}

// v = (d + e)%k and v = (-d + e)%k, also with k more: what is left after whole blocks, and the last
// of these.
void offer_remainders(Search& search, const Dividend& d, std::int64_t smallest,
                      std::int64_t largest) {
  for (const std::int64_t k : divisors()) {
    const std::int64_t more = smallest >= k ? k : 0;
    if (k + more <= largest) continue;
    for (const std::int64_t sign : {1, -1}) {
      const auto gap = [&](std::size_t r) {
        return floor_modulo(search.observed[r] - sign * d.values[r], k);
      };
      std::int64_t e = gap(0);
      bool fits = true;
      for (std::size_t r = 1; r < d.values.size() && fits; ++r) fits = gap(r) == e;
      if (!fits) continue;
      if (e > k / 2) e -= k;
      ExprPool& pool = search.pool;
      Expr inside =
          pool.add(pool.mul(dividend_expr(search, d), pool.constant(sign)), pool.constant(e));
      const int bits = d.bits + kRemainderBits + divisor_bits(k) + offset_bits(e) +
                       (sign < 0 ? 100 : 0) + (more != 0 ? 100 : 0);
      search.offer(pool.add(pool.mod(inside, pool.constant(k)), pool.constant(more)),
                   {bits, d.rows, 1U + (is_tiny(e) ? 0U : 1U), false});
    }
  }
}

// Offers X + c and c*X for a row X of values that is no product of the basis.
template <class MakeExpr>
void offer_row(Search& search, IntSpan row, int bits, std::initializer_list<std::size_t> products,
               MakeExpr&& make) {
  const IntSpan v = search.observed;
  const std::int64_t offset = v[0] - row[0];
  std::size_t r = 1;
  while (r < v.size() && v[r] - row[r] == offset) ++r;
  if (r == v.size()) {
    Expr e = search.pool.add(make(), search.pool.constant(offset));
    search.offer(
        e, {bits + offset_bits(offset), search.rows(products), is_tiny(offset) ? 0U : 1U, false});
  }
  if (row[0] == 0 || v[0] % row[0] != 0) return;
  const std::int64_t factor = v[0] / row[0];
  if (factor == 0 || factor == 1) return;
  for (r = 1; r < v.size(); ++r) {
    if (static_cast<__int128>(factor) * row[r] != v[r]) return;
  }
  Expr e = search.pool.mul(make(), search.pool.constant(factor));
  search.offer(e, {bits + coefficient_bits(factor), search.rows(products),
                   is_tiny(factor) ? 0U : 1U, false});
}

// What may be added to a multiple: nothing or one, and what is left of every v when it is divided
// by the greatest factor of all differences.
std::vector<std::int64_t> shifts_of(IntSpan v, std::int64_t sign) {
  std::vector<std::int64_t> shifts{0, 1, -1};
  Ints differences(v.size());
  for (std::size_t r = 0; r < v.size(); ++r) differences[r] = v[r] - v[0];
  const std::int64_t step = gcd_of(differences);
  if (step < 2) return shifts;
  const std::int64_t left = floor_modulo(sign * v[0], step);
  for (const std::int64_t shift : {left, left - step}) {
    if (std::abs(shift) > 1 && std::abs(shift) <= 64) shifts.push_back(shift);
  }
  return shifts;
}

void offer_multiples(Search& search, const std::vector<Dividend>& dividends, std::int64_t sign) {
  const IntSpan v = search.observed;
  const int sign_bits = sign < 0 ? 100 : 0;
  Ints rest(v.size());
  for (const std::int64_t shift : shifts_of(v, sign)) {
    for (std::size_t r = 0; r < v.size(); ++r) rest[r] = sign * v[r] - shift;
    const std::int64_t common = gcd_of(rest);
    if (common < (sign < 0 ? 1 : 2)) continue;
    const auto divide = [&](std::int64_t outer) {
      Ints divided = rest;
      for (std::int64_t& value : divided) value /= outer;
      return divided;
    };
    for (std::int64_t outer = 2; outer <= std::min<std::int64_t>(common, 4096); ++outer) {
      if (common % outer != 0) continue;
      const Ints divided = divide(outer);
      const Rounding up{outer, sign * outer, sign * shift, 100 + offset_bits(shift) + sign_bits, 0};
      for (const Dividend& d : dividends) offer_quotients(search, d, divided, up);
    }
    const Ints divided = divide(common);
    if (all_equal(divided)) continue;
    const int bits = coefficient_bits(common) + offset_bits(shift) + sign_bits;
    for (const Dividend& d : dividends) {
      for (const std::int64_t k : divisors()) {
        if (k == common) continue;
        offer_quotients(search, d, divided,
                        {k, sign * common, sign * shift, bits, is_tiny(common) ? 0U : 1U});
      }
    }
  }
}

}  // namespace

void try_quotients(Search& search) {
  const IntSpan v = search.observed;
  const std::vector<Dividend> dividends = dividends_of(search);
  const auto [smallest, largest] = std::minmax_element(v.begin(), v.end());
  for (const Dividend& d : dividends) {
    for (const std::int64_t k : divisors()) offer_quotients(search, d, v, {k});
    if (*smallest >= 0) offer_remainders(search, d, *smallest, *largest);
  }
  // outer*(...) + shift: the outer factor divides every v - shift. Where every v is negative, as
  // where positions are counted down, the same of -v.
  offer_multiples(search, dividends, 1);
  if (*largest < 0) offer_multiples(search, dividends, -1);
}

void try_quotient_products(Search& search) {
  const Basis& basis = search.basis;
  ExprPool& pool = search.pool;
  const std::size_t atoms = basis.atom_count();
  if (atoms > kManyAtoms) return;
  const std::size_t thirds = atoms <= 8 ? basis.count_up_to(2) : atoms;
  const std::size_t runs = basis.runs();
  std::vector<Ints> quotients(atoms, Ints(runs));
  Ints row(runs);
  for (std::size_t i = 0; i < atoms; ++i) {
    for (std::int64_t value : basis.values(i)) {
      if (magnitude(value) > kLargestSide) return;
    }
  }
  for (std::int64_t k = 2; k <= kLargestPatch; ++k) {
    for (const bool up : {false, true}) {
      for (std::size_t i = 0; i < atoms; ++i) {
        for (std::size_t r = 0; r < runs; ++r) {
          const std::int64_t value = basis.values(i)[r] + (up ? k - 1 : 0);
          quotients[i][r] = floor_divide(value, k, "solve");
        }
      }
      const auto quotient = [&](std::size_t i) {
        Expr e = basis.expr(pool, i);
        return up ? pool.ceildiv(e, pool.constant(k)) : pool.floordiv(e, pool.constant(k));
      };
      const int bits = kQuotientBits + divisor_bits(k) + (up ? 50 : 0);
      for (std::size_t i = 0; i < atoms; ++i) {
        // (i//k)*P
        for (std::size_t p = 0; p < thirds; ++p) {
          for (std::size_t r = 0; r < runs; ++r) row[r] = quotients[i][r] * basis.values(p)[r];
          offer_row(search, row, bits + basis[i].bits + basis[p].bits, {i, p},
                    [&] { return pool.mul(quotient(i), basis.expr(pool, p)); });
        }
        // a*(i//k) + b*P + c
        for (const std::int64_t a : {1, -1, 2, -2}) {
          for (std::size_t r = 0; r < runs; ++r) {
            row[r] = search.observed[r] - a * quotients[i][r];
          }
          basis.each_shifted(row, [&](std::size_t p, std::int64_t b) {
            const std::int64_t c = row[0] - b * basis.values(p)[0];
            const bool tiny = is_tiny(c);
            Expr sum = pool.add(pool.mul(quotient(i), pool.constant(a)),
                                pool.mul(basis.expr(pool, p), pool.constant(b)));
            const int length = bits + basis[i].bits + basis[p].bits + 100 + coefficient_bits(a) +
                               coefficient_bits(b) + offset_bits(c);
            search.offer(pool.add(sum, pool.constant(c)),
                         {length, search.rows({i, p}), tiny ? 0U : 1U, false});
          });
        }
        // (i//k)*(j//k), that times an atom, and (i//k) + (j//k)
        for (std::size_t j = i; j < atoms; ++j) {
          const int pair = bits + basis[i].bits + basis[j].bits + kQuotientBits / 2;
          const auto product = [&] { return pool.mul(quotient(i), quotient(j)); };
          for (std::size_t r = 0; r < runs; ++r) row[r] = quotients[i][r] * quotients[j][r];
          offer_row(search, row, pair, {i, j}, product);
          for (std::size_t p = 0; p < atoms && atoms <= 8; ++p) {
            for (std::size_t r = 0; r < runs; ++r) {
              row[r] = quotients[i][r] * quotients[j][r] * basis.values(p)[r];
            }
            offer_row(search, row, pair + basis[p].bits, {i, j, p},
                      [&] { return pool.mul(product(), basis.expr(pool, p)); });
          }
          if (i == j) continue;
          for (std::size_t r = 0; r < runs; ++r) row[r] = quotients[i][r] + quotients[j][r];
          offer_row(search, row, pair + 100, {i, j},
                    [&] { return pool.add(quotient(i), quotient(j)); });
        }
      }
    }
  }
}

// min(a*P + c, Q): the end of a block that the last one may not reach. The runs in which Q is not
// the answer say what a and c are.
void try_bounded_affine(Search& search, std::size_t p, std::size_t q, bool is_min) {
  const IntSpan v = search.observed;
  const IntSpan row = search.basis.values(p), limit = search.basis.values(q);
  std::size_t first = v.size(), second = v.size(), free = 0;
  for (std::size_t r = 0; r < v.size(); ++r) {
    if (is_min ? v[r] > limit[r] : v[r] < limit[r]) return;
    if (v[r] == limit[r]) continue;
    ++free;
    if (first == v.size()) {
      first = r;
    } else if (second == v.size() && row[r] != row[first]) {
      second = r;
    }
  }
  if (second == v.size() || free < 4 || free + 2 > v.size()) return;
  const std::int64_t rise = v[second] - v[first], run = row[second] - row[first];
  if (rise % run != 0) return;
  const std::int64_t a = rise / run;
  if (a == 0 || magnitude(a) > 4096) return;
  const std::int64_t c = v[first] - a * row[first];
  for (std::size_t r = 0; r < v.size(); ++r) {
    const std::int64_t value = a * row[r] + c;
    if (v[r] != (is_min ? std::min(value, limit[r]) : std::max(value, limit[r]))) return;
  }
  ExprPool& pool = search.pool;
  const Expr affine =
      pool.add(pool.mul(pool.constant(a), search.basis.expr(pool, p)), pool.constant(c));
  const Expr bound = search.basis.expr(pool, q);
  search.offer(is_min ? pool.min(affine, bound) : pool.max(affine, bound),
               {search.basis[p].bits + search.basis[q].bits + kExtremumBits + coefficient_bits(a) +
                    offset_bits(c),
                search.rows({p, q}), (is_tiny(a) ? 0U : 1U) + (is_tiny(c) ? 0U : 1U), false});
}

// A bound must hold in some runs and not in others, and it must be seen to hold: a run that only
// fixes a constant is no evidence for it.
void try_extrema(Search& search) {
  const Basis& basis = search.basis;
  ExprPool& pool = search.pool;
  const IntSpan v = search.observed;
  const auto [smallest, largest] = std::minmax_element(v.begin(), v.end());
  const std::size_t end = basis.count_up_to(basis.atom_count() > kManyAtoms ? 1 : 2);
  for (const bool is_min : {true, false}) {
    const std::int64_t bound = is_min ? *largest : *smallest;
    // The bound is one of the values seen: it costs what seeing it said.
    const int bound_bits = bits_of(static_cast<double>(magnitude(bound)) + 1);
    const auto beyond = [&](std::int64_t value, std::int64_t limit) {
      return is_min ? value >= limit : value <= limit;
    };
    const auto combine = [&](Expr a, Expr b) { return is_min ? pool.min(a, b) : pool.max(a, b); };
    for (std::size_t i = 0; i < end; ++i) {
      const IntSpan row = basis.values(i);
      // min(P + c, bound), where c is what the first free run says
      std::size_t first = 0;
      while (v[first] == bound) ++first;
      const std::int64_t c = v[first] - row[first];
      std::size_t free = 0;
      bool fits = true;
      for (std::size_t r = 0; r < v.size() && fits; ++r) {
        if (v[r] != bound) ++free;
        fits = v[r] == bound ? beyond(row[r] + c, bound) : row[r] + c == v[r];
      }
      const std::size_t fixed = v.size() - free;
      const std::size_t fitted = 1U + (c == 0 ? 0U : 1U);
      if (fits && (free > 1 || fixed > 1) && free + fixed >= fitted + 2) {
        search.offer(combine(pool.add(basis.expr(pool, i), pool.constant(c)), pool.constant(bound)),
                     {basis[i].bits + kExtremumBits + bound_bits + offset_bits(c), search.rows({i}),
                      is_tiny(c) ? 0U : 1U, false});
      }
      if (i < basis.count_up_to(1)) {
        for (std::size_t j = 0; j < basis.count_up_to(1); ++j) {
          if (i != j) try_bounded_affine(search, i, j, is_min);
        }
      }
      for (std::size_t j = i + 1; j < end; ++j) {
        const IntSpan other = basis.values(j);
        bool matches = true;
        bool uses_first = false;
        bool uses_second = false;
        for (std::size_t r = 0; r < v.size() && matches; ++r) {
          matches = v[r] == (is_min ? std::min(row[r], other[r]) : std::max(row[r], other[r]));
          uses_first |= v[r] == row[r] && row[r] != other[r];
          uses_second |= v[r] == other[r] && row[r] != other[r];
        }
        if (!matches || !uses_first || !uses_second) continue;
        search.offer(
            combine(basis.expr(pool, i), basis.expr(pool, j)),
            {basis[i].bits + basis[j].bits + kExtremumBits, search.rows({i, j}), 0, false});
      }
    }
  }
}

}  // namespace fairlead
