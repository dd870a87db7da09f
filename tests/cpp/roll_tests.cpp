// Tests of loops: found by comparing runs, rolled into one operator, solved as a body.
#include "fairlead/trace/roll.h"

#include <doctest/doctest.h>

#include "fairlead/trace/roll_impl.h"
#include "graphs.h"
#include "runs.h"

using namespace fairlead;
using namespace fairlead::test;

namespace {

const std::vector<Ints> kSteps = {{5}, {3}, {7}, {1}};

// state = start; for i in range(n): state = tanh(state + x[i]); the states stacked, and the last.
void recurrent(Recording& r, const Ints& s) {
  r.source = "model.py:1";
  const RunValue x = r.input(Dtype::kFloat32, {s[0], 4});
  RunValue state = r.op("aten.zeros.default", {numbers({4})}, made({4}));
  std::vector<Given> states;
  for (std::int64_t i = 0; i < s[0]; ++i) {
    r.source = "model.py:3";
    const RunValue part =
        r.op("aten.select.int", {tensor(x), number(0), number(i)}, made({4}, Dtype::kFloat32, x));
    const RunValue sum = r.op("aten.add.Tensor", {tensor(state), tensor(part)}, made({4}));
    state = r.op("aten.tanh.default", {tensor(sum)}, made({4}));
    states.push_back(tensor(state));
  }
  r.source = "model.py:5";
  const RunValue all =
      r.op("aten.stack.default", {list(std::move(states)), number(0)}, made({s[0], 4}));
  r.outputs({all, state});
}

Lab lab_of(const std::function<void(Recording&, const Ints&)>& model) {
  Lab lab({"n"});
  lab.define("aten.select.int", {"self", "dim", "index"}).alias = Alias::kView;
  lab.input("x", {"n", "4"});
  lab.record_all(kSteps, model);
  return lab;
}

std::vector<const Run*> runs_of(const Lab& lab) {
  std::vector<const Run*> runs;
  for (std::size_t k = 0; k < kSteps.size(); ++k) runs.push_back(&lab.run(k));
  return runs;
}

}  // namespace

TEST_CASE("a loop is found where one run leaves it and the other goes on") {
  const Lab lab = lab_of(recurrent);
  const auto loops = find_loops(runs_of(lab));
  REQUIRE(loops);
  REQUIRE(loops->size() == 1);
  CHECK(loops->front().period == 3);
  CHECK(loops->front().starts == std::vector<std::size_t>{1, 1, 1, 1});
  CHECK(loops->front().counts == std::vector<std::size_t>{5, 3, 7, 1});
}

TEST_CASE("a rolled loop carries its state and collects what its steps made") {
  const Lab lab = lab_of(recurrent);
  const auto rolled = roll(lab.vocabulary, runs_of(lab));
  REQUIRE(rolled);
  REQUIRE(rolled->loops.size() == 1);
  CHECK(rolled->loops[0].invariants == 1);
  CHECK(rolled->loops[0].carried == 1);
  CHECK(rolled->loops[0].steps.size() == 16);
  CHECK(rolled->runs.size() == kSteps.size());
}

TEST_CASE("the program of a loop has one node whose body counts its steps") {
  Lab lab = lab_of(recurrent);
  const std::string text = to_text(lab.build().graph);
  INFO(text);
  CHECK(text.find("fairlead.loop(n, [%") != std::string::npos);
  CHECK(text.find("aten.select.int(%0, 0, step_0)") != std::string::npos);
  CHECK(text.find("output \"output0\"") != std::string::npos);
}

TEST_CASE("a step that reads what the one before the last made is not rolled") {
  Lab lab = lab_of([](Recording& r, const Ints& s) {
    r.source = "model.py:1";
    (void)r.input(Dtype::kFloat32, {s[0], 4});
    std::vector<RunValue> states = {r.op("aten.zeros.default", {numbers({4})}, made({4}))};
    states.push_back(states[0]);
    for (std::int64_t i = 0; i < s[0]; ++i) {
      r.source = "model.py:3";
      states.push_back(r.op("aten.add.Tensor",
                            {tensor(states[states.size() - 2]), tensor(states[0])}, made({4})));
    }
    r.source = "model.py:5";
    r.outputs({r.op("aten.neg.default", {tensor(states.back())}, made({4}))});
  });
  CHECK_FALSE(roll(lab.vocabulary, runs_of(lab)));
  CHECK_THROWS_AS((void)lab.build(), Error);
}

TEST_CASE("runs that part without a period have no loop") {
  Lab lab = lab_of([](Recording& r, const Ints& s) {
    r.source = "model.py:1";
    const RunValue x = r.input(Dtype::kFloat32, {s[0], 4});
    r.outputs(
        {r.op(s[0] > 4 ? "aten.neg.default" : "aten.abs.default", {tensor(x)}, made({s[0], 4}))});
  });
  CHECK_FALSE(find_loops(runs_of(lab)));
}

namespace {

// for part, length in zip(x.split(lengths.tolist()), ..): y = -part; the results joined. Parts
// differ in size.
void parts(Recording& r, const Ints& s) {
  Ints sizes;
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < s[0]; ++i) {
    sizes.push_back(1 + i % 3);
    total += sizes.back();
  }
  r.source = "model.py:1";
  const RunValue lengths = r.input(Dtype::kInt64, {s[0]});
  const RunValue x = r.input(Dtype::kFloat32, {total, 2});
  (void)r.op("fairlead.tolist", {tensor(lengths)}, numbers(sizes));
  std::vector<Given> views;
  for (const std::int64_t size : sizes) views.push_back(made({size, 2}, Dtype::kFloat32, x));
  const std::vector<RunValue> cut =
      r.ops("aten.split_with_sizes.default", {tensor(x), numbers(sizes), number(0)},
            {list(std::move(views))});
  std::vector<Given> results;
  for (std::size_t i = 0; i < cut.size(); ++i) {
    r.source = "model.py:3";
    results.push_back(tensor(r.op("aten.neg.default", {tensor(cut[i])}, made({sizes[i], 2}))));
  }
  r.source = "model.py:5";
  r.outputs({r.op("aten.cat.default", {list(std::move(results)), number(0)}, made({total, 2}))});
}

}  // namespace

TEST_CASE("a loop of 2,000 steps is rolled by looking at every item a few times") {
  using namespace fairlead::rolling;
  Lab lab({"n"});
  lab.record_all({{2000}, {1500}}, parts);
  const Run* runs[] = {&lab.run(0), &lab.run(1)};
  const auto loops = find_loops(runs);
  REQUIRE(loops);
  REQUIRE(loops->size() == 1);
  CHECK(loops->front().counts == std::vector<std::size_t>{2000, 1500});
  std::vector<RunView> views;
  for (std::size_t r = 0; r < 2; ++r) views.emplace_back(lab.vocabulary, *runs[r], *loops, r);
  const Plan plan = plan_loops(views, *loops);
  REQUIRE(plan.loops[0].taken.size() == 1);
  CHECK(plan.loops[0].offsets.size() == 1);
  CHECK(plan.loops[0].grown.size() == 1);
  Vocabulary vocabulary = lab.vocabulary;
  const Added added = add_operators(vocabulary);
  const Rolling rolling{*loops, plan, added};
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t step = 0; step < loops->front().counts[r]; ++step) {
      const Run made = write_step(views[r], r, rolling, 0, step);
      // Where the part begins is what the sizes of those before it add up to.
      const std::int64_t begin =
          static_cast<std::int64_t>(step / 3 * 6 + (step % 3 == 2 ? 3 : step % 3));
      bool found = false;
      for (const Item& item : made.items)
        found = found || (item.kind == ItemKind::kInt && item.i == begin);
      if (!found) FAIL_CHECK("step " << step << " does not begin at " << begin);
    }
    std::unordered_map<RunValue, RunValue> values;
    (void)write_main(views[r], r, rolling, values);
    CHECK(views[r].looked_at() < 4 * runs[r]->items.size());
  }
  CHECK(roll(lab.vocabulary, runs).has_value());
}
