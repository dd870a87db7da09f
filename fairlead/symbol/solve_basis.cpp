// Products of atoms with their values in every run, indexed by value, direction, slope and shift.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "fairlead/symbol/expr_impl.h"
#include "fairlead/symbol/solve_impl.h"

namespace fairlead {
namespace {

constexpr std::size_t kMaxProducts = 2000;  // keeps a fresh vector well below a millisecond

[[nodiscard]] std::uint64_t mix(std::uint64_t hash, std::int64_t value) {
  hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 32);
}

[[nodiscard]] std::int64_t gcd(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(std::gcd(magnitude(a), magnitude(b)));
}

}  // namespace

std::uint64_t hash_of(IntSpan values) {
  std::uint64_t hash = values.size();
  for (std::int64_t value : values) hash = mix(hash, value);
  return hash;
}

std::int64_t gcd_of(IntSpan values) {
  std::int64_t result = 0;
  for (std::int64_t value : values) result = gcd(result, value);
  return result;
}

bool all_equal(IntSpan values) {
  return std::all_of(values.begin(), values.end(), [&](auto v) { return v == values[0]; });
}

int bits_of(double count) { return static_cast<int>(std::lround(100 * std::log2(count))); }

int constant_bits(std::int64_t c) {
  const std::uint64_t size = magnitude(c);
  if (size == 0) return 0;
  const int sign = c < 0 ? 50 : 0;
  const int plain = 100 + 2 * bits_of(static_cast<double>(size));
  const int twos = __builtin_ctzll(size);
  const int round = 300 + bits_of(twos + 1) + 2 * bits_of(static_cast<double>(size >> twos));
  return sign + std::min(plain, round);
}

int coefficient_bits(std::int64_t c) {
  if (c == 1) return 0;
  return c == -1 ? 100 : 100 + constant_bits(c);
}

int offset_bits(std::int64_t c) { return c == 0 ? 0 : 100 + constant_bits(c); }

void HashIndex::reset(std::size_t capacity) {
  std::size_t size = 16;
  while (size < capacity * 2) size *= 2;
  slots_.assign(size, {});
  mask_ = size - 1;
}

void HashIndex::insert(std::uint64_t hash, std::uint32_t payload) {
  std::size_t at = hash & mask_;
  while (slots_[at].used) at = (at + 1) & mask_;
  slots_[at] = {hash, payload, true};
}

// Divided by the greatest common divisor, the first value that is not 0 made positive.
std::uint64_t Basis::direction_hash(IntSpan v, bool differences) {
  const std::int64_t base = differences ? v[0] : 0;
  std::int64_t common = 0;
  for (std::int64_t value : v) common = gcd(common, value - base);
  if (common == 0) common = 1;
  std::uint64_t hash = v.size();
  bool signed_yet = false;
  for (std::int64_t value : v) {
    const std::int64_t part = (value - base) / common;
    if (!signed_yet && part != 0) {
      signed_yet = true;
      if (part < 0) common = -common;
    }
    hash = mix(hash, (value - base) / common);
  }
  return hash;
}

std::uint64_t Basis::shift_hash(IntSpan v, std::int64_t coefficient) {
  std::uint64_t hash = v.size();
  for (std::size_t r = 1; r < v.size(); ++r) hash = mix(hash, coefficient * (v[r] - v[0]));
  return hash;
}

std::size_t Basis::count_up_to(std::size_t degree) const {
  const auto end = std::find_if(products_.begin(), products_.end(),
                                [&](const Product& p) { return p.degree > degree; });
  return static_cast<std::size_t>(end - products_.begin());
}

Expr Basis::expr(ExprPool& pool, std::size_t i) const {
  Expr result = pool.constant(1);
  for (std::size_t f = 0; f < products_[i].degree; ++f) {
    result = pool.mul(result, atoms_[products_[i].factors[f]]);
  }
  return result;
}

// Extends every product of the degree below by an atom not before its last one.
void Basis::add_products(std::size_t degree) {
  const std::size_t end = products_.size();
  Ints row(runs_);
  for (std::size_t i = 0; i < end; ++i) {
    if (products_[i].degree + 1U != degree) continue;
    for (std::size_t a = products_[i].factors[degree - 2]; a < atoms_.size(); ++a) {
      Product next = products_[i];
      if (degree > 2 && next.factors[degree - 3] == a && next.factors[degree - 2] == a) continue;
      bool fits = true;
      for (std::size_t r = 0; r < runs_ && fits; ++r) {
        fits = !__builtin_mul_overflow(values_[i * runs_ + r], values_[a * runs_ + r], &row[r]) &&
               magnitude(row[r]) <= kLargestValue;
      }
      if (!fits || all_equal(row)) continue;
      next.factors[degree - 1] = static_cast<std::uint16_t>(a);
      next.degree = static_cast<std::uint8_t>(degree);
      next.bits += products_[a].bits;
      products_.push_back(next);
      values_.insert(values_.end(), row.begin(), row.end());
    }
  }
}

void Basis::build(std::span<const Expr> atoms, std::span<const Ints> values, std::size_t runs,
                  std::size_t max_degree) {
  runs_ = runs;
  atoms_.clear();
  products_.clear();
  values_.clear();
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    const auto too_large = [](std::int64_t v) { return v > kLargestValue || v < -kLargestValue; };
    if (all_equal(values[i]) || std::any_of(values[i].begin(), values[i].end(), too_large))
      continue;
    if (atoms_.size() == kMaxProducts) break;
    atoms_.push_back(atoms[i]);
    values_.insert(values_.end(), values[i].begin(), values[i].end());
  }
  const int atom_bits = bits_of(static_cast<double>(atoms_.size() + 1));
  for (std::size_t a = 0; a < atoms_.size(); ++a) {
    products_.push_back({{static_cast<std::uint16_t>(a)}, 1, atom_bits});
  }
  // Each degree multiplies the count by about atoms / degree; the last one that stays in bounds.
  for (std::size_t degree = 2; degree <= max_degree; ++degree) {
    if (products_.size() * (atoms_.size() + degree) / degree > kMaxProducts) break;
    add_products(degree);
  }

  by_value_.reset(products_.size());
  by_direction_.reset(products_.size());
  by_slope_.reset(products_.size());
  by_shift_.reset(products_.size() * kCoefficients.size());
  for (std::uint32_t i = 0; i < products_.size(); ++i) {
    const IntSpan row = this->values(i);
    by_value_.insert(hash_of(row), i);
    by_direction_.insert(direction_hash(row, false), i);
    by_slope_.insert(direction_hash(row, true), i);
    for (std::uint32_t c = 0; c < kCoefficients.size(); ++c) {
      by_shift_.insert(shift_hash(row, kCoefficients[c]),
                       i * static_cast<std::uint32_t>(kCoefficients.size()) + c);
    }
  }
}

}  // namespace fairlead
