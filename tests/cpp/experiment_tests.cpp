// The experiment without a model: transcripts of exports are replayed, a ledger refuses what does
// not narrow, and models of a few lines are driven to the end.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "fairlead/base/error.h"
#include "fairlead/experiment/describe.h"
#include "fairlead/experiment/experiment.h"
#include "fairlead/experiment/lab.h"
#include "fairlead/experiment/transcript.h"

using namespace fairlead;

namespace {

std::vector<std::filesystem::path> transcripts() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(FAIRLEAD_TRANSCRIPTS)) {
    if (entry.path().extension() == ".json") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Fact fact_of(FactKind kind, std::int64_t size) {
  Fact fact;
  fact.place = {0, 1};
  fact.kind = kind;
  fact.size = size;
  return fact;
}

// A model of one input that executes one of two operators, by its sizes.
struct Toy {
  Sizes example;
  std::function<std::string(const Sizes&)> executes;  // the operator; "": refused
  std::function<bool(const Setting&)> right = [](const Setting&) { return true; };  // the file
  std::map<std::pair<ProgramId, int>, Sizes> ran = {};
  std::function<bool(const Build&)> builds = [](const Build&) { return true; };
  int runs = 0;
  std::vector<std::string> fusions = {};  // that the file could have
  std::vector<std::string> wrong = {};    // of these, with any of which it differs
  std::vector<std::string> fused = {};
  int files = 0;

  Request request() const {
    Request asked;
    asked.leaves = {{"x", std::vector<DimRequest>(example[0].size())}};
    asked.roles = {Role::kOther};
    asked.calls = {example};
    return asked;
  }

  Answer does(const Step& step) {
    if (const auto* open = std::get_if<Open>(&step)) {
      CallFacts facts;
      facts.sizes = open->input.kind == Input::Kind::kSizes ? open->input.sizes : example;
      return facts;
    }
    if (const auto* asked = std::get_if<RunModel>(&step)) {
      Ran found;
      found.absent = asked->input.kind == Input::Kind::kOther;
      const std::string now = executes(asked->input.sizes);
      if (now.empty()) {
        found.error = "ValueError: no";
      } else if (asked->reference >= 0 &&
                 executes(ran.at({asked->program, asked->reference})) != now) {
        found.parted = true;
        found.before = executes(ran.at({asked->program, asked->reference}));
        found.now = now;
      } else if (!found.absent) {
        found.run = runs++;
        ran[{asked->program, found.run}] = asked->input.sizes;
      }
      return found;
    }
    if (const auto* check = std::get_if<Check>(&step)) {
      Checked found;
      if (check->kind == Check::Kind::kValues) found.outcome = Checked::Outcome::kAbsent;
      const bool differs = std::any_of(fused.begin(), fused.end(), [&](const std::string& kind) {
        return std::find(wrong.begin(), wrong.end(), kind) != wrong.end();
      });
      if (differs || (check->kind == Check::Kind::kSizes && !right(check->values))) {
        found.outcome = Checked::Outcome::kDiffers;
        found.number = 7;
        found.output = "y";
        found.abs = 1;
      }
      return found;
    }
    if (const auto* build = std::get_if<Build>(&step)) {
      Built built;
      if (!builds(*build)) built.problem = {7, ErrorCode::kDiverged, "other operators"};
      return built;
    }
    if (std::holds_alternative<Foresee>(step)) return Foreseen{};
    if (std::holds_alternative<Ask>(step)) return Questions{};
    if (std::holds_alternative<Require>(step)) return Met{true};
    if (const auto* emit = std::get_if<Emit>(&step)) {
      Emitted file;
      for (const std::string& kind : fusions) {
        if (std::none_of(emit->without.begin(), emit->without.end(),
                         [&](const auto& each) { return each.first == kind; })) {
          file.fused.push_back(kind);
        }
      }
      fused = file.fused;
      ++files;
      return file;
    }
    if (std::holds_alternative<Look>(step)) return Looked{};
    if (std::holds_alternative<NextCall>(step)) return CallFacts{{}, false, {}, {}};
    return Ran{};
  }

  void drive(Experiment& experiment) {
    for (int turn = 0; !experiment.over(); ++turn) {
      REQUIRE(turn < 2000);
      experiment.answer(does(experiment.step()), 0.001);
    }
  }
};

}  // namespace

TEST_CASE("transcripts of exports are replayed: the same steps, the same ledger") {
  const auto found = transcripts();
  CHECK(found.size() >= 40);
  for (const auto& path : found) {
    CAPTURE(path.filename().string());
    CHECK(replay(text_of(path)) == "");
  }
}

TEST_CASE("a transcript with another answer is told apart") {
  const auto found = transcripts();
  REQUIRE(!found.empty());
  std::string text = text_of(found[0]);
  const std::size_t at = text.find("\"Ran\",{\"run\":1");
  REQUIRE(at != std::string::npos);
  text.replace(at, text.find('}', at) + 1 - at, "\"Ran\",{\"error\":\"ValueError: no\"}");
  CHECK(replay(text) != "");
}

TEST_CASE("what is no transcript is refused") {
  CHECK_THROWS_AS((void)replay("{}"), Error);
  CHECK_THROWS_AS((void)replay("[1, 2"), Error);
  CHECK_THROWS_AS((void)replay(R"({"request": {"roles": ["king"]}, "turns": []})"), Error);
}

TEST_CASE("answers are looked at before anything follows from them") {
  Toy toy{{{3, 5}}, [](const Sizes&) { return "tanh"; }};
  Experiment experiment(toy.request());
  CallFacts other;
  other.sizes = {{3, 5, 7}};
  CHECK_THROWS_AS(experiment.answer(other, 0), Error);  // a leaf of another rank
  CHECK_THROWS_AS(experiment.answer(Questions{}, 0), Error);
  Request request = toy.request();
  request.calls.push_back({{1}});
  CHECK_THROWS_AS(Experiment{request}, Error);
}

TEST_CASE("every fact of a ledger narrows") {
  Ledger ledger;
  CHECK(ledger.add(fact_of(FactKind::kLeast, 2)));
  CHECK(!ledger.add(fact_of(FactKind::kLeast, 2)));
  CHECK(ledger.add(fact_of(FactKind::kLeast, 3)));
  CHECK(ledger.add(fact_of(FactKind::kMost, 9)));
  CHECK(!ledger.add(fact_of(FactKind::kMost, 12)));
  CHECK(ledger.add(fact_of(FactKind::kFixed, 4)));
  CHECK(!ledger.add(fact_of(FactKind::kFixed, 4)));
  Fact opened = fact_of(FactKind::kOpened, 0);
  opened.of = 1;
  CHECK(ledger.add(opened));
  CHECK(!ledger.add(opened));
  Fact closed = fact_of(FactKind::kClosed, 0);
  closed.of = 1;
  CHECK(ledger.add(closed));
  CHECK(!ledger.add(closed));
  Fact late = fact_of(FactKind::kLeast, 2);  // nothing is learnt of a program that is closed
  late.of = 1;
  CHECK(!ledger.add(late));
  CHECK(ledger.facts().size() == 6);
}

TEST_CASE("a model of one program has no facts to learn") {
  Toy toy{{{3, 5}}, [](const Sizes&) { return "tanh"; }};
  Experiment experiment(toy.request());
  toy.drive(experiment);
  CHECK(std::holds_alternative<Done>(experiment.step()));
  CHECK(experiment.ledger().empty());
  CHECK(experiment.lab().row(0).probed->symbols.size() == 2);
}

TEST_CASE("a size at which the file differs is solved for, then an error") {
  Toy toy{{{3, 5}}, [](const Sizes&) { return "tanh"; }};
  toy.right = [](const Setting& values) { return values[0] > 1; };
  Experiment experiment(toy.request());
  toy.drive(experiment);
  // The runs with that setting are the same program, and the file differs again: that is the error.
  REQUIRE(std::holds_alternative<Failed>(experiment.step()));
  CHECK(std::get<Failed>(experiment.step()).finding.number == 7);
  REQUIRE(experiment.ledger().size() == 1);
  CHECK(experiment.ledger()[0].kind == FactKind::kSolveFor);
}

TEST_CASE("a program that cannot be built for all its sizes is built for fewer") {
  for (const bool asked : {false, true}) {
    Toy toy{{{3, 5}}, [](const Sizes&) { return "tanh"; }};
    toy.builds = [](const Build& build) { return build.values[0].size() < 2; };
    Request request = toy.request();
    request.bounded = asked;
    Experiment experiment(request);
    toy.drive(experiment);
    CHECK(std::holds_alternative<Failed>(experiment.step()) == asked);
    if (asked) continue;
    REQUIRE(experiment.ledger().size() == 1);
    CHECK(experiment.ledger()[0].kind == FactKind::kFixed);
    CHECK(experiment.ledger()[0].place == Place{0, 1});
  }
}

TEST_CASE("fusions that make the file differ are found by halves, and left out") {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"b", "e"}, {"a"}, {"g", "h"}, {"a", "b", "c", "d"}}) {
    Toy toy{{{3, 5}}, [](const Sizes&) { return "tanh"; }};
    toy.fusions = {"a", "b", "c", "d", "e", "f", "g", "h"};
    toy.wrong = wrong;
    Experiment experiment(toy.request());
    toy.drive(experiment);
    REQUIRE(std::holds_alternative<Done>(experiment.step()));
    std::vector<std::string> found;
    for (const Fact& fact : experiment.ledger()) {
      CHECK(fact.kind == FactKind::kUnfused);
      found.push_back(fact.evidence.key);
    }
    std::sort(found.begin(), found.end());
    CHECK(found == wrong);
    CHECK(toy.fused.size() == 8 - wrong.size());
    CHECK(toy.files < 24);
  }
}

TEST_CASE("a file that differs without fusions too is made with them, and refused") {
  Toy toy{{{3, 5}}, [](const Sizes&) { return "tanh"; }};
  toy.right = [](const Setting& values) { return values[0] > 1; };
  toy.fusions = {"a", "b"};
  Experiment experiment(toy.request());
  toy.drive(experiment);
  REQUIRE(std::holds_alternative<Failed>(experiment.step()));
  CHECK(toy.fused == toy.fusions);
}

TEST_CASE("a size beyond which the model executes another program is a further one") {
  Toy toy{{{13, 5}}, [](const Sizes& s) { return s[0][0] > 15 ? "relu" : "tanh"; }};
  Experiment experiment(toy.request());
  toy.drive(experiment);
  REQUIRE(std::holds_alternative<Done>(experiment.step()));
  CHECK(experiment.lab().programs() == std::vector<ProgramId>{0, 1});
  ExprPool pool;
  const std::vector<Expr> shape = {pool.symbol("batch"), pool.symbol("x_dim_1")};
  const Described found = describe(experiment.lab(), pool, {shape});
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].find("the model executes another program (relu instead of tanh): the file "
                            "holds both") != std::string::npos);
}

TEST_CASE("the experiment ends where the model refuses its example") {
  Toy toy{{{3, 5}}, [](const Sizes&) { return ""; }};
  Experiment experiment(toy.request());
  CHECK_THROWS_AS(toy.drive(experiment), Error);
  CHECK(experiment.over());
}
