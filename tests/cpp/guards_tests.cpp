// Tests of guards: where the other answer lies, and what a file requires.
#include "fairlead/experiment/guards.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "fairlead/base/error.h"

using fairlead::cause_of;
using fairlead::Compare;
using fairlead::ErrorCode;
using fairlead::Expr;
using fairlead::ExprPool;
using fairlead::Flip;
using fairlead::Program;
using fairlead::ProgramGuard;
using fairlead::SymbolKind;
using fairlead::SymbolRange;

namespace {

// A program over n and m whose one run answered these questions as they are given.
struct Asked {
  Program program;
  Expr n = program.graph.pool->symbol("n"), m = program.graph.pool->symbol("m");
  std::vector<SymbolRange> ranges = {{1, INT64_MAX}, {1, INT64_MAX}};

  Asked(std::int64_t n_size, std::int64_t m_size) {
    program.paths.push_back({{}, {n_size, m_size}});
  }
  void ask(Compare compare, Expr left, Expr right, bool answer) {
    program.paths[0].steps.push_back({program.guards.size(), answer});
    program.guards.push_back({compare, answer, left, right, {}, {}});
  }
  Expr number(std::int64_t value) { return program.graph.pool->constant(value); }
  [[nodiscard]] std::vector<Flip> flips() const { return fairlead::flips(program, ranges); }
};

}  // namespace

TEST_CASE("a threshold is a bound, and the nearest size beyond it is tried") {
  Asked asked(6, 9);
  asked.ask(Compare::kGreater, asked.n, asked.number(64), false);
  const auto found = asked.flips();
  REQUIRE(found.size() == 1);
  CHECK(found[0].setting == std::vector<std::int64_t>{65, 9});
  CHECK(found[0].symbol == 0);
  CHECK(found[0].bound);
  CHECK(found[0].key == "n > 64");
}

TEST_CASE("a threshold far away is found by the number in the question") {
  Asked asked(6, 9);
  asked.ask(Compare::kGreater, asked.n, asked.number(131072), false);
  const auto found = asked.flips();
  REQUIRE(found.size() == 1);
  CHECK(found[0].setting[0] == 131073);
}

TEST_CASE("a question has one form in every program, whatever the numbers of what was read there") {
  const auto form = [](const char* name, SymbolKind kind, bool outcome, std::int64_t number) {
    ExprPool pool;
    ProgramGuard guard;
    guard.left = pool.symbol(name, kind);
    guard.right = pool.constant(number);
    guard.outcome = outcome;
    return form_of(pool, guard);
  };
  const std::string one = form("read_3", SymbolKind::kRead, true, 1);
  CHECK(form("read_11", SymbolKind::kRead, true, 1) == one);
  CHECK(form("read_3", SymbolKind::kRead, false, 1) != one);
  CHECK(form("read_3", SymbolKind::kRead, true, 2) != one);
  CHECK(form("read_3", SymbolKind::kReadReal, true, 1) != one);
}

TEST_CASE("the cause of an error is what it says of itself, or all but the function") {
  CHECK(cause_of({ErrorCode::kIo,
                  "[write] Expected space, got none. Delete something.",
                  {},
                  "no space"}) == "no space");
  CHECK(cause_of({ErrorCode::kIo, "[write] Expected space, got none."}) ==
        "Expected space, got none.");
  CHECK(cause_of({ErrorCode::kIo, "x[0] is odd"}) == "x[0] is odd");
}

TEST_CASE("around the largest number there is nothing to look for") {
  Asked asked(6, 9);
  asked.ask(Compare::kLess, asked.n, asked.number(INT64_MAX), true);
  asked.ask(Compare::kGreater, asked.n, asked.number(INT64_MIN), true);
  CHECK(asked.flips().empty());
}

TEST_CASE("bounds of the user are not crossed") {
  Asked asked(6, 9);
  asked.ranges[0].max = 64;
  asked.ask(Compare::kGreater, asked.n, asked.number(64), false);
  CHECK(asked.flips().empty());
}

TEST_CASE("a hole is no bound") {
  Asked asked(6, 9);
  asked.ask(Compare::kEqual, asked.n, asked.number(37), false);
  const auto found = asked.flips();
  REQUIRE(found.size() == 1);
  CHECK(found[0].setting[0] == 37);
  CHECK_FALSE(found[0].bound);
}

TEST_CASE("of two sizes both are changed, to different ones") {
  Asked asked(6, 9);
  asked.ask(Compare::kLess, asked.n, asked.m, true);
  const auto found = asked.flips();
  REQUIRE(found.size() == 1);
  CHECK(found[0].setting[0] > found[0].setting[1]);
  CHECK(fairlead::require(asked.program, found[0]) == "n < m");
  const Expr holds = asked.program.graph.requirements.at(0).holds;
  const auto& pool = *asked.program.graph.pool;
  CHECK(pool.evaluate(holds, std::vector<std::int64_t>{3, 4}) == 1);
  CHECK(pool.evaluate(holds, std::vector<std::int64_t>{4, 4}) == 0);
}

TEST_CASE("of two sizes one may have to be far away") {
  Asked asked(6, 9);
  ExprPool& pool = *asked.program.graph.pool;
  const Expr k =
      pool.add(pool.floordiv(asked.n, asked.number(100)), pool.floordiv(asked.m, asked.number(8)));
  asked.ask(Compare::kLess, k, asked.number(40), true);
  const auto found = asked.flips();
  REQUIRE(found.size() == 1);
  CHECK(found[0].setting == std::vector<std::int64_t>{6, 320});
  CHECK(found[0].symbol == -1);
  CHECK_FALSE(found[0].bound);
}

TEST_CASE("more questions than can be tried are not left out in silence") {
  Asked asked(5, 9);
  ExprPool& pool = *asked.program.graph.pool;
  // No two of them differ by one number alone: they are no steps of a loop.
  for (std::int64_t k = 2; k < 80; ++k) {
    const Expr rest = pool.mod(pool.floordiv(asked.n, asked.number(k)), asked.number(k * k + 1));
    asked.ask(Compare::kEqual, rest, asked.number(k), false);
  }
  const auto found = asked.flips();
  REQUIRE(found.size() > 60);
  CHECK(found.back().rest);
  CHECK(found.back().symbol == 0);
  CHECK(std::none_of(found.begin(), found.end() - 1, [](const Flip& flip) { return flip.rest; }));
}

TEST_CASE("behind a question with both answers each side is explored by itself") {
  // k = n // 4; a loop runs min(k, 4) times: 4 < k, or k == 4.
  Asked asked(33, 9);
  const Expr k = asked.program.graph.pool->floordiv(asked.n, asked.number(4));
  asked.ask(Compare::kLess, asked.number(4), k, true);
  asked.program.paths.push_back({{{0, false}, {1, true}}, {19, 9}});
  asked.program.guards[0].both = true;
  asked.program.guards.push_back({Compare::kEqual, true, k, asked.number(4), {}, {}});
  const auto found = asked.flips();
  REQUIRE_FALSE(found.empty());
  CHECK(std::all_of(found.begin(), found.end(), [](const Flip& flip) {
    return flip.guard == 1 && flip.setting[0] < 16 && !flip.bound;
  }));
  CHECK(fairlead::require(asked.program, found[0]) == "not (4 >= n//4 and n//4 != 4)");
  const Expr holds = asked.program.graph.requirements.at(0).holds;
  const auto& pool = *asked.program.graph.pool;
  for (const auto& [size, expected] : {std::pair{33, 1}, {19, 1}, {15, 0}, {1, 0}}) {
    CHECK(pool.evaluate(holds, std::vector<std::int64_t>{size, 9}) == expected);
  }
}

TEST_CASE("two expressions that fit are told apart where they differ") {
  Asked asked(6, 9);
  fairlead::ProgramGuard rival;
  rival.left = asked.program.graph.pool->parse("min(n, 8)");
  rival.right = asked.n;
  rival.rival = true;
  asked.program.guards.push_back(rival);
  const auto found = asked.flips();
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].setting[0] == 9);
}
