// What a run says of other sizes before the model is run there: the answers to its questions.
#pragma once

#include <cstdint>
#include <vector>

#include "fairlead/symbol/expr.h"
#include "fairlead/trace/guard.h"
#include "fairlead/trace/run.h"

namespace fairlead {

class Foresight {
 public:
  explicit Foresight(const Run& run);

  // Whether every question that follows from sizes of inputs alone has the answer at these sizes,
  // by input, that it had in the run. What follows from other things is not known.
  [[nodiscard]] bool keeps(const std::vector<std::vector<std::int64_t>>& sizes) const;

 private:
  ExprPool pool_;  // a symbol for each dimension of each input, in order
  std::vector<ProgramGuard> guards_;
};

}  // namespace fairlead
