// Two runs around the operator where they part, in words: what a report shows of a model that
// branches.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fairlead/trace/run.h"

namespace fairlead {

struct OpView {
  std::size_t number = 0;
  std::string op;         // "aten.view.default"
  std::string arguments;  // "self: float32[2, 3], size: [6]"
  std::string results;    // "float32[6]"
  std::string module;
  std::string source;
};

struct Parting {
  // The first operator that differs, or that another line of the model called; kSameProgram: the
  // runs are one program.
  std::size_t op = kSameProgram;
  std::vector<OpView> common;  // the last operators before it, as the first run had them
  std::vector<OpView> first;   // from it on, in each run
  std::vector<OpView> second;
  std::size_t first_count = 0;  // operators of each run
  std::size_t second_count = 0;
};

// `context` operators before the parting and after it.
[[nodiscard]] Parting parting(const Vocabulary& vocabulary, const Run& first, const Run& second,
                              std::size_t context);

// The first operator that writes where a value shares its storage in one of two runs of the same
// operators and is a copy in the other, and somebody sees it; kSameProgram: none. No loop explains
// that.
[[nodiscard]] std::size_t first_other_storage(const Run& a, const Run& b);

}  // namespace fairlead
