// What the solver's sources share: a basis of products with indexes into it, and one search's
// state.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "fairlead/symbol/expr.h"
#include "fairlead/symbol/solve.h"

namespace fairlead {

using Ints = std::vector<std::int64_t>;
using IntSpan = std::span<const std::int64_t>;

// Beyond this, arithmetic on values might leave 64 bits; such values are only compared.
constexpr std::int64_t kLargestValue = std::int64_t{1} << 40;

// Values read one by one from a tensor may be hundreds of symbols; forms of pairs stop here.
constexpr std::size_t kManyAtoms = 24;

[[nodiscard]] std::uint64_t hash_of(IntSpan values);
[[nodiscard]] std::int64_t gcd_of(IntSpan values);  // 0 where all are 0
[[nodiscard]] bool all_equal(IntSpan values);

// Payloads by hash, in order of insertion; only insertion and lookup, so that a table costs one
// array.
class HashIndex {
 public:
  void reset(std::size_t capacity);
  void insert(std::uint64_t hash, std::uint32_t payload);
  template <class F>
  void each(std::uint64_t hash, F&& call) const {
    if (slots_.empty()) return;
    for (std::size_t at = hash & mask_; slots_[at].used; at = (at + 1) & mask_) {
      if (slots_[at].hash == hash) call(slots_[at].payload);
    }
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t payload = 0;
    bool used = false;
  };
  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
};

// Lengths in hundredths of a bit: integers, so that ranking is the same everywhere.
[[nodiscard]] int bits_of(double count);             // bits_of(8) is 300
[[nodiscard]] int constant_bits(std::int64_t c);     // small and round numbers are short
[[nodiscard]] int coefficient_bits(std::int64_t c);  // 0 for 1
[[nodiscard]] int offset_bits(std::int64_t c);       // 0 for 0
[[nodiscard]] inline bool is_tiny(std::int64_t c) { return c >= -4 && c <= 4; }

constexpr std::array<std::int64_t, 8> kCoefficients = {1, -1, 2, -2, 3, -3, 4, -4};

// The products of a few atoms (symbols, or the hints of one call) with their values in every run.
// Values and indexes never change after build().
class Basis {
 public:
  struct Product {
    std::array<std::uint16_t, 4> factors{};
    std::uint8_t degree = 0;
    int bits = 0;
  };

  // Atoms that are constant over the runs or too large to multiply are left out.
  void build(std::span<const Expr> atoms, std::span<const Ints> values, std::size_t runs,
             std::size_t max_degree);

  [[nodiscard]] std::size_t runs() const { return runs_; }
  [[nodiscard]] std::size_t atom_count() const { return atoms_.size(); }
  [[nodiscard]] std::size_t size() const { return products_.size(); }
  [[nodiscard]] std::size_t count_up_to(std::size_t degree) const;  // products are sorted by degree
  [[nodiscard]] const Product& operator[](std::size_t i) const { return products_[i]; }
  [[nodiscard]] IntSpan values(std::size_t i) const {
    return IntSpan(values_).subspan(i * runs_, runs_);
  }
  [[nodiscard]] Expr expr(ExprPool& pool, std::size_t i) const;

  // Lookups call with the index of a product (and a coefficient); the caller checks the values.
  template <class F>
  void each_equal(IntSpan v, F&& call) const {
    by_value_.each(hash_of(v), call);
  }
  template <class F>
  void each_parallel(IntSpan v, F&& call) const {  // v is a rational multiple
    by_direction_.each(direction_hash(v, false), call);
  }
  template <class F>
  void each_affine(IntSpan v, F&& call) const {  // v is a rational multiple plus a constant
    by_slope_.each(direction_hash(v, true), call);
  }
  template <class F>
  void each_shifted(IntSpan v,
                    F&& call) const {  // v is a small coefficient times it, plus a constant
    by_shift_.each(shift_hash(v, 1), [&](std::uint32_t payload) {
      call(payload / kCoefficients.size(), kCoefficients[payload % kCoefficients.size()]);
    });
  }

 private:
  [[nodiscard]] static std::uint64_t direction_hash(IntSpan v, bool differences);
  [[nodiscard]] static std::uint64_t shift_hash(IntSpan v, std::int64_t coefficient);
  void add_products(std::size_t degree);

  std::size_t runs_ = 0;
  std::vector<Expr> atoms_;
  std::vector<Product> products_;
  Ints values_;  // of product i at [i*runs, (i+1)*runs); the atoms come first, in order
  HashIndex by_value_, by_direction_, by_slope_, by_shift_;
};

// One vector to explain over one basis: candidates are offered, the shortest is chosen.
class Search {
 public:
  Search(ExprPool& pool, const Basis& basis, IntSpan observed, const std::vector<Ints>& runs);

  // What a form is made of, to judge whether the runs support it.
  struct Form {
    int bits = 0;               // length of the whole form
    std::size_t rows = 0;       // runs in which its terms differ
    std::size_t constants = 0;  // constants that are not tiny
    bool single = false;        // one term: may be given as a last resort
  };
  void offer(Expr e, const Form& form);
  void offer_unjudged(Expr e, int bits) { accepted_.push_back({e, bits}); }

  // The shortest accepted form that reproduces every run, and a rival of nearly the same length.
  [[nodiscard]] Solution choose();
  // Likewise, and among the single terms that the runs support almost: a shorter one of these is
  // still likelier than a longer form.
  [[nodiscard]] Solution choose_any();

  // Runs in which products differ from each other run.
  [[nodiscard]] std::size_t rows(std::initializer_list<std::size_t> products) const;

  ExprPool& pool;
  const Basis& basis;
  IntSpan observed;

 private:
  struct Candidate {
    Expr expr;
    int bits;
  };
  [[nodiscard]] Solution choose_from(std::vector<Candidate>& candidates);
  [[nodiscard]] bool reproduces(Expr e) const;
  [[nodiscard]] bool same_everywhere(Expr a, Expr b) const;

  const std::vector<Ints>& runs_;
  int bits_per_run_;
  std::vector<Candidate> accepted_;
  std::vector<Candidate> weak_;
};

// The rules of solve.h, each offering what fits.
void try_products(Search& search);         // rule 3 without constants
void try_scaled_products(Search& search);  // rule 3 with a constant
void try_affine(Search& search);           // rule 4, one product
void try_sums(Search& search);             // rule 4, two products
void try_sums_of_three(Search& search);    // rule 4, three products
void try_quotients(Search& search);  // rule 5, quotients, roundings and remainders of one form
void try_quotient_products(Search& search);  // rule 5, products and sums with quotients of symbols
void try_extrema(Search& search);            // rule 6

struct Solver::Impl {
  Impl(ExprPool& pool_in, std::vector<Ints> values);

  ExprPool& pool;
  std::vector<Ints> runs;   // values by SymbolId
  std::vector<bool> known;  // by SymbolId: add_symbol may leave gaps

  const Basis& symbols();  // over all known symbols, rebuilt after add_symbol
  // Null where the expression has no value (a symbol not known yet, a zero divisor).
  const Ints* cached_values(Expr e);
  Solution solve(IntSpan observed, std::span<const Expr> hints);
  Solution solve_uncached(const Ints& observed, const std::vector<Expr>& hints);
  Solution solve_by_symbols(const Ints& observed, bool simple);
  void forget();

  struct VectorHash {
    std::size_t operator()(const Ints& v) const { return hash_of(v); }
  };
  template <class T>
  using ByVector = std::unordered_map<Ints, T, VectorHash>;

  Basis basis;
  bool stale = true;
  ByVector<Solution> simple_memo;  // rule 3 on the symbols
  ByVector<Solution> full_memo;    // rules 4 to 6 on the symbols
  ByVector<Solution> hinted_memo;  // key: the vector, then the hints' ids
  std::unordered_map<Expr, Ints> expr_values;
};

}  // namespace fairlead
