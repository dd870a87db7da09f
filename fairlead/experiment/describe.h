// What an experiment found, for the contract: symbols with their sizes, dimensions that are fixed
// and why, and notes. Sentences are made here and nowhere else.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fairlead/experiment/experiment.h"

namespace fairlead {

struct SymbolRow {
  std::string name;
  std::vector<std::int64_t> tried;
  std::int64_t min = 1;
  std::int64_t max = kLargest;
  Place place = {kNowhere, kNowhere};  // the first that it is; nowhere: only multiples
};

struct FixedRow {
  Place place;
  std::int64_t size;
  std::string reason;
  bool branches;  // because the model executes other operators at other sizes
};

struct Described {
  std::vector<SymbolRow> symbols;
  std::vector<FixedRow> fixed;
  std::vector<std::string> notes;
};

// shapes: of the inputs of the file's program, as text.
[[nodiscard]] Described describe(const Lab& lab,
                                 const std::vector<std::vector<std::string>>& shapes);

// A cause in words: "the model executes aten.tanh instead of aten.relu".
[[nodiscard]] std::string words_of(const Evidence& evidence);

}  // namespace fairlead
