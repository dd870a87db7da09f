// What an experiment found, for the contract: symbols with their sizes, dimensions that are fixed
// and why, and notes. Sentences are made here and nowhere else.
#pragma once

#include <cstdint>
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

// shapes: of the inputs of the file's program, over the symbols of `pool`.
[[nodiscard]] Described describe(const Lab& lab, const ExprPool& pool,
                                 const std::vector<std::vector<Expr>>& shapes);

// What the checks of a file do not prove of it.
struct Reserves {
  struct Assumed {
    std::string kind;  // "values", "state"
    std::string what;
    std::string source;
  };
  std::vector<std::string> notes;
  std::vector<Assumed> assumed;
};

[[nodiscard]] Reserves reserves(const std::vector<Fact>& facts, std::int64_t file);

// Why a check failed, as part of another sentence: "output 'y' differs by 0.5 (scaled) at n = 3".
[[nodiscard]] std::string cause_of(const Finding& finding);

// What the error of a failed check says beside its cause.
struct Around {
  std::string runtime;        // "ONNX Runtime"
  std::string model;          // what it is compared with: "eager"
  std::string nothing;        // "No file was written under model.onnx."
  std::string read, read_at;  // a value that is taken to be the same, and where it was read
  std::string drawn;          // operators that draw
};
[[nodiscard]] std::string sentence_of(const Finding& finding, const Around& around);

// A cause in words: "the model executes aten.tanh instead of aten.relu".
[[nodiscard]] std::string words_of(const Evidence& evidence);

}  // namespace fairlead
