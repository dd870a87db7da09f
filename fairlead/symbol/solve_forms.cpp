// Rules 3 and 4 of the solver: products, their multiples, shifts and sums.
#include <array>

#include "fairlead/symbol/expr_impl.h"
#include "fairlead/symbol/solve_impl.h"

namespace fairlead {
namespace {

constexpr int kSumBits = 100;  // one more term

[[nodiscard]] std::size_t count_large(std::initializer_list<std::int64_t> constants) {
  std::size_t count = 0;
  for (std::int64_t c : constants) count += is_tiny(c) ? 0 : 1;
  return count;
}

struct Ratio {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
};

// The ratio of v to p, each minus its first value where `differences`; denominator 0 where there is
// none. Values are bounded, so their products fit 128 bits.
[[nodiscard]] Ratio ratio_of(IntSpan v, IntSpan p, bool differences) {
  const std::int64_t v0 = differences ? v[0] : 0;
  const std::int64_t p0 = differences ? p[0] : 0;
  Ratio ratio{0, 0};
  for (std::size_t r = 0; r < v.size(); ++r) {
    const std::int64_t top = v[r] - v0;
    const std::int64_t bottom = p[r] - p0;
    if (ratio.denominator == 0 && bottom != 0) {
      auto common = static_cast<std::int64_t>(std::gcd(magnitude(top), magnitude(bottom)));
      if (bottom < 0) common = -common;
      ratio = {top / common, bottom / common};
    }
  }
  for (std::size_t r = 0; r < v.size(); ++r) {
    if (static_cast<__int128>(v[r] - v0) * ratio.denominator !=
        static_cast<__int128>(p[r] - p0) * ratio.numerator) {
      return {0, 0};
    }
  }
  return ratio;
}

// a*P + b*Q + c, summed in the pool.
struct Part {
  std::size_t product;
  std::int64_t coefficient;
};

void offer_sum(Search& search, std::initializer_list<Part> parts, std::size_t rows) {
  Expr sum = search.pool.constant(0);
  std::int64_t offset = search.observed[0];
  Search::Form form{-kSumBits, rows, 0, parts.size() == 1};
  for (const Part& part : parts) {
    offset -= part.coefficient * search.basis.values(part.product)[0];
    Expr product = search.basis.expr(search.pool, part.product);
    sum = search.pool.add(sum, search.pool.mul(product, search.pool.constant(part.coefficient)));
    form.bits += search.basis[part.product].bits + coefficient_bits(part.coefficient) + kSumBits;
    form.constants += count_large({part.coefficient});
  }
  form.bits += offset_bits(offset);
  form.constants += count_large({offset});
  search.offer(search.pool.add(sum, search.pool.constant(offset)), form);
}

// Whether v - sum of the parts is the same in every run.
[[nodiscard]] bool is_constant_rest(const Search& search, std::initializer_list<Part> parts) {
  std::int64_t first = 0;
  for (std::size_t r = 0; r < search.observed.size(); ++r) {
    std::int64_t rest = search.observed[r];
    for (const Part& part : parts) {
      rest -= part.coefficient * search.basis.values(part.product)[r];
    }
    if (r == 0) first = rest;
    if (rest != first) return false;
  }
  return true;
}

}  // namespace

void try_products(Search& search) {
  search.basis.each_equal(search.observed, [&](std::size_t i) {
    const IntSpan row = search.basis.values(i);
    if (!std::equal(row.begin(), row.end(), search.observed.begin())) return;
    search.offer_unjudged(search.basis.expr(search.pool, i), search.basis[i].bits);
  });
}

void try_scaled_products(Search& search) {
  search.basis.each_parallel(search.observed, [&](std::size_t i) {
    const auto [top, bottom] = ratio_of(search.observed, search.basis.values(i), false);
    if (bottom == 0 || top == 0) return;
    Expr product = search.basis.expr(search.pool, i);
    Expr scaled = search.pool.mul(product, search.pool.constant(top));
    const int division = bottom == 1 ? 0 : 100 + constant_bits(bottom);
    const Search::Form form{search.basis[i].bits + coefficient_bits(top) + division,
                            search.rows({i}), count_large({top, bottom}), true};
    Expr divisor = search.pool.constant(bottom);
    search.offer(search.pool.floordiv(scaled, divisor), form);
    // Sizes that all divide do not tell rounding down from rounding up.
    if (bottom != 1) search.offer(search.pool.ceildiv(scaled, divisor), form);
  });
}

void try_affine(Search& search) {
  search.basis.each_affine(search.observed, [&](std::size_t i) {
    const auto [slope, bottom] = ratio_of(search.observed, search.basis.values(i), true);
    if (bottom != 1 || slope == 0) return;
    __int128 offset = static_cast<__int128>(slope) * search.basis.values(i)[0];
    if (offset > kLargestValue || offset < -kLargestValue) return;
    offer_sum(search, {{i, slope}}, search.rows({i}));
  });
}

void try_sums(Search& search) {
  const Basis& basis = search.basis;
  Ints rest(basis.runs());
  for (std::size_t i = 0; i < basis.size(); ++i) {
    const IntSpan row = basis.values(i);
    for (const std::int64_t a : kCoefficients) {
      for (std::size_t r = 0; r < rest.size(); ++r) rest[r] = search.observed[r] - a * row[r];
      basis.each_shifted(rest, [&](std::size_t j, std::int64_t b) {
        // Each pair is met twice.
        if (j <= i || !is_constant_rest(search, {{i, a}, {j, b}})) return;
        offer_sum(search, {{i, a}, {j, b}}, search.rows({i, j}));
      });
    }
  }
}

void try_sums_of_three(Search& search) {
  const Basis& basis = search.basis;
  if (basis.atom_count() > kManyAtoms) return;
  // Products of two only where there are few: the pairs are what costs.
  const std::size_t end = basis.count_up_to(basis.atom_count() <= 6 ? 2 : 1);
  Ints rest(basis.runs());
  for (std::size_t i = 0; i < end; ++i) {
    for (std::size_t j = i + 1; j < end; ++j) {
      const IntSpan first = basis.values(i);
      const IntSpan second = basis.values(j);
      for (std::size_t signs = 0; signs < 16; ++signs) {
        const std::int64_t a = kCoefficients[signs % 4];
        const std::int64_t b = kCoefficients[signs / 4];
        for (std::size_t r = 0; r < rest.size(); ++r) {
          rest[r] = search.observed[r] - a * first[r] - b * second[r];
        }
        basis.each_shifted(rest, [&](std::size_t k, std::int64_t c) {
          if (k <= j || !is_constant_rest(search, {{i, a}, {j, b}, {k, c}})) return;
          offer_sum(search, {{i, a}, {j, b}, {k, c}}, search.rows({i, j, k}));
        });
      }
    }
  }
}

}  // namespace fairlead
