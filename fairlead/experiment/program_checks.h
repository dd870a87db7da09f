// The checks of a file whose program was read and not recorded: nothing is learnt from them but
// whether it is right. Steps out, answers in, as with an experiment.
#pragma once

#include <optional>

#include "fairlead/experiment/asking.h"
#include "fairlead/experiment/check_plan.h"
#include "fairlead/experiment/facts.h"
#include "fairlead/experiment/judging.h"

namespace fairlead {

class ProgramChecks {
 public:
  ProgramChecks(ProbeResult probed, CheckRequest request);
  ProgramChecks(const ProgramChecks&) = delete;
  ProgramChecks& operator=(const ProgramChecks&) = delete;

  // Check, Look, or the end: Done, or Failed with a finding or a problem.
  [[nodiscard]] const Step& step() const { return asking_.step_; }
  [[nodiscard]] bool over() const { return asking_.over(); }
  void answer(Answer answer, double seconds);
  [[nodiscard]] const std::vector<Fact>& ledger() const { return ledger_.facts(); }
  [[nodiscard]] const std::vector<CheckedRow>& rows() const { return found_.rows; }

 private:
  Task<void> all();

  ProbeResult probed_;
  CheckPlan plan_;
  Asking asking_;
  Ledger ledger_;
  Judge judge_{asking_, ledger_};
  CheckedRows found_;
  std::optional<Task<void>> task_;
};

}  // namespace fairlead
