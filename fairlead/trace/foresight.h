// What a run says of other sizes before the model is run there: the answers to its questions.
#pragma once

#include <cstdint>
#include <vector>

#include "fairlead/graph/graph.h"
#include "fairlead/trace/guard.h"
#include "fairlead/trace/run.h"

namespace fairlead {

class Foresight {
 public:
  Foresight(const Vocabulary& vocabulary, const Run& run);

  // Whether every question that follows from sizes of inputs, by the rules of the operators, has the
  // answer at these sizes, by input, that it had in the run. What follows from other things is not
  // known.
  [[nodiscard]] bool keeps(const std::vector<std::vector<std::int64_t>>& sizes) const;

 private:
  void add_inputs();
  void add_results(const Vocabulary& vocabulary, const OpRecord& record);
  [[nodiscard]] bool reads(std::uint32_t& at, Arg& arg);
  [[nodiscard]] bool is_known(RunValue v);
  [[nodiscard]] Expr number(CarryId id);
  [[nodiscard]] Expr made_by(const Carry& node);
  void add_guard(const Guard& guard);

  const Run& run_;
  Graph graph_;  // values as the run numbers them; a symbol for each dimension of each input
  ExprPool& pool_ = *graph_.pool;
  std::vector<std::int64_t> seen_;  // sizes of the inputs in the run
  std::vector<char> known_;         // by value: its sizes are
  std::vector<Expr> numbers_;       // by node of the run; null where it is not known
  std::vector<char> looked_at_;     // by node
  std::vector<ProgramGuard> guards_;
};

}  // namespace fairlead
