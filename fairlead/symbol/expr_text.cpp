// Writes expressions as text and reads them back.
//
//   sum     = product (("+" | "-") product)*
//   product = unary (("*" | "//" | "%") unary)*          left to right, as in Python
//   unary   = "-" unary | primary ["**" number]
//   primary = number | name | "`" any "`" | function "(" sum ("," sum)* ")" | "(" sum ")"
//           | rounding "(" real ")" | "float(" real ")"
//   real    = term (("+" | "-") term)*;  term = part (("*" | "/") part)*
//   part    = number with a point | name | "real(" sum ")" | "(" real ")" | "sqrt(" real ")"
//           | "log(" real ")" | "pow(" real "," real ")"
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "fairlead/base/error.h"
#include "fairlead/symbol/expr.h"
#include "fairlead/symbol/expr_impl.h"

namespace fairlead {
namespace {

[[nodiscard]] bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
[[nodiscard]] bool continues_name(char c) { return starts_name(c) || is_digit(c) || c == '.'; }

[[nodiscard]] bool is_plain_name(std::string_view name) {
  if (!starts_name(name.front())) return false;
  for (char c : name) {
    if (!continues_name(c)) return false;
  }
  return true;
}

struct Named {
  std::string_view name;
  ExprKind kind;
};

// Functions of one integer, then those of one real number.
constexpr std::array<Named, 6> kOfOne = {{
    {"bit_length", ExprKind::kBitLength},
    {"power2", ExprKind::kPower2},
    {"trunc", ExprKind::kTrunc},
    {"floor", ExprKind::kFloor},
    {"ceil", ExprKind::kCeil},
    {"round", ExprKind::kRound},
}};

// The shortest text that reads back as the same number, always with a point or an exponent.
// No names: a size may be called so.
constexpr std::string_view kInfinite = "endless()", kMinusInfinite = "-endless()",
                           kNotANumber = "undefined()";

[[nodiscard]] std::string real_text(double value) {
  if (std::isnan(value)) return std::string(kNotANumber);
  if (std::isinf(value)) return std::string(value < 0 ? kMinusInfinite : kInfinite);
  std::array<char, 32> buffer{};
  const auto [end, status] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

class Printer {
 public:
  explicit Printer(const ExprPool& pool) : pool_(pool) {}

  void print(Expr e) {
    if (pool_.is_real(e)) {
      text_ += "float(";
      print_real(e);
      text_ += ')';
    } else {
      print_terms(terms_of(e));
    }
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void print_terms(const std::vector<ExprTerm>& terms) {
    if (terms.empty()) text_ += '0';
    for (std::size_t i = 0; i < terms.size(); ++i) print_term(terms[i], i == 0);
  }

  // -floordiv(-a, b) for a b that is no constant: what ceildiv makes.
  [[nodiscard]] static bool is_ceiling(Expr atom) {
    if (atom->kind != ExprKind::kFloorDiv || is_const(atom->args[1])) return false;
    for (const ExprTerm& term : terms_of(atom->args[0])) {
      if (term.coefficient >= 0 || term.coefficient == INT64_MIN) return false;
    }
    return true;
  }

  void print_term(const ExprTerm& term, bool first) {
    Expr ceiling = nullptr;
    for (Expr atom : term.atoms) {
      if (ceiling == nullptr && is_ceiling(atom)) ceiling = atom;
    }
    const bool negative = (term.coefficient < 0) != (ceiling != nullptr);
    if (first) {
      if (negative) text_ += '-';
    } else {
      text_ += negative ? " - " : " + ";
    }
    const std::uint64_t size = magnitude(term.coefficient);
    const bool shows_size = size != 1 || term.atoms.empty();
    if (shows_size) text_ += std::to_string(size);
    // A quotient alone needs no parentheses; -a//b would read as (-a)//b.
    const bool alone = !shows_size && !negative && term.atoms.size() == 1;
    for (std::size_t i = 0; i < term.atoms.size(); ++i) {
      if (i > 0 || shows_size) text_ += '*';
      print_atom(term.atoms[i], alone, term.atoms[i] == ceiling);
      if (term.atoms[i] == ceiling) ceiling = nullptr;
    }
  }

  void print_call(std::string_view name, const std::vector<Expr>& args) {
    text_ += name;
    for (std::size_t i = 0; i < args.size(); ++i) {
      text_ += i == 0 ? "(" : ", ";
      print(args[i]);
    }
    text_ += ')';
  }

  // An operand of // and %: anything but a number or a symbol stands in parentheses.
  void print_operand(Expr e) {
    const bool simple = e->kind == ExprKind::kSymbol ||
                        (e->kind >= ExprKind::kMax && e->kind <= ExprKind::kRound) ||
                        (is_const(e) && e->value >= 0);
    if (!simple) text_ += '(';
    print(e);
    if (!simple) text_ += ')';
  }

  void print_name(Expr symbol) {
    const std::string& name = pool_.symbols()[static_cast<std::size_t>(symbol->value)].name;
    text_ += is_plain_name(name) ? name : "`" + name + "`";
  }

  // Operands of an infix operator that are sums or quotients themselves stand in parentheses.
  void print_part(Expr e) {
    const bool infix = e->kind >= ExprKind::kRealAdd && e->kind <= ExprKind::kRealDiv;
    if (infix) text_ += '(';
    print_real(e);
    if (infix) text_ += ')';
  }

  void print_real(Expr e) {
    switch (e->kind) {
      case ExprKind::kReal:
        text_ += real_text(std::bit_cast<double>(e->value));
        return;
      case ExprKind::kSymbol:
        print_name(e);
        return;
      case ExprKind::kToReal:
        if (e->args[0]->kind == ExprKind::kSymbol) return print_name(e->args[0]);
        print_call("real", e->args);
        return;
      case ExprKind::kRealAdd:
      case ExprKind::kRealSub:
      case ExprKind::kRealMul:
      case ExprKind::kRealDiv:
        print_part(e->args[0]);
        text_ += e->kind == ExprKind::kRealAdd   ? " + "
                 : e->kind == ExprKind::kRealSub ? " - "
                 : e->kind == ExprKind::kRealMul ? "*"
                                                 : "/";
        print_part(e->args[1]);
        return;
      case ExprKind::kWhere:
        text_ += "where(";
        print(e->args[0]);
        for (std::size_t i = 1; i < e->args.size(); ++i) {
          text_ += ", ";
          print_real(e->args[i]);
        }
        text_ += ')';
        return;
      default:
        text_ += e->kind == ExprKind::kRealPow        ? "pow"
                 : e->kind == ExprKind::kRealFloorDiv ? "quotient"
                 : e->kind == ExprKind::kRealMod      ? "remainder"
                 : e->kind == ExprKind::kSqrt         ? "sqrt"
                 : e->kind == ExprKind::kLog2         ? "log2"
                 : e->kind == ExprKind::kExp          ? "exp"
                                                      : "log";
        for (std::size_t i = 0; i < e->args.size(); ++i) {
          text_ += i == 0 ? "(" : ", ";
          print_real(e->args[i]);
        }
        text_ += ')';
    }
  }

  void print_ceiling(std::vector<ExprTerm> dividend, Expr divisor) {
    text_ += "ceildiv(";
    print_terms(dividend);
    text_ += ", ";
    print(divisor);
    text_ += ')';
  }

  void print_atom(Expr e, bool alone, bool as_ceiling) {
    switch (e->kind) {
      case ExprKind::kSymbol:
        print_name(e);
        return;
      case ExprKind::kMax:
      case ExprKind::kMin:
        print_call(e->kind == ExprKind::kMax ? "max" : "min", e->args);
        return;
      case ExprKind::kFloorDiv:
      case ExprKind::kMod: {
        std::vector<ExprTerm> dividend = terms_of(e->args[0]);
        if (as_ceiling) {
          for (ExprTerm& term : dividend) term.coefficient = -term.coefficient;
          print_ceiling(std::move(dividend), e->args[1]);
          return;
        }
        // (a + k - 1)//k
        if (e->kind == ExprKind::kFloorDiv && is_const(e->args[1]) && dividend.size() > 1 &&
            dividend.back().atoms.empty() && dividend.back().coefficient == e->args[1]->value - 1) {
          dividend.pop_back();
          print_ceiling(std::move(dividend), e->args[1]);
          return;
        }
        if (!alone) text_ += '(';
        print_operand(e->args[0]);
        text_ += e->kind == ExprKind::kFloorDiv ? "//" : "%";
        print_operand(e->args[1]);
        if (!alone) text_ += ')';
        return;
      }
      default:
        break;
    }
    if (e->kind == ExprKind::kLess || e->kind == ExprKind::kSame) {
      return print_call(e->kind == ExprKind::kLess ? "less" : "same", e->args);
    }
    if (e->kind == ExprKind::kWhere) return print_call("where", e->args);
    for (const Named& row : kOfOne) {
      if (row.kind != e->kind) continue;
      if (!pool_.is_real(e->args[0])) return print_call(row.name, e->args);
      text_ += row.name;
      text_ += '(';
      print_real(e->args[0]);
      text_ += ')';
      return;
    }
    FAIRLEAD_CHECK(false, "a factor that is no atom");
  }

  const ExprPool& pool_;
  std::string text_;
};

using Binary = Expr (ExprPool::*)(Expr, Expr);

struct Function {
  std::string_view name;
  Binary apply;
  bool variadic;
};

constexpr std::array<Function, 11> kFunctions = {{
    {"less", &ExprPool::less, false},
    {"same", &ExprPool::same, false},
    {"max", &ExprPool::max, true},
    {"min", &ExprPool::min, true},
    {"ceildiv", &ExprPool::ceildiv, false},
    {"Max", &ExprPool::max, true},
    {"Min", &ExprPool::min, true},
    {"CeilDiv", &ExprPool::ceildiv, false},
    {"FloorDiv", &ExprPool::floordiv, false},
    {"Mod", &ExprPool::mod, false},
    {"PythonMod", &ExprPool::mod, false},
}};

class Parser {
 public:
  Parser(ExprPool& pool, std::string_view text) : pool_(pool), text_(text) {}

  [[nodiscard]] Expr parse() {
    Expr result = sum();
    if (peek() != '\0' || at_ < text_.size()) fail("an operator or the end");
    return result;
  }

 private:
  static constexpr int kMaxDepth = 200;  // deeper text is no size, and would end the stack
  static constexpr std::int64_t kMaxPower = 16;

  [[noreturn]] void fail(const std::string& expected) const {
    std::string got = "the end";
    if (at_ < text_.size()) got.assign({'\'', text_[at_], '\''});
    throw Error(ErrorCode::kParse, "[parse] Expected " + expected + " at column " +
                                       std::to_string(at_ + 1) + " of \"" + std::string(text_) +
                                       "\", got " + got + ".");
  }

  // The next character that is no blank, '\0' at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(std::string_view token) {
    (void)peek();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void expect(char token) {
    if (!accept(std::string_view(&token, 1))) fail(std::string("'") + token + "'");
  }

  // What the pool refuses (a zero divisor, an overflow) is reported with its column. Of floats
  // only their order is asked outside of float().
  [[nodiscard]] Expr apply(Binary operation, Expr a, Expr b, std::size_t column) {
    if (operation != &ExprPool::less && operation != &ExprPool::same) {
      check_integer(a, column);
      check_integer(b, column);
    }
    return made(column, [&] { return (pool_.*operation)(a, b); });
  }

  void check_integer(Expr e, std::size_t column) {
    if (!pool_.is_real(e)) return;
    at_ = column;
    fail("an integer, with floats inside of float() alone,");
  }

  [[nodiscard]] Expr sum() {
    if (++depth_ > kMaxDepth) fail("at most 200 nested parentheses");
    Expr result = product();
    while (true) {
      (void)peek();
      const std::size_t column = at_;
      if (accept("+")) {
        result = apply(&ExprPool::add, result, product(), column);
      } else if (accept("-")) {
        result = apply(&ExprPool::sub, result, product(), column);
      } else {
        --depth_;
        return result;
      }
    }
  }

  [[nodiscard]] Expr product() {
    Expr result = unary();
    while (true) {
      (void)peek();
      const std::size_t column = at_;
      if (accept("*")) {
        result = apply(&ExprPool::mul, result, unary(), column);
      } else if (accept("//")) {
        result = apply(&ExprPool::floordiv, result, unary(), column);
      } else if (accept("%")) {
        result = apply(&ExprPool::mod, result, unary(), column);
      } else {
        return result;
      }
    }
  }

  [[nodiscard]] Expr unary() {
    bool negative = false;
    while (accept("-")) negative = !negative;
    // Only its negation fits 64 bits.
    constexpr std::string_view kLowest = "9223372036854775808";
    if (negative && accept(kLowest)) {
      if (is_digit(peek())) fail("a number of 64 bits");
      return pool_.constant(INT64_MIN);
    }
    const std::size_t column = at_;
    Expr result = primary();
    if (accept("**")) {
      (void)peek();
      Expr base = result;
      const std::int64_t power = number();
      if (power > kMaxPower) fail("a power of at most 16 before here");
      result = pool_.constant(1);
      for (std::int64_t i = 0; i < power; ++i) {
        result = apply(&ExprPool::mul, result, base, column);
      }
    }
    return negative ? apply(&ExprPool::mul, result, pool_.constant(-1), column) : result;
  }

  [[nodiscard]] std::int64_t number() {
    std::int64_t value = 0;
    const char* first = text_.data() + at_;
    if (at_ >= text_.size() || !is_digit(*first)) fail("a number");
    const auto [end, status] = std::from_chars(first, text_.data() + text_.size(), value);
    if (status != std::errc()) fail("a number of 64 bits");
    at_ += static_cast<std::size_t>(end - first);
    return value;
  }

  [[nodiscard]] Expr primary() {
    const char c = peek();
    if (is_digit(c)) return pool_.constant(number());
    if (accept("(")) {
      Expr inside = sum();
      expect(')');
      return inside;
    }
    if (accept("`")) {
      const std::size_t end = text_.find('`', at_);
      if (end == std::string_view::npos || end == at_) fail("a name and a closing backquote");
      Expr named = pool_.symbol(text_.substr(at_, end - at_));
      at_ = end + 1;
      return named;
    }
    if (!starts_name(c)) fail("a number, a name or '('");
    const std::size_t start = at_;
    while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if (peek() != '(') return pool_.symbol(name);
    for (const Function& function : kFunctions) {
      if (function.name == name) return call(function, start);
    }
    if (name == "where") {
      expect('(');
      return choice([&] { return sum(); });
    }
    if (name == "float") {
      expect('(');
      Expr inside = real_sum();
      expect(')');
      return inside;
    }
    for (const Named& row : kOfOne) {
      if (row.name == name) return call_of_one(row.kind, start);
    }
    at_ = start;
    fail("one of max, min, ceildiv");
  }

  // Behind "where(": a flag, and two numbers of one kind.
  template <typename Read>
  [[nodiscard]] Expr choice(const Read& read) {
    const std::size_t column = at_;
    Expr flag = sum();
    check_integer(flag, column);
    expect(',');
    Expr yes = read();
    expect(',');
    Expr no = read();
    expect(')');
    return pool_.where(flag, yes, no);
  }

  // What the pool refuses is reported with its column.
  template <typename Make>
  [[nodiscard]] Expr made(std::size_t column, const Make& make) {
    try {
      return make();
    } catch (const Error& error) {
      throw Error(ErrorCode::kParse, std::string(error.what()) + " (column " +
                                         std::to_string(column + 1) + " of \"" +
                                         std::string(text_) + "\")");
    }
  }

  [[nodiscard]] Expr call_of_one(ExprKind kind, std::size_t column) {
    expect('(');
    const bool of_integer = kind == ExprKind::kBitLength || kind == ExprKind::kPower2;
    Expr inside = of_integer ? sum() : real_sum();
    if (of_integer) check_integer(inside, column);
    expect(')');
    return made(column, [&] {
      return kind == ExprKind::kBitLength ? pool_.bit_length(inside)
             : kind == ExprKind::kPower2  ? pool_.power2(inside)
                                          : pool_.rounded(kind, inside);
    });
  }

  [[nodiscard]] Expr real_sum() {
    if (++depth_ > kMaxDepth) fail("at most 200 nested parentheses");
    Expr result = real_product();
    while (true) {
      if (accept("+")) {
        result = pool_.real_op(ExprKind::kRealAdd, result, real_product());
      } else if (accept("-")) {
        result = pool_.real_op(ExprKind::kRealSub, result, real_product());
      } else {
        --depth_;
        return result;
      }
    }
  }

  [[nodiscard]] Expr real_product() {
    Expr result = real_part();
    while (true) {
      if (accept("*")) {
        result = pool_.real_op(ExprKind::kRealMul, result, real_part());
      } else if (accept("/")) {
        result = pool_.real_op(ExprKind::kRealDiv, result, real_part());
      } else {
        return result;
      }
    }
  }

  [[nodiscard]] Expr real_part() {
    constexpr double kEndless = std::numeric_limits<double>::infinity();
    if (accept(kInfinite)) return pool_.real(kEndless);
    if (accept(kMinusInfinite)) return pool_.real(-kEndless);
    if (accept(kNotANumber)) return pool_.real(std::numeric_limits<double>::quiet_NaN());
    const char c = peek();
    if (is_digit(c) || c == '-') {
      double value = 0;
      const char* first = text_.data() + at_;
      const auto [end, status] = std::from_chars(first, text_.data() + text_.size(), value);
      if (status != std::errc()) fail("a number");
      at_ += static_cast<std::size_t>(end - first);
      return pool_.real(value);
    }
    if (accept("real(")) {
      Expr inside = sum();
      expect(')');
      return pool_.to_real(inside);
    }
    if (accept("sqrt(")) return real_call(ExprKind::kSqrt, false);
    if (accept("log(")) return real_call(ExprKind::kLog, false);
    if (accept("log2(")) return real_call(ExprKind::kLog2, false);
    if (accept("exp(")) return real_call(ExprKind::kExp, false);
    if (accept("where(")) return choice([&] { return real_sum(); });
    if (accept("pow(")) return real_call(ExprKind::kRealPow, true);
    if (accept("quotient(")) return real_call(ExprKind::kRealFloorDiv, true);
    if (accept("remainder(")) return real_call(ExprKind::kRealMod, true);
    if (accept("(")) {
      Expr inside = real_sum();
      expect(')');
      return inside;
    }
    return pool_.to_real(primary());
  }

  [[nodiscard]] Expr real_call(ExprKind kind, bool of_two) {
    Expr first = real_sum();
    Expr second = nullptr;
    if (of_two) {
      expect(',');
      second = real_sum();
    }
    expect(')');
    return pool_.real_op(kind, first, second);
  }

  [[nodiscard]] Expr call(const Function& function, std::size_t column) {
    expect('(');
    Expr result = sum();
    expect(',');
    result = apply(function.apply, result, sum(), column);
    while (function.variadic && accept(",")) result = apply(function.apply, result, sum(), column);
    expect(')');
    return result;
  }

  ExprPool& pool_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string ExprPool::to_string(Expr e) const {
  Printer printer(*this);
  printer.print(e);
  return printer.take();
}

Expr ExprPool::parse(std::string_view text) { return Parser(*this, text).parse(); }

}  // namespace fairlead
