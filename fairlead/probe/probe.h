// Finds by trying which dimensions of a model's inputs may vary, and how they hang together.
//
// Stages
//  1. Dimensions of equal size (over all observed calls) form a group: the hypothesis that they are
//     one symbol. Dimensions of size 1 only group with others at the same axis.
//  2. Each group is changed alone. Refused, or another program: the group is tried together with a
//     group that is its sum with a third (attention_mask = past + sequence), then in parts, then in
//     multiples of parts of its size, then at smaller sizes only; if nothing runs, its dimensions
//     are fixed, with the model's own reason. A large batch that runs small stays small from then
//     on.
//  3. Groups that run are split where a part of them may move alone, both up and down, and still
//     execute the same program (the two towers of CLIP).
//  4. Settings with every symbol changed at once confirm the whole; what fails there is fixed.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/base/task.h"
#include "fairlead/symbol/expr.h"

namespace fairlead {

using Sizes = std::vector<std::vector<std::int64_t>>;  // by leaf, then axis

// A dimension of an input.
struct Place {
  std::size_t leaf;
  std::size_t axis;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// What the user said about a dimension.
struct DimRequest {
  enum class Kind : std::uint8_t {
    kAuto,     // to be found out
    kStatic,   // stays as it is
    kDynamic,  // must vary: it is an error where it cannot
  };
  Kind kind = Kind::kAuto;
  std::string name;  // dimensions of one name are one symbol
  std::int64_t min = 0;
  std::int64_t max = INT64_MAX;
};

struct Leaf {
  std::string name;                  // "past_key_values.0.key"
  std::vector<DimRequest> requests;  // by axis
};

struct ProbeRequest {
  std::vector<Leaf> leaves;
  std::vector<Sizes> calls;  // observed calls, at least one; the first is the base
  // Seconds to explore for, besides a hundred runs of the example. What is not tried by then stays
  // as it is, and says so; there is no end where the user asks for a dimension to be dynamic.
  double patience = 60;
};

struct TrialResult {
  int run = -1;               // the recorded run, where it worked
  bool parted = false;        // it ran another program than the reference
  bool untried = false;       // there was no time for it
  bool visible = true;        // some number in the run differs from the reference
  bool enough = false;        // a brief run that was ended: like the reference so far
  std::string reason;         // the model's error, or where the runs parted
  double seconds = 0;         // that it took
  std::size_t operators = 0;  // of the run
  [[nodiscard]] bool ok() const { return run >= 0 || enough; }
};

// Runs the model at these sizes, compared with run `reference` unless it is -1.
using Trial = std::function<TrialResult(const Sizes& sizes, int reference)>;
// The same, asked of someone else; a brief one may end early.
using AskTrial = std::function<Task<TrialResult>(const Sizes& sizes, int reference, bool brief)>;

// Without a run: which of these sizes is the first at which the questions of run `reference` would
// have the answers that they had; -1 where none is, or nothing is known.
using AskForesight = std::function<Task<int>(std::vector<Sizes> sizes, int reference)>;

struct ProbedSymbol {
  std::string name;
  std::vector<std::int64_t> tried;  // sizes that ran, sorted
  std::int64_t min = 1;             // bounds: the user's, and what the model refused
  std::int64_t max = INT64_MAX;
  bool other_above = false;  // at larger sizes the model executes another program
  bool other_below = false;  // at smaller ones
  std::string reason;        // what it executes above
  std::string below;         // what it raised below `min`
};

struct FixedDim {
  enum class Why : std::uint8_t {
    kRefused,   // the model raises at other sizes
    kBranches,  // it executes other operators there
    kZero,      // the size is 0
    kOne,       // the size is 1, and no larger one was allowed
    kAsked,     // the user said so
    kUntried,   // there was no time to try
  };
  std::size_t leaf;
  std::size_t axis;
  std::int64_t size;
  Why why;
  std::string reason;
};

struct ProbedRun {
  int run;
  std::vector<std::int64_t> values;  // by symbol
};

struct ProbeResult {
  std::shared_ptr<ExprPool> pool;  // symbols in the order of `symbols`
  std::vector<ProbedSymbol> symbols;
  std::vector<std::vector<Expr>> shapes;  // by leaf
  std::vector<FixedDim> fixed;
  std::vector<ProbedRun> runs;  // one program; the first is the reference
  std::size_t trials = 0;
  bool base_parted = false;  // the example itself runs another program (a size of 1)
};

// Throws Error(kInvalidInput) where the example itself is refused, Error(kDiverged) where a
// dimension that the user asked to be dynamic cannot be.
[[nodiscard]] ProbeResult probe(const ProbeRequest& request, const Trial& trial);
// The same, which stops where a trial does; all have to outlive it.
[[nodiscard]] Task<ProbeResult> probing(const ProbeRequest& request, const AskTrial& trial,
                                        const AskForesight* foresight = nullptr);

// Throws Error(kInvalidInput): the user's largest size is less than one that ran.
[[noreturn]] void refuse_largest(std::string_view name, std::int64_t least, std::int64_t most);

// Bounds a symbol after the fact: no setting for checking goes beyond `most`. False where no symbol
// has this name. Throws Error(kInvalidInput) where it ran at a larger size already.
[[nodiscard]] bool limit_symbol(ProbeResult& result, std::string_view name, std::int64_t most);

// Bounds a symbol, by number, to where the model is known to execute this program: all its runs
// are within.
void bound_symbol(ProbeResult& result, std::size_t symbol, std::int64_t least, std::int64_t most);

// Sizes for checking: every symbol at a value that no run used, but where that would cost many
// times the example. Setting 0 has every size 1.
[[nodiscard]] std::vector<std::vector<std::int64_t>> unseen_settings(const ProbeResult& result,
                                                                     std::size_t count);
// Sizes far from those that ran, one symbol at a time: where integers that only fit the runs would
// show that they are others. At most `each` per symbol.
[[nodiscard]] std::vector<std::vector<std::int64_t>> far_settings(const ProbeResult& result,
                                                                  std::size_t each);
[[nodiscard]] Sizes sizes_at(const ProbeResult& result, const std::vector<std::int64_t>& values);

}  // namespace fairlead
