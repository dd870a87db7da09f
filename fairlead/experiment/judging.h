// How a check that differs is judged: what excuses it, and what it comes from. Nothing runs here:
// the file is compared again, or one fact is looked at (steps.h), and numbers decide.
//
// A difference proves nothing, which the ledger keeps with its reason (FactKind::kUnproven), where
// 1. integers that were made up go beyond what double holds, in which ONNX Runtime has some;
// 2. eager itself moves as far where its inputs are rounded otherwise, up to a limit;
// 3. at other sizes: other integers than the example's stop the file, or lead elsewhere in the code
//    of a package, and with the example's it is right; or few elements differ, and eager itself
//    jumps at each of them: numbers that are drawn have a tie now and then;
// 4. at other values: they lead elsewhere in the code of a package; or nothing is selected, and
//    there is NaN or nothing to compute with; or eager jumps there, at a tie or a threshold;
// 5. or the file has what the model computes while it is traced.
// Else it branches, or takes something from outside, or differs from itself, or the file is wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/experiment/asking.h"
#include "fairlead/experiment/check_plan.h"
#include "fairlead/experiment/facts.h"

namespace fairlead {

// A call, what was measured there, and what is known of it since.
struct Judged {
  Verdict verdict = Verdict::kRight;
  Check check;
  Checked checked;
  Why excuse = Why::kNone;         // the numbers differ, and it is right for this reason
  std::optional<Looked> executed;  // Look::What::kOperators, where that was asked

  [[nodiscard]] bool fails() const {
    return verdict == Verdict::kDiffers || verdict == Verdict::kUnable;
  }
};

// The figures of one check, for the contract.
struct CheckedRow {
  int number = -1;  // Checked::number
  bool right = true;
  Why excuse = Why::kNone;
};

// What the checks of a program came to.
struct CheckedRows {
  std::vector<CheckedRow> rows;
  bool draws = false;    // the model draws random numbers
  bool changes = false;  // a call changes the model
};

// Thrown where the model cannot be recorded, for an error that the driver keeps.
struct Unlooked {
  Problem problem;
};

class Judge {
 public:
  Judge(Asking& asking, Ledger& ledger) : asking_(asking), ledger_(ledger) {}
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  // From now on, checks are of another file: what was said of the last one is not of this.
  void begin_file() {
    ++file_;
    jumped_.reset();
  }
  // The last check of this file that was excused because eager itself jumps.
  [[nodiscard]] const std::optional<Check>& jumped() const { return jumped_; }
  [[nodiscard]] std::int64_t file() const { return file_; }

  // Every check of a plan, until one fails.
  Task<std::optional<Judged>> first_failing(CheckPlan& plan, ProgramId program, CheckedRows& found);
  Task<Judged> judge(Check check);
  // Only whether the file is right there, for the question who is to blame elsewhere.
  Task<bool> differs(Check check);
  // Only whether the model executes other operators there.
  Task<bool> parts(Check check);
  // What a difference comes from. May throw Unlooked.
  Task<Finding> finding(Judged judged);
  // What the example's second call says of the first.
  Task<void> look_at_state(ProgramId program);

 private:
  Task<void> judge_further(Judged& judged);
  Task<Judged> compared(Check check);
  Task<bool> moves_too(Judged& judged, Look::What what, Why why);
  Task<bool> rounds_alike(Judged& judged);
  Task<void> try_example_integers(Judged& judged);
  Task<bool> is_tied(Judged& judged);
  Task<bool> goes_by_values(Judged& judged);
  Task<bool> is_excused(Judged& judged);
  Task<bool> is_of_tracing(const Judged& judged);
  Task<Looked> look(Look::What what, Check at, std::string output);
  Task<Looked> executed(Judged& judged);
  bool is_of_a_package(const Judged& judged, const Looked& executed);
  void add(const Judged& judged, Evidence evidence);

  Asking& asking_;
  Ledger& ledger_;
  std::int64_t file_ = 0;
  std::optional<Check> jumped_;
};

}  // namespace fairlead
