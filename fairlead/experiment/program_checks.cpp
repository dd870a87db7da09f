// Goes through the checks of one program.
#include "fairlead/experiment/program_checks.h"

#include <utility>

namespace fairlead {

ProgramChecks::ProgramChecks(ProbeResult probed, CheckRequest request)
    : probed_(std::move(probed)), plan_(probed_, std::move(request)) {
  task_ = all();
  task_->start();
  if (task_->done()) task_->result();
}

void ProgramChecks::answer(Answer answer, double seconds) {
  FAIRLEAD_CHECK(!over(), "an answer after the end");
  asking_.take(std::move(answer), seconds);
  if (task_->done()) task_->result();
}

Task<void> ProgramChecks::all() {
  const std::optional<Judged> failing = co_await judge_.first_failing(plan_, 0, found_);
  if (!failing) {
    asking_.step_ = Done{};
    co_return;
  }
  Failed failed;
  failed.problem = failing->checked.problem.number;
  if (failing->verdict == Verdict::kDiffers) {
    try {
      failed.finding = co_await judge_.finding(*failing);
    } catch (const Unlooked& unlooked) {
      failed.problem = unlooked.problem.number;
    }
  }
  asking_.step_ = std::move(failed);
}

}  // namespace fairlead
