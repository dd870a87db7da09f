// A recursive reader: NAME, or NAME(argument, ...), where arguments may be strings and
// keyword=value.
#include "fairlead/pt2/sympy.h"

#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/base/error.h"

namespace fairlead::pt2 {
namespace {

constexpr int kMaxDepth = 200;
constexpr std::int64_t kSmallDivisor = 1024;

// Either an integer expression or number * base^power.
struct Value {
  Expr whole = nullptr;
  SymFloat real;
  [[nodiscard]] bool is_whole() const { return whole != nullptr; }
};

class Reader {
 public:
  Reader(std::string_view text, ExprPool& pool, const SymbolOf& symbol)
      : text_(text), pool_(pool), symbol_(symbol) {}

  [[nodiscard]] Value read() {
    const Value value = term(0);
    if (at_ != text_.size()) fail("the end");
    return value;
  }

  [[nodiscard]] Expr whole(const Value& value) const {
    if (!value.is_whole()) unsupported("a number that is not whole");
    return value.whole;
  }

  [[nodiscard]] static SymFloat real(const Value& value) {
    if (!value.is_whole()) return value.real;
    if (is_const(value.whole)) return {static_cast<double>(value.whole->value), nullptr, 1};
    return {1, value.whole, 1};
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(ErrorCode::kParse, "[pt2] Expected " + expected + " in a size at character " +
                                       std::to_string(at_) + ", got '" +
                                       std::string(text_.substr(0, 200)) + "'.");
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    throw Error(ErrorCode::kUnsupported,
                "[pt2] Expected sizes made of sums, products, divisions, maxima and minima, got " +
                    what + " in '" + std::string(text_.substr(0, 200)) +
                    "'. Fix the dimension it depends on.");
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char c) {
    if (peek() != c) fail(std::string("'") + c + "'");
    ++at_;
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  [[nodiscard]] std::string_view name() {
    (void)peek();
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '_' || text_[at_] == '.')) {
      ++at_;
    }
    if (at_ == start) fail("a name");
    return text_.substr(start, at_ - start);
  }

  [[nodiscard]] std::string_view quoted() {
    expect('\'');
    const std::size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) fail("a closing quote");
    const std::string_view inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    return inside;
  }

  [[nodiscard]] std::int64_t integer() {
    (void)peek();
    std::int64_t number = 0;
    const char* first = text_.data() + at_;
    const auto [end, status] = std::from_chars(first, text_.data() + text_.size(), number);
    if (status != std::errc()) fail("a number of 64 bits");
    at_ += static_cast<std::size_t>(end - first);
    return number;
  }

  // positive=True, integer=True and precision=53: said about a symbol or a float, of no use here.
  void skip_keywords() {
    while (accept(',')) {
      (void)name();
      expect('=');
      (void)name();
    }
    expect(')');
  }

  [[nodiscard]] Value term(int depth) {
    if (depth > kMaxDepth) fail("at most 200 nested functions");
    const std::string_view function = name();
    if (function == "true" || function == "false") {
      return {pool_.constant(function == "true" ? 1 : 0), {}};
    }
    if (peek() != '(') fail("'('");
    ++at_;
    if (function == "Integer") {
      const Expr e = pool_.constant(integer());
      expect(')');
      return {e, {}};
    }
    if (function == "Symbol") {
      const Expr e = symbol_(quoted());
      skip_keywords();
      return {e, {}};
    }
    if (function == "Float") {
      const std::string text(quoted());
      skip_keywords();
      double number = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) {
        fail("a number");
      }
      return {nullptr, {number, nullptr, 1}};
    }
    if (function == "Rational") {
      const std::int64_t above = integer();
      expect(',');
      const std::int64_t below = integer();
      expect(')');
      if (below == 0) fail("a divisor that is not 0");
      return {nullptr, {static_cast<double>(above) / static_cast<double>(below), nullptr, 1}};
    }
    std::vector<Value> args;
    if (!accept(')')) {
      do {
        args.push_back(term(depth + 1));
      } while (accept(','));
      expect(')');
    }
    if (args.empty()) fail("an argument");
    return apply(function, args);
  }

  template <typename Fold>
  [[nodiscard]] Value fold(const std::vector<Value>& args, Fold fold) const {
    Expr result = whole(args[0]);
    for (std::size_t k = 1; k < args.size(); ++k) result = fold(result, whole(args[k]));
    return {result, {}};
  }

  [[nodiscard]] Value apply(std::string_view f, const std::vector<Value>& args) {
    ExprPool& p = pool_;
    const auto count = [&](std::size_t n) {
      if (args.size() != n) fail(std::to_string(n) + " arguments of " + std::string(f));
    };
    const auto at = [&](std::size_t k) { return whole(args[k]); };
    if (f == "Add") return fold(args, [&](Expr a, Expr b) { return p.add(a, b); });
    if (f == "Max" || f == "Or") return fold(args, [&](Expr a, Expr b) { return p.max(a, b); });
    if (f == "Min" || f == "And") return fold(args, [&](Expr a, Expr b) { return p.min(a, b); });
    if (f == "Mul") return product(args);
    if (f == "Identity") {
      count(1);
      return args[0];
    }
    if (f == "Not") {
      count(1);
      return {p.sub(p.constant(1), at(0)), {}};
    }
    if (f == "Pow" || f == "PowByNatural" || f == "FloatPow") return power(f, args);
    if (f == "ToFloat") {
      count(1);
      return {nullptr, real(args[0])};
    }
    if (f == "IntTrueDiv" || f == "FloatTrueDiv") {
      count(2);
      return quotient(real(args[0]), real(args[1]));
    }
    if (f == "OpaqueUnaryFn_sqrt" || f == "sqrt") {
      count(1);
      const SymFloat x = real(args[0]);
      return {nullptr, {std::sqrt(x.number), x.base, x.power / 2}};
    }
    if (f == "FloorDiv" || f == "CleanDiv") {
      count(2);
      return {p.floordiv(at(0), at(1)), {}};
    }
    if (f == "CeilDiv") {
      count(2);
      return {p.ceildiv(at(0), at(1)), {}};
    }
    if (f == "Mod" || f == "PythonMod") {
      count(2);
      return {p.mod(at(0), at(1)), {}};
    }
    if (f == "ModularIndexing") {
      count(3);
      return {p.mod(p.floordiv(at(0), at(1)), at(2)), {}};
    }
    if (f == "CeilToInt" || f == "FloorToInt" || f == "TruncToInt") return rounded(f, args);
    if (const auto flag = compare(f, args)) return {*flag, {}};
    unsupported(std::string(f));
  }

  // a > b is min(max(a - b, 0), 1).
  [[nodiscard]] std::optional<Expr> compare(std::string_view f, const std::vector<Value>& args) {
    ExprPool& p = pool_;
    if (args.size() != 2 || !args[0].is_whole() || !args[1].is_whole()) return std::nullopt;
    const Expr one = p.constant(1);
    const auto above = [&](Expr a, Expr b) {
      return p.min(p.max(p.sub(a, b), p.constant(0)), one);
    };
    const Expr a = args[0].whole;
    const Expr b = args[1].whole;
    if (f == "StrictGreaterThan") return above(a, b);
    if (f == "StrictLessThan") return above(b, a);
    if (f == "GreaterThan") return p.sub(one, above(b, a));
    if (f == "LessThan") return p.sub(one, above(a, b));
    const Expr apart = p.max(above(a, b), above(b, a));
    if (f == "Unequality") return apart;
    if (f == "Equality") return p.sub(one, apart);
    return std::nullopt;
  }

  [[nodiscard]] Value product(const std::vector<Value>& args) {
    bool all_whole = true;
    for (const Value& arg : args) all_whole = all_whole && arg.is_whole();
    if (all_whole) return fold(args, [&](Expr a, Expr b) { return pool_.mul(a, b); });
    SymFloat result{1, nullptr, 1};
    for (const Value& arg : args) {
      const SymFloat x = real(arg);
      result.number *= x.number;
      if (x.base == nullptr) continue;
      if (result.base == nullptr) {
        result.base = x.base;
        result.power = x.power;
      } else if (result.base == x.base) {
        result.power += x.power;
      } else if (result.power == x.power) {
        result.base = pool_.mul(result.base, x.base);
      } else {
        unsupported("a product of several powers");
      }
    }
    return {nullptr, result};
  }

  [[nodiscard]] Value power(std::string_view f, const std::vector<Value>& args) {
    if (args.size() != 2) fail("2 arguments of " + std::string(f));
    const SymFloat exponent = real(args[1]);
    if (exponent.base != nullptr) unsupported("a power that varies");
    if (args[0].is_whole() && args[1].is_whole() && exponent.number >= 0 && exponent.number <= 16) {
      Expr result = pool_.constant(1);
      for (int k = 0; k < static_cast<int>(exponent.number); ++k) {
        result = pool_.mul(result, args[0].whole);
      }
      return {result, {}};
    }
    const SymFloat x = real(args[0]);
    return {nullptr, {std::pow(x.number, exponent.number), x.base, x.power * exponent.number}};
  }

  [[nodiscard]] Value quotient(const SymFloat& a, const SymFloat& b) {
    if (b.base == nullptr) return {nullptr, {a.number / b.number, a.base, a.power}};
    if (a.base == nullptr) return {nullptr, {a.number / b.number, b.base, -b.power}};
    if (a.base == b.base) return {nullptr, {a.number / b.number, a.base, a.power - b.power}};
    unsupported("a quotient of two sizes");
  }

  // ceil and floor of a / k, and of a * p / q where q is a small power of two: factors such as 2.0
  // and 1.5, whose product with a size is exact, so that it is rounded as the program rounds it.
  [[nodiscard]] Value rounded(std::string_view f, const std::vector<Value>& args) {
    if (args.size() != 1) fail("1 argument of " + std::string(f));
    if (args[0].is_whole()) return args[0];
    const SymFloat& x = args[0].real;
    if (x.base == nullptr || x.power != 1) unsupported(std::string(f));
    Expr above = x.base;
    const double divisor = 1 / x.number;
    auto k = static_cast<std::int64_t>(std::abs(divisor) < 1e9 ? std::llround(divisor) : 0);
    if (k < 1 || 1.0 / static_cast<double>(k) != x.number) {
      const double p = x.number * kSmallDivisor;
      if (!(p >= 1 && p < 1e9 && std::trunc(p) == p)) unsupported(std::string(f));
      const auto shared = std::gcd(static_cast<std::int64_t>(p), kSmallDivisor);
      above = pool_.mul(x.base, pool_.constant(static_cast<std::int64_t>(p) / shared));
      k = kSmallDivisor / shared;
    }
    if (k == 1) return {above, {}};
    const Expr by = pool_.constant(k);
    return {f == "CeilToInt" ? pool_.ceildiv(above, by) : pool_.floordiv(above, by), {}};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  ExprPool& pool_;
  const SymbolOf& symbol_;
};

}  // namespace

Expr parse_sympy(std::string_view text, ExprPool& pool, const SymbolOf& symbol) {
  Reader reader(text, pool, symbol);
  return reader.whole(reader.read());
}

SymFloat parse_sympy_float(std::string_view text, ExprPool& pool, const SymbolOf& symbol) {
  Reader reader(text, pool, symbol);
  return Reader::real(reader.read());
}

}  // namespace fairlead::pt2
