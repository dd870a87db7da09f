// Tests of probing, on functions that play the model.
#include "fairlead/probe/probe.h"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <thread>

#include "fairlead/probe/names.h"
#include "fairlead/probe/sizes.h"
#include "graphs.h"

using namespace fairlead;
using namespace fairlead::test;

namespace {

// A model that refuses sizes, takes paths by size, and lets some sizes be seen by no operator.
struct FakeModel {
  std::vector<std::string> names;
  Sizes example;
  std::function<std::string(const Sizes&)> refuse = [](const Sizes&) { return ""; };
  std::function<std::string(const Sizes&)> path = [](const Sizes&) { return "one"; };
  std::function<Sizes(const Sizes&)> seen = [](const Sizes& s) { return s; };

  std::vector<Sizes> runs;        // every run that worked
  std::vector<Leaf> leaves = {};  // with the user's requests
  std::vector<Sizes> more_calls = {};
  std::size_t operators = 1;  // of a run

  void prepare() {
    if (!leaves.empty()) return;
    for (std::size_t k = 0; k < names.size(); ++k) {
      leaves.push_back({names[k], std::vector<DimRequest>(example[k].size())});
    }
  }
  DimRequest& request(std::size_t leaf, std::size_t axis) {
    prepare();
    return leaves[leaf].requests[axis];
  }

  TrialResult run(const Sizes& sizes, int reference) {
    TrialResult result;
    result.reason = refuse(sizes);
    if (!result.reason.empty()) return result;
    if (reference >= 0) {
      const Sizes& other = runs.at(static_cast<std::size_t>(reference));
      if (path(sizes) != path(other)) {
        result.parted = true;
        result.reason = "path " + path(sizes) + " instead of " + path(other);
        return result;
      }
      result.visible = seen(sizes) != seen(other);
    }
    runs.push_back(sizes);
    result.run = static_cast<int>(runs.size()) - 1;
    return result;
  }

  ProbeResult probe() {
    prepare();
    ProbeRequest request;
    request.leaves = leaves;
    request.calls = {example};
    request.calls.insert(request.calls.end(), more_calls.begin(), more_calls.end());
    // Brief runs that see nothing of the path, and only then whole ones, come to the same end.
    const AskTrial hasty = [&](const Sizes& sizes, int reference, bool brief) -> Task<TrialResult> {
      TrialResult result;
      result.enough = brief && refuse(sizes).empty();
      if (result.enough) {
        result.visible = seen(sizes) != seen(runs.at(static_cast<std::size_t>(reference)));
      } else {
        result = run(sizes, reference);
      }
      result.operators = operators;
      co_return result;
    };
    std::vector<ProbeResult> hasty_ends;
    for (operators = 1; operators < 1'000'000; operators *= 100'000) {  // a long program, too
      runs.clear();
      Task<ProbeResult> task = probing(request, hasty);
      task.start();
      hasty_ends.push_back(task.result());
      check_result(hasty_ends.back());
    }
    runs.clear();
    const ProbeResult result = fairlead::probe(
        request, [&](const Sizes& sizes, int reference) { return run(sizes, reference); });
    check_result(result);
    for (const ProbeResult& quick : hasty_ends) {
      REQUIRE(quick.shapes.size() == result.shapes.size());
      for (std::size_t k = 0; k < result.shapes.size(); ++k) {
        for (std::size_t axis = 0; axis < result.shapes[k].size(); ++axis) {
          CHECK(quick.pool->to_string(quick.shapes[k][axis]) ==
                result.pool->to_string(result.shapes[k][axis]));
        }
      }
    }
    return result;
  }

  // What holds of every result: each run has the sizes that its symbols' values give, and is of one
  // path.
  void check_result(const ProbeResult& result) const {
    REQUIRE_FALSE(result.runs.empty());
    REQUIRE(result.pool->symbols().size() == result.symbols.size());
    std::vector<std::set<std::int64_t>> tried(result.symbols.size());
    for (const ProbedRun& run : result.runs) {
      const Sizes& sizes = runs.at(static_cast<std::size_t>(run.run));
      CHECK(sizes_at(result, run.values) == sizes);
      CHECK(path(sizes) == path(runs.at(static_cast<std::size_t>(result.runs[0].run))));
      for (std::size_t k = 0; k < tried.size(); ++k) tried[k].insert(run.values[k]);
    }
    for (std::size_t k = 0; k < tried.size(); ++k) {
      CHECK(result.symbols[k].name == result.pool->symbols()[k].name);
      CHECK(std::vector(tried[k].begin(), tried[k].end()) == result.symbols[k].tried);
      CHECK(tried[k].size() >= 3);
    }
    CHECK(result.trials >= runs.size());
  }
};

// "input_ids[batch, sequence] mask[batch, 18]"
std::string shapes_text(const FakeModel& model, const ProbeResult& result) {
  std::string text;
  for (std::size_t k = 0; k < result.shapes.size(); ++k) {
    text += (k == 0 ? "" : " ") + model.names[k] + "[";
    for (std::size_t axis = 0; axis < result.shapes[k].size(); ++axis) {
      text += (axis == 0 ? "" : ", ") + result.pool->to_string(result.shapes[k][axis]);
    }
    text += "]";
  }
  return text;
}

// "x:1=8 (why)"
std::string fixed_text(const FakeModel& model, const ProbeResult& result) {
  std::string text;
  for (const FixedDim& f : result.fixed) {
    text += (text.empty() ? "" : "; ") + model.names[f.leaf] + ":" + std::to_string(f.axis) + "=" +
            std::to_string(f.size) + " (" + f.reason + ")";
  }
  return text;
}

std::string refuse_unless(bool holds, const char* text) { return holds ? "" : text; }

FakeModel one_size(std::int64_t size) {
  FakeModel model;
  model.names = {"x"};
  model.example = {{size, 8}};
  model.refuse = [](const Sizes& s) { return refuse_unless(s[0][1] == 8, "expected 8 features"); };
  return model;
}

// A decoder with a cache: mask = past + sequence, 4 heads of 16.
FakeModel decoder(std::int64_t batch, std::int64_t sequence, std::int64_t past) {
  FakeModel model;
  model.names = {"input_ids",
                 "attention_mask",
                 "past_key_values.0.key",
                 "past_key_values.0.value",
                 "past_key_values.1.key",
                 "past_key_values.1.value"};
  model.example = {{batch, sequence}, {batch, past + sequence}};
  for (int k = 0; k < 4; ++k) model.example.push_back({batch, 4, past, 16});
  model.refuse = [](const Sizes& s) -> std::string {
    for (std::size_t k = 2; k < s.size(); ++k) {
      if (s[k][1] != 4 || s[k][3] != 16) return "shape of heads";
      if (s[k][0] != s[0][0] || s[k][2] != s[2][2]) return "sizes of caches";
    }
    if (s[1][0] != s[0][0]) return "batch of the mask";
    return refuse_unless(s[1][1] == s[0][1] + s[2][2], "length of the mask");
  };
  return model;
}

}  // namespace

TEST_CASE("a decoder has batch, sequence and past, and the mask is their sum") {
  FakeModel model = decoder(2, 7, 11);
  const ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) ==
        "input_ids[batch, sequence] attention_mask[batch, sequence + past] "
        "past_key_values.0.key[batch, 4, past, 16] past_key_values.0.value[batch, 4, past, 16] "
        "past_key_values.1.key[batch, 4, past, 16] past_key_values.1.value[batch, 4, past, 16]");
  CHECK(result.fixed.size() == 8);
  CHECK(result.fixed[0].reason == "shape of heads");
  CHECK_FALSE(result.base_parted);
}

TEST_CASE("sizes that are equal by chance are told apart") {
  for (const auto& sizes :
       {std::array<std::int64_t, 3>{4, 7, 11}, {2, 4, 9}, {2, 5, 5}, {16, 4, 11}, {4, 4, 4}}) {
    const std::int64_t batch = sizes[0], sequence = sizes[1], past = sizes[2];
    CAPTURE(batch);
    CAPTURE(sequence);
    CAPTURE(past);
    FakeModel model = decoder(batch, sequence, past);
    const ProbeResult result = model.probe();
    const std::string text = shapes_text(model, result);
    const std::string first = text.substr(0, text.find(" past_key_values.0.value"));
    CHECK((first == "input_ids[batch, sequence] attention_mask[batch, sequence + past] "
                    "past_key_values.0.key[batch, 4, past, 16]" ||
           first == "input_ids[batch, sequence] attention_mask[batch, past + sequence] "
                    "past_key_values.0.key[batch, 4, past, 16]"));
  }
}

TEST_CASE("every small decoder is understood") {
  std::mt19937 random(3);
  for (std::int64_t batch = 1; batch <= 5; ++batch) {
    for (std::int64_t sequence = 1; sequence <= 6; ++sequence) {
      for (std::int64_t past = 1; past <= 6; ++past) {
        CAPTURE(batch);
        CAPTURE(sequence);
        CAPTURE(past);
        FakeModel model = decoder(batch, sequence, past);
        const ProbeResult result = model.probe();
        CAPTURE(shapes_text(model, result));
        CHECK(result.symbols.size() == 3);
        for (int k = 0; k < 4; ++k) {
          std::vector<std::int64_t> values;
          for (std::size_t s = 0; s < result.symbols.size(); ++s) {
            values.push_back(static_cast<std::int64_t>(2 + random() % 30));
          }
          CHECK(model.refuse(sizes_at(result, values)) == "");
        }
      }
    }
  }
}

TEST_CASE("one token to decode is left for several") {
  FakeModel model = decoder(1, 1, 6);
  const ProbeResult result = model.probe();
  const std::string text = shapes_text(model, result);
  CAPTURE(text);
  CHECK(text.find("input_ids[batch, sequence]") == 0);
  CHECK(text.find("past_key_values.1.value[batch, 4, past, 16]") != std::string::npos);
  CHECK_FALSE(result.base_parted);
}

TEST_CASE("two towers have a batch each") {
  FakeModel model;
  model.names = {"input_ids", "attention_mask", "pixel_values"};
  model.example = {{3, 7}, {3, 7}, {3, 3, 24, 24}};
  model.refuse = [](const Sizes& s) -> std::string {
    if (s[0] != s[1]) return "mask";
    return refuse_unless(s[2][1] == 3, "expected 3 channels");
  };
  const ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) ==
        "input_ids[batch, sequence] attention_mask[batch, sequence] "
        "pixel_values[batch_1, 3, height, width]");
  CHECK(fixed_text(model, result) == "pixel_values:1=3 (expected 3 channels)");
}

TEST_CASE("symbols are in the order of the inputs, whatever was found first") {
  FakeModel model;
  model.names = {"input_ids", "attention_mask", "pixel_values"};
  model.example = {{3, 7}, {3, 7}, {2, 3, 32, 32}};
  model.refuse = [](const Sizes& s) -> std::string {
    if (s[0] != s[1]) return "mask";
    return refuse_unless(s[2][1] == 3 && s[2][2] == s[2][3], "expected 3 channels, square");
  };
  CHECK(shapes_text(model, model.probe()) ==
        "input_ids[batch, sequence] attention_mask[batch, sequence] "
        "pixel_values[batch_1, 3, height, height]");
}

TEST_CASE("a part that no operator looks at stays with its like") {
  FakeModel model;
  model.names = {"input_ids", "token_type_ids"};
  model.example = {{2, 7}, {2, 7}};
  model.seen = [](const Sizes& s) { return Sizes{s[0]}; };
  CHECK(shapes_text(model, model.probe()) ==
        "input_ids[batch, sequence] token_type_ids[batch, sequence]");
  model.example = {{13, 701}, {13, 701}};  // large enough for a smaller batch
  model.runs.clear();
  CHECK(shapes_text(model, model.probe()) ==
        "input_ids[batch, sequence] token_type_ids[batch, sequence]");
}

TEST_CASE("a mask that is too long is noticed by one that is too short") {
  FakeModel model;
  model.names = {"input_ids", "attention_mask"};
  model.example = {{2, 7}, {2, 7}};
  model.refuse = [](const Sizes& s) {
    return refuse_unless(s[0][0] == s[1][0] && s[1][1] >= s[0][1], "the mask is too short");
  };
  CHECK(shapes_text(model, model.probe()) ==
        "input_ids[batch, sequence] attention_mask[batch, sequence]");
}

TEST_CASE("a mask is as long as the past and a fixed number of tokens") {
  // Too long goes unnoticed, and it is as long as a head is wide: neither hides the sum.
  FakeModel model = decoder(2, 1, 15);
  model.refuse = [](const Sizes& s) -> std::string {
    for (std::size_t k = 2; k < s.size(); ++k) {
      if (s[k][1] != 4 || s[k][3] != 16) return "shape of heads";
      if (s[k][0] != s[0][0] || s[k][2] != s[2][2]) return "sizes of caches";
    }
    if (s[1][0] != s[0][0]) return "batch of the mask";
    return refuse_unless(s[1][1] >= s[0][1] + s[2][2], "the mask is too short");
  };
  model.request(0, 1).kind = DimRequest::Kind::kStatic;
  const std::string text = shapes_text(model, model.probe());
  CHECK(text.substr(0, text.find(" past_key_values.0.value")) ==
        "input_ids[batch, 1] attention_mask[batch, past + 1] "
        "past_key_values.0.key[batch, 4, past, 16]");
}

TEST_CASE("sizes that come in multiples are multiples of a symbol") {
  FakeModel model = one_size(24);
  model.refuse = [](const Sizes& s) {
    return refuse_unless(s[0][0] % 12 == 0 && s[0][1] == 8, "expected a multiple of 12");
  };
  ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) == "x[12*batch, 8]");
  CHECK(result.symbols[0].tried == std::vector<std::int64_t>{2, 3, 4, 5});
  // A quarter of the size; not where only every other multiple of it runs the same program.
  model.example = {{48, 8}};
  model.runs.clear();
  CHECK(shapes_text(model, model.probe()) == "x[12*batch, 8]");
  model.path = [](const Sizes& s) { return s[0][0] % 24 == 0 ? "whole" : "padded"; };
  model.runs.clear();
  CHECK(shapes_text(model, model.probe()) == "x[24*batch, 8]");
  // The size itself, where no part of it will do.
  model.path = [](const Sizes& s) { return s[0][0] % 48 == 0 ? "whole" : "padded"; };
  model.runs.clear();
  result = model.probe();
  CHECK(shapes_text(model, result) == "x[48*batch, 8]");
  CHECK(result.symbols[0].tried == std::vector<std::int64_t>{1, 2, 3, 4});
}

TEST_CASE("the unit of multiples is the smallest that divides the example and runs") {
  FakeModel model = one_size(224);
  std::int64_t unit = 32;
  model.refuse = [&](const Sizes& s) {
    return refuse_unless(s[0][0] % unit == 0 && s[0][1] == 8, "expected a multiple");
  };
  for (const std::int64_t expected : {32, 16, 14, 7, 112}) {
    unit = expected;
    model.runs.clear();
    CHECK(shapes_text(model, model.probe()) == "x[" + std::to_string(expected) + "*batch, 8]");
  }
  // A few sizes below the example run as well, which are not all that does.
  model.example = {{160, 8}};
  model.refuse = [](const Sizes& s) {
    return refuse_unless((s[0][0] + 3) / 4 % 8 == 0 && s[0][1] == 8, "expected a multiple of 32");
  };
  model.runs.clear();
  CHECK(shapes_text(model, model.probe()) == "x[32*batch, 8]");
  // Nor is the size above the example that runs: 251 is one of 249 to 256.
  model.example = {{224, 8}};
  model.refuse = [](const Sizes& s) {
    return refuse_unless((s[0][0] + 7) / 8 % 4 == 0 && s[0][1] == 8, "expected a multiple of 32");
  };
  model.runs.clear();
  CHECK(shapes_text(model, model.probe()) == "x[32*batch, 8]");
}

TEST_CASE("further multiples that are another program end those of this one") {
  FakeModel model = one_size(64);
  model.refuse = [](const Sizes& s) {
    return refuse_unless(s[0][0] % 32 == 0 && s[0][1] == 8, "expected a multiple of 32");
  };
  model.path = [](const Sizes& s) { return s[0][0] > 96 ? "shifted" : "whole"; };
  const ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) == "x[32*batch, 8]");
  CHECK(result.symbols[0].max == 3);
  CHECK(result.symbols[0].other_above);
}

TEST_CASE("sizes that come in multiples beside one of the same size that is fixed") {
  FakeModel model;
  model.names = {"image", "text"};
  model.example = {{2, 3, 16, 16}, {2, 7, 16}};
  model.refuse = [](const Sizes& s) {
    const bool alike = s[0][0] == s[1][0] && s[0][1] == 3 && s[1][2] == 16;
    return refuse_unless(alike && s[0][2] % 4 == 0 && s[0][3] % 4 == 0, "expected multiples of 4");
  };
  CHECK(shapes_text(model, model.probe()) ==
        "image[batch, 3, 4*image_dim_2, 4*image_dim_3] text[batch, text_dim_1, 16]");
}

TEST_CASE("a few larger sizes that run are a range") {
  FakeModel model = one_size(500);
  model.refuse = [](const Sizes& s) {
    return refuse_unless(s[0][0] >= 500 && s[0][0] < 537 && s[0][1] == 8, "expected one pool");
  };
  const ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) == "x[batch, 8]");
  CHECK(result.symbols[0].min == 500);
  CHECK(result.symbols[0].max == 536);
}

TEST_CASE("a large example is probed with a small batch") {
  FakeModel model;
  model.names = {"pixel_values"};
  model.example = {{13, 3, 32, 32}};
  model.refuse = [](const Sizes& s) { return refuse_unless(s[0][1] == 3, "expected 3 channels"); };
  ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) == "pixel_values[batch, 3, height, width]");
  CHECK(result.symbols[0].tried == std::vector<std::int64_t>{4, 5, 7, 13, 17});
  CHECK(result.runs[0].values == std::vector<std::int64_t>{13, 32, 32});
  for (const ProbedRun& run : result.runs) {
    CHECK(volume(sizes_at(result, run.values)) <= 17 * 3 * 32 * 32);
  }
  for (const auto& values : unseen_settings(result, 6)) {
    CHECK(volume(sizes_at(result, values)) <= 4 * 13 * 3 * 32 * 32);
  }
  // A batch that turns out to be fixed keeps the size of the example in every run.
  model.refuse = [](const Sizes& s) {
    const bool moved = s[0][0] != 13 && s[0][0] != 17 && s[0][0] != 5;
    return refuse_unless(s[0][1] == 3 && !moved, "expected 13");
  };
  model.runs.clear();
  result = model.probe();
  CHECK(shapes_text(model, result) == "pixel_values[13, 3, height, width]");
  CHECK(result.fixed[0].size == 13);
}

TEST_CASE("what takes too long to try stays as it is") {
  ProbeRequest request;
  request.leaves = {{"x", std::vector<DimRequest>(3)}};
  request.calls = {{{4, 6, 10}}};
  request.patience = 0;
  int runs = 0;
  const Trial slow = [&](const Sizes&, int reference) {
    if (reference >= 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    TrialResult result;
    result.run = runs++;
    return result;
  };
  const ProbeResult result = probe(request, slow);
  CHECK(result.symbols.size() == 1);
  REQUIRE(result.fixed.size() == 2);
  CHECK(result.fixed[1].axis == 2);
  CHECK(result.fixed[1].reason == "not tried, because trying other sizes took too long");
  // Who asks for a dimension gets it, however long it takes.
  request.leaves[0].requests[2].kind = DimRequest::Kind::kDynamic;
  CHECK(probe(request, slow).symbols.size() == 3);
}

TEST_CASE("sizes of two groups that were equal are told apart after a division") {
  FakeModel model;
  model.names = {"pixel_values"};
  model.example = {{2, 3, 32, 32}};
  model.refuse = [](const Sizes& s) { return refuse_unless(s[0][1] == 3, "expected 3 channels"); };
  const ProbeResult result = model.probe();
  CHECK(std::any_of(result.runs.begin(), result.runs.end(),
                    [](const ProbedRun& run) { return run.values[1] / 8 > run.values[2] / 8; }));
  CHECK(std::any_of(result.runs.begin(), result.runs.end(),
                    [](const ProbedRun& run) { return run.values[1] / 8 < run.values[2] / 8; }));
}

TEST_CASE("below a branch the dimension varies up to its size") {
  FakeModel model = one_size(3);
  model.path = [](const Sizes& s) { return s[0][0] > 4 ? "large" : "small"; };
  const ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) == "x[batch, 8]");
  CHECK(fixed_text(model, result) == "x:1=8 (expected 8 features)");
  REQUIRE(result.symbols.size() == 1);
  CHECK(result.symbols[0].max == 3);
  CHECK(result.symbols[0].other_above);
  CHECK(result.symbols[0].reason == "path large instead of small");
}

TEST_CASE("a path of its own at every size fixes the dimension") {
  FakeModel model = one_size(3);
  model.path = [](const Sizes& s) { return std::to_string(s[0][0]); };
  const ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) == "x[3, 8]");
  CHECK(fixed_text(model, result) == "x:0=3 (path 5 instead of 3); x:1=8 (expected 8 features)");
  CHECK(result.symbols.empty());
  CHECK(result.runs.size() == 1);
}

TEST_CASE("sizes that are foreseen to have a path again are tried") {
  const auto path = [](const Sizes& s) {
    return std::to_string(s[0][0] % 2) + std::to_string(s[0][1] % 3);
  };
  for (const std::int64_t batch : {6, 7}) {
    for (const std::int64_t width : {9, 10, 11}) {
      CAPTURE(batch);
      CAPTURE(width);
      FakeModel model;
      model.names = {"x"};
      model.example = {{batch, width}};
      model.path = path;
      ProbeRequest request;
      model.prepare();
      request.leaves = model.leaves;
      request.calls = {model.example};
      const AskTrial trial = [&](const Sizes& sizes, int reference, bool) -> Task<TrialResult> {
        co_return model.run(sizes, reference);
      };
      const AskForesight foresight = [&](std::vector<Sizes> sizes, int reference) -> Task<int> {
        const Sizes& at = model.runs.at(static_cast<std::size_t>(reference));
        const auto found = std::find_if(sizes.begin(), sizes.end(),
                                        [&](const Sizes& each) { return path(each) == path(at); });
        co_return found == sizes.end() ? -1 : static_cast<int>(found - sizes.begin());
      };
      Task<ProbeResult> task = probing(request, trial, &foresight);
      task.start();
      const ProbeResult result = task.result();
      CHECK(result.fixed.empty());
      REQUIRE(result.symbols.size() == 2);
      for (const Sizes& run : model.runs) CHECK(path(run) == path(model.example));
    }
  }
}

TEST_CASE("above a branch the dimension varies") {
  FakeModel model = one_size(6);
  model.path = [](const Sizes& s) { return s[0][0] > 4 ? "large" : "small"; };
  CHECK(shapes_text(model, model.probe()) == "x[batch, 8]");
}

TEST_CASE("where larger sizes are refused, smaller ones are tried") {
  FakeModel model = one_size(16);
  model.refuse = [](const Sizes& s) {
    return refuse_unless(s[0][0] <= 16 && s[0][1] == 8, "expected at most 16");
  };
  const ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) == "x[batch, 8]");
  CHECK(result.symbols[0].max == 16);
  CHECK(result.symbols[0].tried.back() == 16);
  for (const auto& setting : unseen_settings(result, 8)) CHECK(setting[0] <= 16);
}

TEST_CASE("a size of one with a path of its own is left for the path of the others") {
  FakeModel model = one_size(1);
  model.path = [](const Sizes& s) { return s[0][0] == 1 ? "one" : "many"; };
  const ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) == "x[batch, 8]");
  CHECK(result.base_parted);
  for (const ProbedRun& run : result.runs) CHECK(run.values[0] > 1);
}

TEST_CASE("a size of one that must be one is fixed, and so is an empty one") {
  FakeModel model = one_size(1);
  model.refuse = [](const Sizes& s) {
    return refuse_unless(s[0] == std::vector<std::int64_t>{1, 8}, "expected one row of 8");
  };
  ProbeResult result = model.probe();
  CHECK(fixed_text(model, result) ==
        "x:0=1 (expected one row of 8); x:1=8 (expected one row of 8)");
  model = one_size(0);
  result = model.probe();
  CHECK(fixed_text(model, result) == "x:0=0 (its size is 0); x:1=8 (expected 8 features)");
}

TEST_CASE("several calls tell groups apart before any trial") {
  FakeModel model;
  model.names = {"x", "y"};
  model.example = {{5, 5}, {5, 5}};
  model.more_calls = {{{5, 9}, {5, 9}}};
  model.refuse = [](const Sizes& s) { return refuse_unless(s[0] == s[1], "x and y differ"); };
  CHECK(shapes_text(model, model.probe()) == "x[batch, x_dim_1] y[batch, x_dim_1]");
}

TEST_CASE("sizes that only fail together are fixed with the reason") {
  FakeModel model;
  model.names = {"x"};
  model.example = {{5, 7}};
  model.refuse = [](const Sizes& s) {
    return refuse_unless(s[0][0] == 5 || s[0][1] == 7, "not both at once");
  };
  const ProbeResult result = model.probe();
  CHECK(result.symbols.size() == 1);
  REQUIRE(result.fixed.size() == 1);
  CHECK(result.fixed[0].reason == "not both at once");
}

TEST_CASE("a size that is refused below the example and runs above it begins there") {
  FakeModel model;
  model.names = {"input_ids"};
  model.example = {{13, 7}};
  model.refuse = [](const Sizes& s) { return s[0][1] < 7 ? "no <eos>" : ""; };
  const ProbeResult result = model.probe();
  REQUIRE(result.symbols.size() == 2);
  CHECK(result.fixed.empty());
  CHECK(result.symbols[1].min == 7);
  CHECK(result.symbols[1].tried.front() == 7);
  CHECK(result.symbols[1].tried.back() > 7);
  CHECK(result.symbols[1].below == "no <eos>");
}

// ---- what the user says -------------------------------------------------------------------------

TEST_CASE("the user's static dimensions are not tried") {
  FakeModel model = one_size(5);
  model.request(0, 0).kind = DimRequest::Kind::kStatic;
  model.request(0, 1).kind = DimRequest::Kind::kStatic;
  const ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) == "x[5, 8]");
  CHECK(fixed_text(model, result) ==
        "x:0=5 (dynamic_shapes says so); x:1=8 (dynamic_shapes says so)");
  CHECK(result.trials == 1);
  CHECK(unseen_settings(result, 4).empty());
}

TEST_CASE("the user's names are the symbols' names and say what belongs together") {
  FakeModel model;
  model.names = {"x", "y"};
  model.example = {{5, 7}, {5, 7}};
  model.request(0, 0) = {DimRequest::Kind::kDynamic, "rows", 0, INT64_MAX};
  model.request(1, 0) = {DimRequest::Kind::kDynamic, "rows", 0, INT64_MAX};
  model.request(0, 1) = {DimRequest::Kind::kDynamic, "left", 0, INT64_MAX};
  model.request(1, 1) = {DimRequest::Kind::kDynamic, "right", 0, INT64_MAX};
  CHECK(shapes_text(model, model.probe()) == "x[rows, left] y[rows, right]");
  model.example = {{5, 7}, {6, 7}};
  CHECK(
      error_of(ErrorCode::kInvalidInput, [&] { (void)model.probe(); }) ==
      "[export] Expected every dimension named 'rows' to have one size, got 5 and 6 (axis 0 of y). "
      "Give them different names.");
}

TEST_CASE("the user's bounds hold for every size that is tried") {
  FakeModel model = one_size(5);
  model.request(0, 0).min = 4;
  model.request(0, 0).max = 12;
  const ProbeResult result = model.probe();
  CHECK(shapes_text(model, result) == "x[batch, 8]");
  CHECK(result.symbols[0].min == 4);
  CHECK(result.symbols[0].max == 12);
  for (const Sizes& run : model.runs) {
    CHECK(run[0][0] >= 4);
    CHECK(run[0][0] <= 12);
  }
  for (const auto& setting : unseen_settings(result, 10)) {
    CHECK(setting[0] >= 4);
    CHECK(setting[0] <= 12);
  }
}

TEST_CASE("bounds that leave no size are refused") {
  FakeModel model;
  model.names = {"x", "y"};
  model.example = {{5}, {5}};
  model.request(0, 0) = {DimRequest::Kind::kDynamic, "rows", 8, INT64_MAX};
  model.request(1, 0) = {DimRequest::Kind::kDynamic, "rows", 0, 6};
  CHECK(error_of(ErrorCode::kInvalidInput, [&] { (void)model.probe(); }) ==
        "[export] Expected bounds that leave a size, got min 8 and max 6 (axis 0 of x).");
}

TEST_CASE("a dimension that must vary and cannot is an error with the model's reason") {
  FakeModel model = one_size(5);
  model.request(0, 1).kind = DimRequest::Kind::kDynamic;
  CHECK(error_of(ErrorCode::kDiverged, [&] { (void)model.probe(); }) ==
        "[export] Expected axis 1 of x to be dynamic as dynamic_shapes asks, but at other sizes "
        "than 8 "
        "the model gives: expected 8 features. Mark it static, or change the model there.");
}

TEST_CASE("an example that the model refuses is an error") {
  FakeModel model = one_size(5);
  model.example = {{5, 9}};
  CHECK(error_of(ErrorCode::kInvalidInput, [&] { (void)model.probe(); }) ==
        "[export] Expected an example call that the model accepts, but the model raised expected 8 "
        "features. Check the inputs against the model's forward.");
}

// ---- sizes and names ----------------------------------------------------------------------------

TEST_CASE("settings for checking are new, apart from each other, and within bounds") {
  FakeModel model = decoder(2, 7, 11);
  const ProbeResult result = model.probe();
  const auto settings = unseen_settings(result, 6);
  REQUIRE(settings.size() == 6);
  CHECK(settings[0] == std::vector<std::int64_t>(3, 1));
  std::vector<std::set<std::int64_t>> seen;
  for (const ProbedSymbol& s : result.symbols) seen.emplace_back(s.tried.begin(), s.tried.end());
  for (std::size_t k = 1; k < settings.size(); ++k) {
    CHECK(model.refuse(sizes_at(result, settings[k])).empty());
    std::set<std::int64_t> in_setting;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const bool costly = volume(sizes_at(result, settings[k])) > kSmallVolume / 4;
      CHECK((seen[i].insert(settings[k][i]).second || costly));
      CHECK(in_setting.insert(settings[k][i]).second);
      CHECK(settings[k][i] >= 2);
    }
  }
}

TEST_CASE("primes are found above and below") {
  CHECK(is_prime(2));
  CHECK(is_prime(97));
  CHECK_FALSE(is_prime(1));
  CHECK_FALSE(is_prime(91));
  CHECK(prime_above(7, {}) == 11);
  CHECK(prime_above(7, {11, 13}) == 17);
  CHECK(prime_above(0, {}) == 2);
  CHECK(prime_below(12, {}) == 11);
  CHECK(prime_below(12, {11, 7}) == 5);
  CHECK(prime_below(9, {7, 5, 3, 2}) == 8);
  CHECK(prime_below(2, {}) == 0);
  CHECK(prime_below(3, {2}) == 0);
}

TEST_CASE("symbols are named after the inputs they were found in") {
  CHECK(symbol_name("input_ids", 0, 2) == "batch");
  CHECK(symbol_name("input_ids", 1, 2) == "sequence");
  CHECK(symbol_name("past_key_values.3.key", 2, 4) == "past");
  CHECK(symbol_name("past_key_values.0.encoder.key", 2, 4) == "encoder_sequence");
  CHECK(symbol_name("pixel_values", 3, 4) == "width");
  CHECK(symbol_name("x", 0, 1) == "x_dim_0");
  CHECK(symbol_name("x", 0, 2) == "batch");
  CHECK(symbol_name("a.b-c", 1, 2) == "a_b_c_dim_1");
  CHECK(symbol_name("0", 1, 2) == "input_0_dim_1");
  CHECK(without_numbers("past_key_values.12.key") == "past_key_values.#");  // with the values
  CHECK(without_numbers("x1y22") == "x#y#");
}
