// An experiment written down: the request, every step with its answer, and the ledger at the end,
// as JSON. It is a bug report, and a test that needs neither model nor torch.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/experiment/experiment.h"

namespace fairlead {

class Transcript {
 public:
  explicit Transcript(const Request& request);
  // A step and what was answered; before the experiment goes on.
  void add(const Step& step, const Answer& answer, double seconds);
  // The whole, with where the experiment is now.
  [[nodiscard]] std::string text(const Experiment& experiment) const;

 private:
  std::string text_;
  bool first_ = true;
};

// Gives an experiment the answers of a transcript. Nothing where it asks the same and ends with the
// same ledger; else the first difference. Throws Error(kParse) where it is no transcript.
[[nodiscard]] std::string replay(std::string_view transcript);

}  // namespace fairlead
