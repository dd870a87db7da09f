// How checks that differ are judged: every excuse, and the difference just beyond it. What a driver
// would measure is written down here.
#include "fairlead/experiment/judging.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "fairlead/experiment/describe.h"
#include "fairlead/experiment/program_checks.h"

using namespace fairlead;

namespace {

using Kind = Check::Kind;
using How = Check::How;
using Outcome = Checked::Outcome;
using What = Look::What;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// A file, a model and what there is to know of them.
struct Bench {
  std::function<Checked(const Check&)> measures;
  std::function<Looked(const Look&)> finds = [](const Look&) { return Looked{}; };
  Asking asking = {};
  Ledger ledger = {};
  Judge judge{asking, ledger};
  int checks = 0;
  std::vector<What> looks = {};

  template <typename T>
  T drive(Task<T> task) {
    task.start();
    for (int turn = 0; !task.done(); ++turn) {
      REQUIRE(turn < 100);
      const Step step = asking.step_;
      if (const auto* look = std::get_if<Look>(&step)) {
        looks.push_back(look->what);
        asking.take(finds(*look), 0);
      } else {
        ++checks;
        asking.take(measures(std::get<Check>(step)), 0);
      }
    }
    return task.result();
  }

  Judged judged(Kind kind) {
    Check check;
    check.kind = kind;
    return drive(judge.judge(check));
  }

  Finding finding(Kind kind) {
    const Judged found = judged(kind);
    REQUIRE(found.verdict == Verdict::kDiffers);
    return drive(judge.finding(found));
  }

  [[nodiscard]] Reserves said() const { return reserves(ledger.facts(), judge.file()); }
  // What the contract says of the file; nothing, or one note.
  [[nodiscard]] std::string note() const {
    const Reserves found = said();
    REQUIRE(found.assumed.empty());
    REQUIRE(found.notes.size() <= 1);
    return found.notes.empty() ? "" : found.notes[0];
  }
};

// y differs by 0.5 where 0.0001 of 1 is allowed.
Checked differing() {
  Checked found;
  found.outcome = Outcome::kDiffers;
  found.number = 3;
  found.at = "batch = 3";
  found.output = "y";
  found.text = "differs by 0.5 (scaled), more than 0.0001";
  found.abs = 0.5;
  found.scale = 1;
  found.tolerance = 1e-4;
  return found;
}

Checked failing() {
  Checked found = differing();
  found.outcome = Outcome::kFailed;
  found.text = "cannot be computed: no such row";
  found.abs = kInfinite;
  return found;
}

Checked of(Outcome outcome) {
  Checked found;
  found.outcome = outcome;
  found.at = "batch = 3";
  return found;
}

Bench always(const Checked& checked) {
  return {[checked](const Check&) { return checked; }};
}

// One measurement for the call itself, another for the same in this way.
Bench otherwise(const Checked& own, How how, const Checked& other) {
  return {[=](const Check& check) { return check.how == how ? other : own; }};
}

Looked moved(double by) {
  Looked found;
  found.moved = by;
  return found;
}

Looked branch(bool published) {
  Looked found;
  found.parted = true;
  found.published = published;
  found.before = "aten.relu.default";
  found.now = "aten.tanh.default";
  found.source = "package/model.py:7";
  return found;
}

}  // namespace

TEST_CASE("what is equal is right, and nothing is asked") {
  Bench bench = always(of(Outcome::kEqual));
  CHECK(bench.judged(Kind::kValues).verdict == Verdict::kRight);
  CHECK(bench.checks == 1);
  CHECK(bench.looks.empty());
  CHECK(bench.ledger.facts().empty());
}

TEST_CASE("integers beyond 2^53 that were made up are excused, once for an output") {
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  const auto checked = [](std::int64_t least, std::int64_t most) {
    Checked found = differing();
    found.least = least;
    found.most = most;
    return found;
  };
  for (const Kind kind : {Kind::kValues, Kind::kSizes}) {
    Bench bench = always(checked(0, exact + 1));
    const Judged judged = bench.judged(kind);
    CHECK(judged.verdict == Verdict::kRight);
    CHECK(judged.excuse == Why::kOverflows);
    CHECK(bench.looks.empty());
    CHECK(bench.judged(kind).verdict == Verdict::kRight);
    CHECK(bench.note() == "y is exact up to 2^53");
  }
  CHECK(always(checked(-exact - 1, 0)).judged(Kind::kSizes).verdict == Verdict::kRight);
  // What a double holds is no excuse, nor is it for a call of the user's, nor for another shape.
  CHECK(always(checked(-exact, exact)).judged(Kind::kSizes).verdict == Verdict::kDiffers);
  CHECK(always(checked(0, exact + 1)).judged(Kind::kCall).verdict == Verdict::kDiffers);
  Checked shape = checked(0, exact + 1);
  shape.abs = kInfinite;
  CHECK(always(shape).judged(Kind::kSizes).verdict == Verdict::kDiffers);
}

TEST_CASE("a difference that rounding the inputs otherwise makes is excused") {
  Checked checked = differing();
  checked.abs = 0.008;  // 80 times the tolerance
  Bench bench = always(checked);
  bench.finds = [](const Look&) { return moved(0.002); };
  const Judged judged = bench.judged(Kind::kCall);
  CHECK(judged.verdict == Verdict::kRight);
  CHECK(judged.excuse == Why::kRounds);
  CHECK(bench.looks == std::vector<What>{What::kRounded});
  REQUIRE(bench.ledger.facts().size() == 1);
  const Fact& fact = bench.ledger.facts()[0];
  CHECK(fact.kind == FactKind::kUnproven);
  CHECK(fact.evidence.why == Why::kRounds);
  CHECK(fact.evidence.differs == 0.008);
  CHECK(fact.evidence.moves == 0.002);
  CHECK(bench.note() ==
        "y differs by 0.008 at batch = 3; eager itself by 0.002 where its inputs are rounded "
        "otherwise");
}

TEST_CASE("rounding is no excuse beyond its limits") {
  struct Row {
    const char* what;
    std::function<void(Checked&)> change;
    double moves;
    bool right, looks;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Row rows[] = {
      {"the limit", [](Checked& c) { c.abs = 100 * c.tolerance * c.scale; }, 1, true, true},
      {"more than 100 times the tolerance", [](Checked& c) { c.abs = 0.010001; }, 1, false, false},
      {"a quarter", [](Checked& c) { c.abs = 0.008; }, 0.002, true, true},
      {"less than a quarter", [](Checked& c) { c.abs = 0.008; }, 0.001999, false, true},
      {"NaN", [](Checked& c) { c.abs = 0.008; }, nan, false, true},
      {"nothing", [](Checked& c) { c.abs = 0; }, 1, false, false},
      {"a scale of the inputs'", [](Checked& c) { c.abs = 0.02, c.inputs = 2048; }, 1, true, true},
      {"too small a scale of the inputs'", [](Checked& c) { c.abs = 0.020001, c.inputs = 2048; }, 1,
       false, false},
      {"a tolerance of the user's", [](Checked& c) { c.abs = 0.008, c.told = true; }, 1, false,
       false},
      {"NaN on one side", [](Checked& c) { c.abs = 0.008, c.not_finite = true; }, 1, false, false},
      {"another number of outputs", [](Checked& c) { c.abs = 0.008, c.output = ""; }, 1, false,
       false},
      {"another shape", [](Checked& c) { c.abs = kInfinite; }, kInfinite, false, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    Checked checked = differing();
    row.change(checked);
    Bench bench = always(checked);
    bench.finds = [&](const Look&) { return moved(row.moves); };
    CHECK((bench.judged(Kind::kCall).verdict == Verdict::kRight) == row.right);
    CHECK(!bench.looks.empty() == row.looks);
    CHECK(bench.note().empty() == !row.right);
  }
  Checked checked = differing();
  checked.abs = 0.008;
  Bench bench = always(checked);
  bench.finds = [](const Look&) {
    Looked found = moved(1);
    found.known = false;
    return found;
  };
  CHECK(bench.judged(Kind::kCall).verdict == Verdict::kDiffers);
}

TEST_CASE("at other sizes a tie is excused where eager itself jumps at each element") {
  Checked checked = differing();
  checked.abs = 6;
  const auto found = [&](double moves, double ratio, Kind kind = Kind::kSizes, bool told = false) {
    checked.told = told;
    Bench bench = always(checked);
    bench.finds = [=](const Look& look) {
      Looked looked;
      if (look.what != What::kTied) return looked;
      looked.moved = moves;
      looked.ratio = ratio;
      return looked;
    };
    const Judged judged = bench.judged(kind);
    CHECK((judged.excuse == Why::kJumps) == (judged.verdict == Verdict::kRight));
    CHECK(bench.note().empty() == (judged.verdict != Verdict::kRight));
    return judged.verdict;
  };
  CHECK(found(6, 1) == Verdict::kRight);
  CHECK(found(6, 4) == Verdict::kRight);
  CHECK(found(6, 4.1) == Verdict::kDiffers);
  CHECK(found(6, kInfinite) == Verdict::kDiffers);  // an element at which eager stays as it is
  CHECK(found(0, 0) == Verdict::kDiffers);
  CHECK(found(6, std::numeric_limits<double>::quiet_NaN()) == Verdict::kDiffers);
  // Not for a call of the user's, nor for a tolerance of the user's.
  CHECK(found(6, 1, Kind::kCall) == Verdict::kDiffers);
  CHECK(found(6, 1, Kind::kSizes, true) == Verdict::kDiffers);
}

TEST_CASE("where eager refuses integers that were made up, those of the example stand for them") {
  Bench bench = otherwise(of(Outcome::kRefused), How::kExampleIntegers, of(Outcome::kEqual));
  const Judged judged = bench.judged(Kind::kSizes);
  CHECK(judged.verdict == Verdict::kRight);
  CHECK(judged.check.how == How::kExampleIntegers);
  CHECK(bench.checks == 2);
  CHECK(bench.note().empty());
  // Other values are tried in parts instead.
  bench.checks = 0;
  CHECK(bench.judged(Kind::kValues).verdict == Verdict::kRefused);
  CHECK(bench.checks == 1);
  CHECK(bench.note().empty());
  // With the example's integers there are none to try.
  Bench wrong = otherwise(of(Outcome::kRefused), How::kExampleIntegers, failing());
  CHECK(wrong.judged(Kind::kSizes).verdict == Verdict::kDiffers);
  CHECK(wrong.checks == 2);
}

TEST_CASE("sizes that eager refuses are said") {
  Bench bench = always(of(Outcome::kRefused));
  CHECK(bench.judged(Kind::kSizes).verdict == Verdict::kRefused);
  CHECK(bench.judged(Kind::kSizes).verdict == Verdict::kRefused);
  CHECK(bench.note() == "eager itself refuses batch = 3");
}

TEST_CASE("of many sizes that eager refuses some are named") {
  std::vector<Fact> facts;
  for (int n = 1; n < 7; ++n) {
    Fact fact;
    fact.kind = FactKind::kUnproven;
    fact.size = 0;
    fact.evidence.why = Why::kRefused;
    fact.evidence.at = "n = " + std::to_string(n);
    facts.push_back(fact);
  }
  const std::vector<std::string> words = {
      "eager itself refuses n = 1; n = 2; n = 3; n = 4 and 2 more"};
  CHECK(reserves(facts, 0).notes == words);
}

TEST_CASE("other integers may stop the file, which is said once of a program") {
  Bench bench = otherwise(failing(), How::kExampleIntegers, of(Outcome::kEqual));
  CHECK(bench.judged(Kind::kSizes).verdict == Verdict::kRight);
  CHECK(bench.judged(Kind::kSizes).verdict == Verdict::kRight);
  CHECK(bench.looks.empty());
  CHECK(bench.note() == "with other integers at batch = 3, y cannot be computed: no such row");
  for (const Outcome outcome :
       {Outcome::kDiffers, Outcome::kFailed, Outcome::kStopped, Outcome::kRefused}) {
    Bench wrong = otherwise(failing(), How::kExampleIntegers, of(outcome));
    CHECK(wrong.judged(Kind::kSizes).verdict == Verdict::kDiffers);
    CHECK(wrong.note().empty());
  }
  // A file that computes something else is wrong, whatever it computes with the example's.
  Bench wrong = otherwise(differing(), How::kExampleIntegers, of(Outcome::kEqual));
  CHECK(wrong.judged(Kind::kSizes).verdict == Verdict::kDiffers);
  CHECK(wrong.checks == 1);
}

TEST_CASE("integers that lead elsewhere in a package are an assumption, once for a line") {
  const auto finds = [](bool published, bool by_sizes) {
    return [=](const Look& look) {
      const bool parts = look.at.how == How::kOwn || by_sizes;
      return look.what == What::kOperators && parts ? branch(published) : Looked{};
    };
  };
  Bench bench = otherwise(differing(), How::kExampleIntegers, of(Outcome::kEqual));
  bench.finds = finds(true, false);
  CHECK(bench.judged(Kind::kSizes).verdict == Verdict::kRight);
  CHECK(bench.judged(Kind::kSizes).verdict == Verdict::kRight);
  const Reserves said = bench.said();
  CHECK(said.notes.empty());
  REQUIRE(said.assumed.size() == 1);
  CHECK(said.assumed[0].kind == "values");
  CHECK(said.assumed[0].source == "package/model.py:7");
  CHECK(said.assumed[0].what ==
        "executes aten.tanh.default where it executed aten.relu.default at other values (batch = "
        "3): the file is for values like the example's there");
  // A line of the user's own, and sizes that lead there, are none.
  bench.finds = finds(false, false);
  CHECK(bench.judged(Kind::kSizes).verdict == Verdict::kDiffers);
  bench.finds = finds(true, true);
  CHECK(bench.judged(Kind::kSizes).verdict == Verdict::kDiffers);
}

TEST_CASE("values that lead elsewhere in a package are an assumption") {
  for (const bool published : {true, false}) {
    Checked checked = differing();
    checked.values = "signs flipped";
    Bench bench = always(checked);
    bench.finds = [&](const Look&) { return branch(published); };
    const Judged judged = bench.judged(Kind::kValues);
    CHECK(judged.verdict == (published ? Verdict::kExcused : Verdict::kDiffers));
    CHECK(bench.looks == std::vector<What>{What::kOperators});  // a branch is no tie
    REQUIRE(bench.said().assumed.size() == (published ? 1 : 0));
    if (published) {
      CHECK(bench.said().assumed[0].what.find("at other values (signs flipped)") !=
            std::string::npos);
    }
  }
}

TEST_CASE("where nothing is selected there may be nothing to compare") {
  for (const bool failed : {true, false}) {
    Checked checked = failed ? failing() : differing();
    checked.not_finite = !failed;
    checked.text = failed ? checked.text : "2 of 3 values are NaN or infinite on one side only";
    checked.empty = true;
    Bench bench = always(checked);
    CHECK(bench.judged(Kind::kValues).verdict == Verdict::kExcused);
    CHECK(bench.looks == std::vector<What>{What::kOperators});
    CHECK(bench.note() == "output 'y' " + checked.text + " at batch = 3");
    // Where something is selected, there is.
    checked.empty = false;
    CHECK(always(checked).judged(Kind::kValues).verdict == Verdict::kDiffers);
  }
  Checked numbers = differing();  // nor where both have numbers
  numbers.empty = true;
  CHECK(always(numbers).judged(Kind::kValues).verdict == Verdict::kDiffers);
}

TEST_CASE("at a tie or a threshold eager jumps as far as the file differs") {
  const auto verdict = [](double moves, Kind kind, Bench* kept = nullptr) {
    Bench bench = always(differing());
    bench.finds = [=](const Look& look) {
      return look.what == What::kNudged ? moved(moves) : Looked{};
    };
    const Verdict found = bench.judged(kind).verdict;
    if (kept != nullptr) kept->ledger = bench.ledger;
    return found;
  };
  Bench kept;
  CHECK(verdict(0.125, Kind::kValues, &kept) == Verdict::kExcused);
  CHECK(kept.note() ==
        "y differs by 0.5 at batch = 3; eager itself by 0.12 where its inputs are moved by a step "
        "of rounding");
  CHECK(verdict(0.1249, Kind::kValues) == Verdict::kDiffers);
  CHECK(verdict(kInfinite, Kind::kSizes) == Verdict::kDiffers);  // not at other sizes
  CHECK(verdict(kInfinite, Kind::kCall) == Verdict::kDiffers);   // nor at the user's own
}

TEST_CASE("the file may have what the model computes while it is traced") {
  Bench bench = otherwise(differing(), How::kTraced, of(Outcome::kEqual));
  CHECK(bench.judged(Kind::kValues).verdict == Verdict::kExcused);
  CHECK(bench.note() ==
        "at batch = 3 the model computes something else when torch.compiler.is_compiling(); the "
        "file has what it computes then");
  CHECK(bench.judged(Kind::kSizes).verdict == Verdict::kDiffers);
  CHECK(bench.judged(Kind::kCall).verdict == Verdict::kDiffers);
  for (const Outcome outcome : {Outcome::kDiffers, Outcome::kStopped, Outcome::kRefused}) {
    Bench wrong = otherwise(differing(), How::kTraced, of(outcome));
    CHECK(wrong.judged(Kind::kValues).verdict == Verdict::kDiffers);
    CHECK(wrong.note().empty());
  }
}

TEST_CASE("a model that branches, takes something from outside, or does not repeat is told apart") {
  const Around around{"ONNX Runtime", "eager",      "Nothing was exported.",
                      "reads 3",      "model.py:1", ""};
  Bench bench = always(differing());
  bench.finds = [](const Look& look) {
    return look.what == What::kOperators ? branch(false) : Looked{};
  };
  Finding found = bench.finding(Kind::kSizes);
  CHECK(found.code == ErrorCode::kDiverged);
  CHECK(found.why == Why::kBranches);
  CHECK(cause_of(found) ==
        "at batch = 3 it executes aten.tanh.default where it executed aten.relu.default: it "
        "branches on a size or a value there");
  CHECK(sentence_of(found, around).find("Fix that dimension") != std::string::npos);
  found = bench.finding(Kind::kValues);
  CHECK(cause_of(found).ends_with("it branches on a value there"));
  CHECK(sentence_of(found, around).find("torch.where") != std::string::npos);

  bench.finds = [](const Look& look) {
    Looked looked;
    if (look.what == What::kOutside) looked.outside = {{"a tensor", "aten.add.Tensor", "m.py:3"}};
    if (look.what == What::kRepeated) looked.text = "differs by 0.1";
    return looked;
  };
  found = bench.finding(Kind::kValues);
  CHECK(found.code == ErrorCode::kUnsupported);
  CHECK(found.why == Why::kOutside);
  CHECK(cause_of(found).starts_with("aten.add.Tensor takes a tensor that was made outside"));
  found = bench.finding(Kind::kSizes);  // values are the same there as far as anyone knows
  CHECK(found.code == ErrorCode::kDiscrepancy);
  CHECK(found.why == Why::kUnsteady);
  CHECK(cause_of(found) ==
        "eager differs from itself: output 'y' differs by 0.1 between two calls at batch = 3");

  bench.finds = [](const Look&) { return Looked{}; };
  found = bench.finding(Kind::kSizes);
  CHECK(found.why == Why::kDiffers);
  CHECK(sentence_of(found, around) ==
        "[verify] Expected ONNX Runtime to agree with eager, but output 'y' differs by 0.5 "
        "(scaled), more than 0.0001 at batch = 3. The model reads 3 at model.py:1: that assumption "
        "may be wrong. Nothing was exported.");
}

TEST_CASE("a generator is another object in each run, which is no branch") {
  for (const bool draws : {true, false}) {
    Checked checked = differing();
    checked.draws = draws;
    Bench bench = always(checked);
    bench.finds = [](const Look& look) {
      Looked looked = look.what == What::kOperators ? branch(false) : Looked{};
      looked.generator = true;
      looked.text = "differs";
      return looked;
    };
    // What draws is not asked whether it repeats.
    CHECK(bench.finding(Kind::kCall).why == (draws ? Why::kDiffers : Why::kBranches));
    CHECK(bench.looks == std::vector<What>{What::kOperators});
  }
}

TEST_CASE("what the model executes at a call is looked at once") {
  Bench bench = always(differing());
  (void)bench.finding(Kind::kValues);
  const std::vector<What> looks = {What::kOperators, What::kNudged, What::kOutside,
                                   What::kRepeated};
  CHECK(bench.looks == looks);
  CHECK(bench.checks == 2);  // its own, and while it is traced
}

TEST_CASE("an error that the driver kept while it looked is the answer") {
  Bench bench = always(differing());
  bench.finds = [](const Look&) {
    Looked looked;
    looked.problem = {5, ErrorCode::kUnsupported, "no such operator"};
    return looked;
  };
  const Judged judged = bench.judged(Kind::kValues);
  CHECK(judged.verdict == Verdict::kUnable);
  CHECK(judged.checked.problem.number == 5);
  Check check;
  check.kind = Kind::kSizes;
  CHECK(!bench.drive(bench.judge.parts(check)));
  // Of what eager alone could not tell nothing is known, which excuses nothing.
  Checked close = differing();
  close.abs = 0.008;
  bench.measures = [&](const Check&) { return close; };
  CHECK(bench.drive(bench.judge.differs(check)));
  bench.drive(bench.judge.look_at_state(0));
  CHECK(bench.ledger.facts().empty());
}

TEST_CASE("a model that remembers a call is an assumption") {
  Bench bench = always(of(Outcome::kEqual));
  bench.finds = [](const Look&) {
    Looked looked;
    looked.text = "forward changes self.n, and output 'y' of the next call differs";
    looked.source = "model.py:3";
    return looked;
  };
  bench.drive(bench.judge.look_at_state(0));
  REQUIRE(bench.said().assumed.size() == 1);
  CHECK(bench.said().assumed[0].kind == "state");
  CHECK(bench.said().assumed[0].what ==
        "forward changes self.n, and output 'y' of the next call differs: the file computes the "
        "first call");
}

TEST_CASE("what was said of a file is not said of the next one, and asks for no other try") {
  Bench bench = always(of(Outcome::kRefused));
  (void)bench.judged(Kind::kSizes);
  CHECK(bench.said().notes.size() == 1);
  CHECK(bench.ledger.narrowed() == 0);
  bench.judge.begin_file();
  CHECK(bench.said().notes.empty());
  (void)bench.judged(Kind::kSizes);
  CHECK(bench.said().notes.size() == 1);
}

TEST_CASE("the checks of a program end with the first that fails") {
  ProbeResult probed;
  CheckRequest request;
  request.effort.values = 2;
  for (const bool wrong : {false, true}) {
    ProgramChecks checks(probed, request);
    std::set<int> numbers;
    for (int turn = 0; !checks.over(); ++turn) {
      REQUIRE(turn < 100);
      if (std::holds_alternative<Look>(checks.step())) {
        Looked looked;
        looked.known = false;
        checks.answer(looked, 0);
        continue;
      }
      const Check check = std::get<Check>(checks.step());
      Checked checked = of(Outcome::kEqual);
      if (wrong && check.kind == Kind::kValues && check.number == 1) checked = differing();
      checked.number = turn;
      checks.answer(checked, 0);
    }
    CHECK(std::holds_alternative<Failed>(checks.step()) == wrong);
    CHECK(checks.rows().size() == 3);
    CHECK(checks.rows().back().right == !wrong);
  }
}
