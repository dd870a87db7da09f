// Tests of expressions: normal form, text, evaluation, substitution, and what is refused.
#include "fairlead/symbol/equal.h"
#include "fairlead/symbol/expr.h"

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <string>

#include "fairlead/base/error.h"

using fairlead::Error;
using fairlead::ErrorCode;
using fairlead::Expr;
using fairlead::ExprPool;

namespace {

[[nodiscard]] std::string normal(ExprPool& pool, const char* text) {
  return pool.to_string(pool.parse(text));
}

template <class F>
void check_error(F&& call, ErrorCode code, const std::string& message) {
  try {
    call();
    FAIL("expected an error: " << message);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK(std::string(error.what()) == message);
  }
}

}  // namespace

TEST_CASE("equal expressions are one pointer") {
  ExprPool pool;
  Expr a = pool.symbol("a"), b = pool.symbol("b");
  CHECK(pool.symbol("a") == a);
  CHECK(pool.add(a, b) == pool.add(b, a));
  CHECK(pool.mul(a, b) == pool.mul(b, a));
  CHECK(pool.sub(pool.mul(pool.add(a, b), pool.constant(2)), pool.mul(pool.constant(2), b)) ==
        pool.mul(pool.constant(2), a));
  CHECK(pool.sub(a, a) == pool.constant(0));
  CHECK(fairlead::is_const(pool.sub(a, a), 0));
  const std::array<Expr, 3> factors = {a, b, a};
  CHECK(pool.product(factors) == pool.parse("a*a*b"));
  CHECK(pool.product({}) == pool.constant(1));
}

TEST_CASE("normal forms print the way a person would write them") {
  struct Row {
    const char* given;
    const char* printed;
  };
  const Row rows[] = {
      {"batch*sequence", "batch*sequence"},
      {"1 + past*2", "2*past + 1"},
      {"sequence - 1", "sequence - 1"},
      {"-a", "-a"},
      {"-a - 3", "-a - 3"},
      {"0*a", "0"},
      {"7", "7"},
      {"-7", "-7"},
      {"(a + b)*(a - b)", "a*a - b*b"},
      {"a**3", "a*a*a"},
      {"a + a*b + 5 + b*b", "a*b + b*b + a + 5"},
      {"(4*a)//2", "2*a"},
      {"(4*a + 2*b + 7)//2", "2*a + b + 3"},
      {"(h - 3)//2 + 1", "ceildiv(h, 2) - 1"},
      {"(h - 1)//2", "ceildiv(h, 2) - 1"},
      {"h//14*(w//14) + 1", "(h//14)*(w//14) + 1"},
      {"2*(h//14)", "2*(h//14)"},
      {"-(h//14)", "-(h//14)"},
      {"(h//2)//3", "h//6"},
      {"(h//2 + 1)//3", "(h + 2)//6"},
      {"(6*h + 4*w)//8", "(3*h + 2*w)//4"},
      {"ceildiv(s, 64)*64", "64*ceildiv(s, 64)"},
      {"-((-s)//64)", "ceildiv(s, 64)"},
      {"min(s, 7*ceildiv(s, 7))", "s"},
      {"max(s, 7*ceildiv(s, 7))", "7*ceildiv(s, 7)"},
      {"min(s, 7*(s//7))", "7*(s//7)"},
      {"min(5*ceildiv(s, 10), ceildiv(s, 2))", "ceildiv(s, 2)"},
      {"min(s + 1, 7*ceildiv(s, 7))", "min(s + 1, 7*ceildiv(s, 7))"},
      {"(s + 63)//64", "ceildiv(s, 64)"},
      {"(s + 5)//64", "(s + 5)//64"},
      {"s//-2", "-ceildiv(s, 2)"},
      {"ceildiv(a, b)", "ceildiv(a, b)"},
      {"3 - 2*ceildiv(a + 1, b)", "-2*ceildiv(a + 1, b) + 3"},
      {"(a*b)//b", "a"},
      {"(a*b + a*c)//(b + c)", "a"},
      {"(2*a*b + c)//b", "2*a + c//b"},
      {"(a*c)//(b*c)", "a//b"},
      {"(6*a)//(4*b)", "(3*a)//(2*b)"},
      {"a%1", "0"},
      {"(4*a)%4", "0"},
      {"(5*a + 9)%4", "(a + 1)%4"},
      {"(6*a)%4", "2*(a%2)"},
      {"(-s)%64", "(-s)%64"},
      {"(a%8)%4", "a%4"},
      {"(a%4)//4", "0"},
      {"(a*b + c)%b", "c%b"},
      {"a%-3", "-((-a)%3)"},
      {"min(8, s)", "min(s, 8)"},
      {"max(a, max(3, b), 5)", "max(a, b, 5)"},
      {"max(a, a + 1)", "a + 1"},
      {"min(a, a + 1)", "a"},
      {"max(a, min(a, b))", "a"},
      {"max(2, 3)*min(2, 3)", "6"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"FloorDiv(Max(1, a), 2)", "max(a, 1)//2"},
      {"`two words` + past_key_values.0.key", "`two words` + past_key_values.0.key"},
  };
  for (const Row& row : rows) {
    ExprPool pool;
    CAPTURE(std::string(row.given));
    CHECK(normal(pool, row.given) == row.printed);
    CHECK(pool.parse(row.printed) == pool.parse(row.given));
  }
}

TEST_CASE("a symbol keeps the kind of its first use") {
  ExprPool pool;
  Expr count = pool.symbol("count", fairlead::SymbolKind::kData);
  CHECK(pool.symbol("count") == count);
  REQUIRE(pool.symbols().size() == 1);
  CHECK(pool.symbols()[0].kind == fairlead::SymbolKind::kData);
  CHECK(pool.symbols()[0].name == "count");
}

TEST_CASE("evaluation rounds as Python does") {
  ExprPool pool;
  (void)pool.symbol("a");
  (void)pool.symbol("b");
  const std::array<std::int64_t, 2> values = {-7, 4};
  CHECK(pool.evaluate(pool.parse("a//b"), values) == -2);
  CHECK(pool.evaluate(pool.parse("a%b"), values) == 1);
  CHECK(pool.evaluate(pool.parse("b//a"), values) == -1);
  CHECK(pool.evaluate(pool.parse("b%a"), values) == -3);
  CHECK(pool.evaluate(pool.parse("a//2"), values) == -4);
  CHECK(pool.evaluate(pool.parse("ceildiv(a, b)"), values) == -1);
  CHECK(pool.evaluate(pool.parse("max(a, b, 5) - min(a, b)"), values) == 12);
  CHECK(pool.evaluate(pool.parse("a*a*b + 3*a - 1"), values) == 174);
}

TEST_CASE("substitution replaces symbols and keeps the others") {
  ExprPool pool;
  Expr a = pool.symbol("a"), b = pool.symbol("b");
  Expr e = pool.parse("max(a//2, b) + a*b + (a + b)%3");
  const std::array<Expr, 1> map = {pool.mul(b, pool.constant(2))};
  CHECK(pool.substitute(e, map) == pool.parse("b + 2*b*b + 0"));
  CHECK(pool.substitute(e, {}) == e);
  const std::array<Expr, 2> numbers = {pool.constant(4), pool.constant(5)};
  CHECK(pool.substitute(e, numbers) == pool.constant(25));
  CHECK(pool.symbols_of(e) == std::vector<fairlead::SymbolId>{0, 1});
  CHECK(pool.symbols_of(pool.constant(3)).empty());
  CHECK(pool.symbols_of(pool.add(a, a)) == std::vector<fairlead::SymbolId>{0});
}

TEST_CASE("what cannot be computed is refused with a sentence") {
  ExprPool pool;
  Expr a = pool.symbol("a"), b = pool.symbol("b");
  const std::array<std::int64_t, 2> values = {3, 0};
  const auto invalid = ErrorCode::kInvalidInput;
  check_error([&] { (void)pool.evaluate(pool.floordiv(a, b), values); }, invalid,
              "[evaluate] Expected a divisor other than 0, got b = 0 in a//b.");
  check_error([&] { (void)pool.evaluate(b, std::span(values).first(1)); }, invalid,
              "[evaluate] Expected a value for symbol 'b', got values for 1 symbols only.");
  check_error([&] { (void)pool.floordiv(a, pool.constant(0)); }, invalid,
              "[floordiv] Expected a divisor other than 0, got 0.");
  check_error([&] { (void)pool.mod(a, pool.constant(0)); }, invalid,
              "[mod] Expected a divisor other than 0, got 0.");
  check_error([&] { (void)pool.symbol(""); }, invalid,
              "[symbol] Expected a name without backquotes, got ''.");
  check_error([&] { (void)pool.mul(pool.constant(INT64_MAX), pool.constant(2)); }, invalid,
              "[mul] Expected integers of 64 bits, got an overflow.");
  check_error([&] { (void)pool.neg(pool.constant(INT64_MIN)); }, invalid,
              "[mul] Expected integers of 64 bits, got an overflow.");
  const std::array<std::int64_t, 2> huge = {INT64_MAX, INT64_MAX};
  check_error([&] { (void)pool.evaluate(pool.add(a, b), huge); }, invalid,
              "[evaluate] Expected integers of 64 bits, got an overflow.");
}

TEST_CASE("text that is no expression is refused with its column") {
  ExprPool pool;
  const auto check = [&](const char* text, const std::string& message) {
    check_error([&] { (void)pool.parse(text); }, ErrorCode::kParse, message);
  };
  check("", "[parse] Expected a number, a name or '(' at column 1 of \"\", got the end.");
  check("a + ", "[parse] Expected a number, a name or '(' at column 5 of \"a + \", got the end.");
  check("a b", "[parse] Expected an operator or the end at column 3 of \"a b\", got 'b'.");
  check("(a", "[parse] Expected ')' at column 3 of \"(a\", got the end.");
  check("f(a, 2)",
        "[parse] Expected one of max, min, ceildiv at column 1 of \"f(a, 2)\", got 'f'.");
  check("max(a)", "[parse] Expected ',' at column 6 of \"max(a)\", got ')'.");
  check("a/2", "[parse] Expected an operator or the end at column 2 of \"a/2\", got '/'.");
  check("99999999999999999999",
        "[parse] Expected a number of 64 bits at column 1 of \"99999999999999999999\", got '9'.");
  check("a + b//0",
        "[floordiv] Expected a divisor other than 0, got 0. (column 6 of \"a + b//0\")");
  check("`a", "[parse] Expected a name and a closing backquote at column 2 of \"`a\", got 'a'.");
  CHECK_THROWS_AS((void)pool.parse(std::string(5000, '(')), Error);
  for (const char* floats :
       {"a +- float(b)%6", "float(a) + 1", "2*float(a)", "float(a)//2", "max(float(a), 1)",
        "float(a)**2", "-float(a)", "where(float(a), 1, 2)", "bit_length(float(a))"}) {
    CHECK_THROWS_AS((void)pool.parse(floats), Error);
  }
  CHECK(pool.to_string(pool.parse("less(float(a), float(0.5))")) != "");
  CHECK_THROWS_AS((void)pool.parse(std::string("a\0b", 3)), Error);
  std::string wide = "1";
  for (char c = 'a'; c <= 'z'; ++c) wide += std::string("*(1 + ") + c + ")";
  CHECK_THROWS_AS((void)pool.parse(wide), Error);
}

namespace {

// An expression and, beside it, its value computed with no normal form in between.
struct Built {
  Expr expr;
  std::int64_t value;
};

[[nodiscard]] std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

[[nodiscard]] Built build(ExprPool& pool, std::mt19937& random, std::span<const Expr> symbols,
                          std::span<const std::int64_t> values, int depth) {
  const auto pick = [&](int count) { return static_cast<int>(random() % count); };
  if (depth == 0 || pick(6) == 0) {
    if (pick(3) == 0) {
      const std::int64_t c = pick(17) - 8;
      return {pool.constant(c), c};
    }
    const auto i = static_cast<std::size_t>(pick(static_cast<int>(symbols.size())));
    return {symbols[i], values[i]};
  }
  const Built a = build(pool, random, symbols, values, depth - 1);
  const Built b = build(pool, random, symbols, values, depth - 1);
  const std::int64_t k = pick(9) + 1;
  const std::int64_t signed_k = pick(4) == 0 ? -k : k;
  switch (pick(12)) {
    case 0:
    case 1:
      return {pool.add(a.expr, b.expr), a.value + b.value};
    case 10: {  // a choice by a remainder that stands in both of its sides
      const std::int64_t by = pick(2) + 2, is = pick(2);
      const Expr left = pool.mod(a.expr, pool.constant(by));
      const std::int64_t rest = a.value - by * floor_of(a.value, by);
      return {pool.where(pool.same(left, pool.constant(is)), pool.add(b.expr, left),
                         pool.max(pool.sub(pool.constant(3), left), pool.constant(0))),
              rest == is ? b.value + rest : std::max<std::int64_t>(3 - rest, 0)};
    }
    case 2:
      return {pool.sub(a.expr, b.expr), a.value - b.value};
    case 3:
      return {pool.mul(a.expr, b.expr), a.value * b.value};
    case 4:
      return {pool.floordiv(a.expr, pool.constant(signed_k)), floor_of(a.value, signed_k)};
    case 5:
      return {pool.ceildiv(a.expr, pool.constant(k)), -floor_of(-a.value, k)};
    case 6:
      return {pool.mod(a.expr, pool.constant(signed_k)),
              a.value - signed_k * floor_of(a.value, signed_k)};
    case 7:
      return {pool.max(a.expr, b.expr), std::max(a.value, b.value)};
    case 8:
      return {pool.min(a.expr, b.expr), std::min(a.value, b.value)};
    case 9:
      if (b.value == 0) return a;
      return {pool.floordiv(a.expr, b.expr), floor_of(a.value, b.value)};
    default:
      if (b.value == 0) return a;
      return {pool.mod(a.expr, b.expr), a.value - b.value * floor_of(a.value, b.value)};
  }
}

}  // namespace

TEST_CASE("random expressions keep their value through normal form, text and substitution") {
  std::mt19937 random(7);
  int checked = 0;
  for (int round = 0; round < 4000; ++round) {
    ExprPool pool;
    const std::array<Expr, 3> symbols = {pool.symbol("a"), pool.symbol("b"), pool.symbol("c")};
    std::array<std::int64_t, 3> values{};
    for (std::int64_t& value : values) value = static_cast<std::int64_t>(random() % 19) - 4;
    try {
      const Built built = build(pool, random, symbols, values, 4);
      const std::string text = pool.to_string(built.expr);
      CAPTURE(text);
      REQUIRE(pool.evaluate(built.expr, values) == built.value);
      Expr again = pool.parse(text);
      REQUIRE(pool.to_string(again) == text);
      REQUIRE(again == built.expr);
      REQUIRE(pool.substitute(built.expr, symbols) == built.expr);
      ++checked;
    } catch (const Error&) {
      // A divisor that became 0 on the way, or a product beyond 64 bits.
    }
  }
  CHECK(checked > 3000);
}

TEST_CASE("padding to as many windows as fit, written with a remainder, is a plain quotient") {
  ExprPool pool;
  Expr size = pool.symbol("n");
  for (int layer = 0; layer < 5; ++layer) {  // a stride of 2 and a kernel of 3, as TensorFlow pads
    const Expr two = pool.constant(2), rest = pool.mod(size, two);
    const Expr odd = pool.max(pool.sub(pool.constant(3), rest), pool.constant(0));
    const Expr padding = pool.where(pool.same(rest, pool.constant(0)), pool.constant(1), odd);
    CHECK(padding == pool.add(rest, pool.constant(1)));
    const Expr windows = pool.floordiv(pool.sub(pool.add(size, padding), pool.constant(3)), two);
    size = pool.add(windows, pool.constant(1));
  }
  CHECK(pool.to_string(size) == "ceildiv(n, 32)");
  CHECK(pool.to_string(pool.max(pool.mod(size, pool.constant(4)), pool.constant(-1))) ==
        "(ceildiv(n, 32))%4");
}

TEST_CASE("what pads to a multiple is that multiple, however it is written") {
  ExprPool pool;
  Expr n = pool.symbol("n"), eight = pool.constant(8), four = pool.constant(4);
  const Expr left = pool.mod(n, eight);
  CHECK(pool.mod(left, four) == pool.mod(n, four));
  CHECK(pool.mod(pool.neg(left), four) == pool.mod(pool.neg(n), four));
  CHECK(pool.mod(pool.sub(four, pool.mod(n, four)), four) == pool.mod(pool.neg(n), four));
  CHECK(pool.to_string(pool.mod(pool.mod(n, four), eight)) == "n%4");
  CHECK(pool.to_string(pool.mod(pool.add(pool.mod(n, four), pool.constant(1)), four)) ==
        "(n + 1)%4");
  const Expr padded = pool.add(n, pool.mod(pool.neg(n), four));
  CHECK(equal(pool, padded, pool.mul(four, pool.ceildiv(n, four))));
  CHECK(equal(pool, pool.mul(n, padded), pool.mul(pool.mul(n, four), pool.ceildiv(n, four))));
  CHECK_FALSE(equal(pool, padded, pool.mul(four, pool.floordiv(n, four))));
}

TEST_CASE("numbers that went through floats compute as Python does") {
  ExprPool pool;
  Expr n = pool.symbol("n");
  const std::int64_t sizes[] = {100};
  const auto part = [&](double factor) {
    return pool.rounded(fairlead::ExprKind::kTrunc,
                        pool.real_op(fairlead::ExprKind::kRealMul, n, pool.real(factor)));
  };
  CHECK(pool.evaluate(part(0.29), sizes) == 28);  // 0.29 * 100 is 28.999999999999996
  CHECK(pool.evaluate(part(0.3), sizes) == 30);
  const auto quotient = pool.real_op(fairlead::ExprKind::kRealDiv, n, pool.real(3));
  CHECK(pool.rounded(fairlead::ExprKind::kCeil, quotient) == pool.parse("ceildiv(n, 3)"));
  CHECK(pool.rounded(fairlead::ExprKind::kFloor, quotient) == pool.parse("n//3"));
  CHECK(pool.evaluate(pool.rounded(fairlead::ExprKind::kRound, quotient), sizes) == 33);
  const std::int64_t five[] = {5};
  CHECK(pool.evaluate(pool.parse("round(n/2.0)"), five) == 2);  // to the even one
}

TEST_CASE("quotients and remainders of floats are Python's") {
  ExprPool pool;
  Expr n = pool.symbol("n");
  const auto of = [&](fairlead::ExprKind kind, double a, double b) {
    return pool.real_op(kind, pool.real_op(fairlead::ExprKind::kRealMul, n, pool.real(a)),
                        pool.real(b));
  };
  using enum fairlead::ExprKind;
  const std::int64_t one[] = {1}, ten[] = {10};
  CHECK(pool.evaluate_real(of(kRealFloorDiv, 1.0, 0.1), one) ==
        9);  // 1.0 // 0.1, and 1.0/0.1 is 10
  CHECK(pool.evaluate_real(of(kRealMod, 1.0, 0.1), one) == 0.09999999999999995);
  CHECK(pool.evaluate_real(of(kRealFloorDiv, -0.7, 1.5), ten) == -5);
  CHECK(pool.evaluate_real(of(kRealMod, -0.7, 1.5), ten) == 0.5);
  CHECK(pool.evaluate_real(of(kRealMod, 0.7, -1.5), ten) == -0.5);
  // Of whole numbers they are those of integers.
  CHECK(pool.to_string(pool.rounded(kTrunc, of(kRealFloorDiv, 40.0, 256.0))) == "(5*n)//32");
}

TEST_CASE("real numbers, comparisons and powers of two print and read back") {
  ExprPool pool;
  for (const char* text :
       {"floor(n*0.3)", "round(n/3.0)", "trunc(sqrt(real(n - m)) + 0.5)", "ceil(pow(n, 0.5))",
        "2*less(n, 5) + 1", "where(less(n, 5), n + 1, 3*m)", "same(n, m)",
        "power2(bit_length(n - 1))", "floor(quotient(n, 0.3))", "ceil(remainder(n*0.7, 1.5))",
        "floor((n + 1.5)*real(2*m))", "float(n/7.0)", "floor(log(n))",
        "less(float(real(2*n)), float(m/3.0))"}) {
    CAPTURE(text);
    const Expr e = pool.parse(text);
    CHECK(pool.parse(pool.to_string(e)) == e);
  }
  const std::int64_t values[] = {7, 3};
  (void)pool.symbol("n");
  CHECK(pool.evaluate(pool.parse("less(m, n)*2 + same(n, 7)"), values) == 3);
  CHECK(pool.evaluate(pool.parse("power2(bit_length(n - 1))"), values) == 8);
}

TEST_CASE("numbers that are not finite are no names") {
  for (const char* text : {"round(n - 1/0.0) + t", "round(n*(-1/0.0))", "trunc(0.0/0.0 + inf)"}) {
    ExprPool pool;
    const std::string written = pool.to_string(pool.parse(text));
    CHECK(pool.to_string(pool.parse(written)) == written);
  }
  ExprPool pool;
  CHECK(pool.to_string(pool.parse("round(n - 1/0.0)")) == "round(n - endless())");
  const std::string sum = pool.to_string(pool.parse("-round(n - 5/0.0) + -round(n - 0/0.0)"));
  CHECK(pool.to_string(pool.parse(sum)) == sum);
  CHECK(pool.to_string(pool.parse("inf + 1")) == "inf + 1");
}
