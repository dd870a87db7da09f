// Python loops whose number of steps follows from a size: found by comparing two runs.
//
// A model that steps over tokens executes its loop's operators once per token, so that runs at
// different sizes part where the shorter one leaves the loop. There the longer run repeats itself:
// the same operators at the same lines, period after period.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "fairlead/trace/run.h"

namespace fairlead {

// A loop of the reference run: `count` times `period` operators from `start` on.
struct Loop {
  std::size_t start = 0;
  std::size_t period = 0;
  std::size_t count = 0;
};

// Where a loop lies in each of several runs.
struct LoopPlaces {
  std::size_t period = 0;
  std::vector<std::size_t> starts;  // by run
  std::vector<std::size_t> counts;
};

// Whether an operator is the same call at the same line, whatever it computes on; lists of tensors
// may differ in length.
[[nodiscard]] bool same_call(const Run& a, std::size_t i, const Run& b, std::size_t j);

// Whether operator `op`, the last one of `run` so far, may be where one of the runs goes on in a
// loop that the other has left.
[[nodiscard]] bool may_be_loop(const Run& reference, const Run& run, std::size_t op);

// The loops without which the runs are one program, each with its place in every run; nullopt where
// none explain the difference. Without any the runs may still differ in how many tensors lists
// hold. Whether the operators compute on the same values is left to roll().
[[nodiscard]] std::optional<std::vector<LoopPlaces>> find_loops(std::span<const Run* const> runs);

}  // namespace fairlead
