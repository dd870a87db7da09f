// Where a model would have answered a question about sizes otherwise, and what follows for a file.
//
// The ways of the runs through the model's questions are a tree. At every question with one answer
// so far, the experiment goes to the nearest sizes that lead there and have the other answer: the
// same program there is fine, and its way is explored in turn; another program is a branch, a
// refusal is a bound. What is not settled so is required by the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fairlead/trace/program.h"

namespace fairlead {

struct SymbolRange {
  std::int64_t min = 1;
  std::int64_t max = INT64_MAX;
};

// The nearest setting on the other side of a guard.
struct Flip {
  std::size_t guard = 0;
  // Answers that led there, and that runs of this program have otherwise elsewhere; then its own.
  std::vector<GuardPath::Step> way;
  std::vector<std::int64_t> setting;  // by symbol
  int symbol = -1;                    // the one that changed; -1: several
  // Whether every size beyond, as far as one looks, has the other answer, and none before, whatever
  // else was asked: then the guard is a bound of that symbol.
  bool bound = false;
  std::string key;         // the same for the same question
  std::string family;      // the same for all steps of a loop that asks it; none where no loop does
  bool by_values = false;  // a run at these sizes may go another way, by what it reads
  // One of more ways than can be tried, to a question that was looked behind elsewhere.
  bool spare = false;
  // Nothing but a sign, the last of them: there are more than these, mostly about `symbol`.
  bool rest = false;
};

[[nodiscard]] std::vector<Flip> flips(const Program& program,
                                      const std::vector<SymbolRange>& symbols);

// Has the file refuse, or another program of it take, what a flip leads to. In words; none, and
// nothing is required, where a run of this program would be refused by it.
std::string require(Program& program, const Flip& flip);

}  // namespace fairlead
