// Judges checks. The numbers in the comments are those of judging.h.
#include "fairlead/experiment/judging.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fairlead {
namespace {

using Kind = Check::Kind;
using Outcome = Checked::Outcome;
using How = Check::How;

// Beyond it not every integer is a double.
constexpr std::int64_t kExact = std::int64_t{1} << 53;
// Times the tolerance: as far as an ill-conditioned model may be off, if eager itself is.
constexpr double kRounding = 100;
// Where all of an output cancels, its scale is this part of the inputs'.
constexpr double kOfInputs = 1.0 / 1024;
// Two other roundings of the inputs are a sample: the file may be off by some times what they show.
constexpr double kSample = 4;

bool is_made_up(const Check& check) { return check.kind != Kind::kCall; }

Verdict verdict_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kEqual:
      return Verdict::kRight;
    case Outcome::kDiffers:
    case Outcome::kFailed:
      return Verdict::kDiffers;
    case Outcome::kStopped:
      return Verdict::kStopped;
    case Outcome::kRefused:
      return Verdict::kRefused;
    case Outcome::kAbsent:
      return Verdict::kAbsent;
    case Outcome::kUnable:
      break;
  }
  return Verdict::kUnable;
}

// 1. Where shapes differ no integers are compared.
bool overflows(const Checked& checked) {
  return std::isfinite(checked.abs) && (checked.most > kExact || checked.least < -kExact);
}

// Whether numbers of the output can be compared at all.
bool is_measured(const Checked& checked) {
  return checked.outcome == Outcome::kDiffers && !checked.output.empty() &&
         std::isfinite(checked.abs);
}

// Whether the model is recorded for it, which may be refused.
bool records(Look::What what) {
  return what == Look::What::kOperators || what == Look::What::kOutside;
}

// Whether eager itself moves as far; NaN is no answer.
bool moves_as_far(const Checked& checked, const Looked& looked) {
  return looked.known && checked.abs <= kSample * looked.moved;
}

// The same of each element that differs.
bool moves_each(const Looked& looked) {
  return looked.known && looked.moved > 0 && looked.ratio <= kSample;
}

Evidence difference_of(const Checked& checked, Why why) {
  Evidence evidence;
  evidence.why = why;
  evidence.key = checked.output;
  evidence.at = checked.at;
  evidence.differs = checked.abs;
  return evidence;
}

}  // namespace

Task<std::optional<Judged>> Judge::first_failing(CheckPlan& plan, ProgramId program,
                                                 CheckedRows& found) {
  found = {};
  const double start = asking_.clock_;
  for (;;) {
    std::optional<Check> check = plan.next(asking_.clock_ - start);
    if (!check) co_return std::nullopt;
    check->program = program;
    Judged judged = co_await judge(*check);
    plan.told(*check, judged.verdict, judged.checked.parts);
    found.draws = found.draws || judged.checked.draws;
    found.changes = found.changes || judged.checked.changes;
    const bool right = judged.verdict == Verdict::kRight;
    if (right || judged.verdict == Verdict::kDiffers) {
      found.rows.push_back({judged.checked.number, right, judged.excuse});
    }
    if (judged.fails()) co_return judged;
  }
}

Task<Judged> Judge::judge(Check check) {
  Judged judged = co_await compared(std::move(check));
  if (judged.verdict == Verdict::kRefused && judged.check.kind == Kind::kSizes) {
    add(judged, difference_of(judged.checked, Why::kRefused));
  }
  if (judged.verdict != Verdict::kDiffers) co_return judged;
  try {
    co_await judge_further(judged);
  } catch (const Unlooked& unlooked) {
    judged.verdict = Verdict::kUnable;
    judged.checked.problem = unlooked.problem;
  }
  co_return judged;
}

// 3 to 5: what is made up may be excused.
Task<void> Judge::judge_further(Judged& judged) {
  const bool own = judged.check.how == How::kOwn;
  if (judged.check.kind == Kind::kSizes && own) co_await try_example_integers(judged);
  if (judged.check.kind == Kind::kSizes && judged.verdict == Verdict::kDiffers) {
    const bool tied = co_await is_tied(judged);
    if (tied) judged.excuse = Why::kJumps;
    if (tied) judged.verdict = Verdict::kRight;
  }
  if (judged.check.kind != Kind::kValues) co_return;
  bool excused = co_await is_excused(judged);
  if (!excused) excused = co_await is_of_tracing(judged);
  if (excused) judged.verdict = Verdict::kExcused;
}

Task<bool> Judge::differs(Check check) {
  const Judged judged = co_await compared(std::move(check));
  co_return judged.verdict == Verdict::kDiffers;
}

Task<bool> Judge::parts(Check check) {
  try {
    const Looked looked = co_await look(Look::What::kOperators, std::move(check), "");
    co_return looked.known&& looked.parted;
  } catch (const Unlooked&) {  // nobody is to blame by that
    co_return false;
  }
}

// The file against eager, where the numbers decide: 1 and 2. Where eager refuses integers that were
// made up, those of the example stand for them.
Task<Judged> Judge::compared(Check check) {
  Judged judged;
  judged.check = std::move(check);
  judged.checked = co_await asking_.ask<Checked>(judged.check);
  const bool others = judged.check.kind == Kind::kSizes && judged.check.how == How::kOwn;
  if (judged.checked.outcome == Outcome::kRefused && others) {
    judged.check.how = How::kExampleIntegers;
    judged.checked = co_await asking_.ask<Checked>(judged.check);
  }
  judged.verdict = verdict_of(judged.checked.outcome);
  if (judged.checked.outcome != Outcome::kDiffers) co_return judged;
  if (is_made_up(judged.check) && overflows(judged.checked)) {
    judged.excuse = Why::kOverflows;
    add(judged, difference_of(judged.checked, Why::kOverflows));
  } else if (!judged.checked.told) {
    const bool alike = co_await rounds_alike(judged);
    if (alike) judged.excuse = Why::kRounds;
  }
  if (judged.excuse != Why::kNone) judged.verdict = Verdict::kRight;
  co_return judged;
}

// Eager itself moves as far where its inputs are changed a little: said, with both figures.
Task<bool> Judge::moves_too(Judged& judged, Look::What what, Why why) {
  const Checked& checked = judged.checked;
  const Looked looked = co_await look(what, judged.check, checked.output);
  const bool moves = what == Look::What::kTied ? moves_each(looked) : moves_as_far(checked, looked);
  if (!moves) co_return false;
  if (why == Why::kJumps) jumped_ = judged.check;
  Evidence evidence = difference_of(checked, why);
  evidence.moves = looked.moved;
  add(judged, std::move(evidence));
  co_return true;
}

// 2. Sums of large terms that cancel. Only up to kRounding times the tolerance, of the output's
// scale or, where all of it cancels, of a part of the inputs'; beyond that it is a difference
// whatever the reason.
Task<bool> Judge::rounds_alike(Judged& judged) {
  const Checked& checked = judged.checked;
  if (!is_measured(checked) || checked.not_finite) co_return false;
  const double scale = std::max(checked.scale, checked.inputs * kOfInputs);
  const bool small = checked.abs > 0 && checked.abs <= kRounding * checked.tolerance * scale;
  if (!small) co_return false;
  const bool moves = co_await moves_too(judged, Look::What::kRounded, Why::kRounds);
  co_return moves;
}

// 3. The same sizes with the example's integers, where it is others that the file refuses aloud, or
// that lead elsewhere in a package's code. Else the check stays as it is.
Task<void> Judge::try_example_integers(Judged& judged) {
  const bool failed = judged.checked.outcome == Outcome::kFailed;
  bool others = failed;
  if (!others) others = co_await goes_by_values(judged);
  if (!others) co_return;
  Check check = judged.check;
  check.how = How::kExampleIntegers;
  Judged again = co_await compared(std::move(check));
  if (again.verdict != Verdict::kRight) co_return;
  if (failed) {
    Evidence evidence = difference_of(judged.checked, Why::kIntegers);
    evidence.text = judged.checked.text;
    add(judged, std::move(evidence));
  }
  judged = std::move(again);
}

// 3. Each element for itself: a file that is wrong differs where eager stays as it is, too.
Task<bool> Judge::is_tied(Judged& judged) {
  const Checked& checked = judged.checked;
  if (!is_measured(checked) || checked.not_finite || checked.told) co_return false;
  const bool moves = co_await moves_too(judged, Look::What::kTied, Why::kJumps);
  co_return moves;
}

// 3. Whether values, not sizes, lead elsewhere in a package's code: with the example's, the same
// sizes execute the same operators.
Task<bool> Judge::goes_by_values(Judged& judged) {
  const Looked own = co_await executed(judged);
  if (!own.known || !own.parted) co_return false;
  Check check = judged.check;
  check.how = How::kExampleIntegers;
  const Looked example = co_await look(Look::What::kOperators, std::move(check), "");
  co_return !example.parted && is_of_a_package(judged, own);
}

// 4.
Task<bool> Judge::is_excused(Judged& judged) {
  const Checked& checked = judged.checked;
  if (checked.output.empty()) co_return false;
  const Looked there = co_await executed(judged);
  // It branches, and that is known to the line.
  if (there.known && there.parted) co_return is_of_a_package(judged, there);
  if (checked.empty && (checked.not_finite || checked.outcome == Outcome::kFailed)) {
    Evidence evidence = difference_of(checked, Why::kNothing);
    evidence.text = checked.text;
    add(judged, std::move(evidence));
    co_return true;
  }
  if (!is_measured(checked)) co_return false;
  const bool moves = co_await moves_too(judged, Look::What::kNudged, Why::kJumps);
  co_return moves;
}

// 5. Models ask torch.compiler, and only leave out a mask where they are not traced, so that values
// like these change the one and not the other.
Task<bool> Judge::is_of_tracing(const Judged& judged) {
  Check check = judged.check;
  check.how = How::kTraced;
  const Judged traced = co_await compared(std::move(check));
  if (traced.verdict != Verdict::kRight) co_return false;
  add(judged, difference_of(judged.checked, Why::kTraced));
  co_return true;
}

// A branch in code of an installed package, which the user cannot write otherwise: then it is an
// assumption of the contract (an error with strict), with the values that lead elsewhere.
bool Judge::is_of_a_package(const Judged& judged, const Looked& executed) {
  if (!executed.published) return false;
  Evidence evidence;
  evidence.why = Why::kPackage;
  evidence.before = executed.before;
  evidence.now = executed.now;
  evidence.source = executed.source;
  evidence.at = judged.checked.values.empty() ? judged.checked.at : judged.checked.values;
  add(judged, std::move(evidence));
  return true;
}

Task<Finding> Judge::finding(Judged judged) {
  const Checked& checked = judged.checked;
  Finding found;
  found.number = checked.number;
  found.by_values = judged.check.kind == Kind::kValues;
  found.output = checked.output;
  found.text = checked.text;
  found.at = checked.at;
  const Looked there = co_await executed(judged);
  const bool drawn = checked.draws && there.generator;
  if (there.known && there.parted && !drawn) {
    found.code = ErrorCode::kDiverged;
    found.why = Why::kBranches;
    found.before = there.before;
    found.now = there.now;
    co_return found;
  }
  if (found.by_values) {
    const Looked looked = co_await look(Look::What::kOutside, judged.check, "");
    if (!looked.outside.empty()) {
      found.code = ErrorCode::kUnsupported;
      found.why = Why::kOutside;
      found.outside = looked.outside;
      co_return found;
    }
  }
  if (checked.draws || checked.output.empty()) co_return found;
  const Looked looked = co_await look(Look::What::kRepeated, judged.check, checked.output);
  if (!looked.text.empty()) {
    found.why = Why::kUnsteady;
    found.text = looked.text;
  }
  co_return found;
}

Task<void> Judge::look_at_state(ProgramId program) {
  Judged judged;
  judged.check.program = program;
  const Looked looked = co_await look(Look::What::kState, judged.check, "");
  if (looked.text.empty()) co_return;
  Evidence evidence;
  evidence.why = Why::kRemembers;
  evidence.text = looked.text;
  evidence.source = looked.source;
  add(judged, std::move(evidence));
}

Task<Looked> Judge::look(Look::What what, Check at, std::string output) {
  Look look;
  look.what = what;
  look.at = std::move(at);
  look.output = std::move(output);
  Looked looked = co_await asking_.ask<Looked>(std::move(look));
  if (looked.problem.number < 0) co_return looked;
  if (records(what)) throw Unlooked{looked.problem};
  // Of what eager alone could not tell nothing is known, which excuses nothing.
  Looked nothing;
  nothing.known = false;
  co_return nothing;
}

// What the model executes there is looked at once.
Task<Looked> Judge::executed(Judged& judged) {
  if (!judged.executed) {
    judged.executed = co_await look(Look::What::kOperators, judged.check, "");
  }
  co_return *judged.executed;
}

void Judge::add(const Judged& judged, Evidence evidence) {
  Fact fact;
  fact.of = judged.check.program;
  fact.kind = FactKind::kUnproven;
  fact.size = file_;
  fact.evidence = std::move(evidence);
  (void)ledger_.add(std::move(fact));
}

}  // namespace fairlead
