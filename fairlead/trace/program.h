// From aligned runs to the program: integers solved, in-place operators made functional.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fairlead/graph/graph.h"
#include "fairlead/symbol/solve.h"
#include "fairlead/trace/guard.h"
#include "fairlead/trace/run.h"

namespace fairlead {

struct Rolled;

struct InputSpec {
  std::string name;
  std::vector<Expr> shape;
  bool solved = true;  // otherwise its shape is to be solved from the runs
};

// A value that the model read from a tensor and that never varied although inputs decide it.
struct Assumption {
  std::string kind;  // "read", "random"
  std::string what;  // "aten._local_scalar_dense gave 1 in every run"
  std::string module;
  std::string source;
  std::optional<bool> answer = std::nullopt;  // a flag that was read
};

// The sizes of an operator's results at other sizes of its arguments, asked of PyTorch without
// data: by setting (a value for every symbol of the pool), result and axis. Empty where it refuses.
using AskAlone = std::function<std::vector<std::vector<std::vector<std::int64_t>>>(
    const Graph&, const Node&, const std::vector<std::vector<std::int64_t>>&)>;

struct ProgramRequest {
  const Vocabulary* vocabulary = nullptr;
  std::vector<const Run*> runs;  // aligned, at least one; the first is the reference
  std::vector<std::vector<std::int64_t>> symbols;  // values by run, then SymbolId
  std::vector<InputSpec> inputs;                   // by leaf; shapes in `pool`
  std::vector<std::string> output_names;           // by leaf
  std::shared_ptr<ExprPool> pool;
  // What the model writes to inputs and buffers becomes further outputs, listed in
  // Program::targets.
  bool keep_writes = false;
  const Rolled* rolled = nullptr;         // where loops were rolled: their steps
  std::vector<const Run*> recorded = {};  // then: the runs as they were recorded
  bool nested = false;                // the steps of a loop: symbols come from the graph around it
  Expr step = nullptr;                // then: the symbol that counts them
  std::vector<Expr> step_parts = {};  // what it says of loops in each other that are one
  int first_symbol = 0;               // the number of the first symbol that is met
  AskAlone ask_alone = {};
  bool one_program = false;  // the runs are known to execute the same operators
};

// An integer that nothing remembered and no rule gives: what was found fits the runs, and no more
// is known of it.
struct Fitted {
  Expr expr = nullptr;
  std::string what;  // "size 1 of the result"
  std::string op;
  std::string module;
  std::string source;
};

// The questions of one run in order, and its sizes by symbol.
struct GuardPath {
  struct Step {
    std::size_t guard;
    bool answer;
  };
  std::vector<Step> steps;
  std::vector<std::int64_t> setting;
};

struct Program {
  Graph graph;
  std::vector<ProgramGuard> guards;
  std::vector<GuardPath> paths;  // the runs, each way once
  bool by_ways = false;          // some number follows from several questions together
  std::vector<Assumption> assumptions;
  std::vector<std::string> written_inputs;  // inputs and buffers that the model writes
  std::vector<ValueId> targets;  // the inputs and constants that the last outputs are written to
  std::vector<Fitted> fitted;
  // Settings behind whose answers a number was the same, and may not be at sizes beside them.
  std::vector<std::vector<std::int64_t>> thin;
  // Settings at which a number that forgot is one that no run had.
  std::vector<std::vector<std::int64_t>> unseen;
  std::size_t ambiguous = 0;  // integers with a second simple answer
  std::size_t fragile = 0;    // integers whose answer rounds or bounds: few runs fit many such
  int symbols_met = 0;        // sizes that data decides and values read, so far
};

// Throws Error(kDiverged) where the runs are not one program, Error(kUnsolved) where an integer or
// a float has no expression, both with module path and source line.
[[nodiscard]] Program build_program(const ProgramRequest& request);

}  // namespace fairlead
