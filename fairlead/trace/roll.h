// Runs with their loops rolled: each loop is one operator, and each of its steps a run of its own.
//
// What a step computes on is (1) made in it, (2) made before the loop: an invariant, or (3) made in
// the step before it, in the first one before the loop: it is carried. What the loop leaves behind
// is what was carried last, and what every step made: the list that torch.stack or torch.cat joins.
// A tensor that is taken apart and joined again, as many parts as a size says, is rolled too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fairlead/trace/loops.h"
#include "fairlead/trace/run.h"

namespace fairlead {

// The steps of one loop, in all runs: aligned runs themselves. Their inputs are the invariants,
// then what is carried; their outputs what is carried on, then what is collected.
struct LoopSteps {
  std::vector<Run> steps;
  std::vector<std::size_t> run_of;  // by step
  std::vector<std::int64_t> number_of;
  std::size_t invariants = 0;
  std::size_t carried = 0;
};

// The operator of loop k is fairlead.loop(k, number of steps, [invariants], [carried]) with what
// was carried last and the collected values (steps first) as results.
struct Rolled {
  Vocabulary vocabulary;
  std::vector<Run> runs;
  // By run: values of the run as it was recorded -> its own, for those outside of loops.
  std::vector<std::unordered_map<RunValue, RunValue>> values;
  std::vector<LoopSteps> loops;
  // Operators of the first run that read lists of numbers, as long as a size says, which no loop
  // goes over: what the model does with them is seen, but not that it is by them.
  std::vector<OpRecord> unread;
};

// nullopt where the steps of a loop do not hang together like this, or the runs are not one
// program.
[[nodiscard]] std::optional<Rolled> roll(const Vocabulary& vocabulary,
                                         std::span<const Run* const> runs);

}  // namespace fairlead
