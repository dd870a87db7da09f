// The experiment as a whole: solve every program, write the file, check it, learn, again.
#include "fairlead/experiment/lab.h"

#include <algorithm>

namespace fairlead {
namespace {

// A run that is worth saving: elements of the inputs, or so many times a size of the example (what
// attention makes of it grows with its square).
constexpr std::int64_t kHeavy = 1 << 18, kHeavyTimes = 8;
// Below both, a run costs less than to find out its sizes without data.
constexpr std::int64_t kHeavySize = 200, kHeavyBytes = 16 << 20;
// Pairs of elements that attention compares, and so many times those of the example.
constexpr double kCostlyPairs = 1 << 24, kCostlyTimes = 8;

// Where every element along an axis is compared with every other: the most of any axis, by the
// smallest argument of that size, which has the fewest features.
double pairs_in(const Sizes& sizes) {
  std::map<std::int64_t, double> least;  // by size
  for (const auto& leaf : sizes) {
    double count = 1;
    for (const std::int64_t size : leaf) count *= static_cast<double>(size);
    for (const std::int64_t size : leaf) {
      const auto it = least.try_emplace(size, count).first;
      it->second = std::min(it->second, count);
    }
  }
  double most = 0;
  for (const auto& [size, count] : least) most = std::max(most, count * static_cast<double>(size));
  return most;
}

}  // namespace

Experiment::Experiment(Request request) : lab_(std::make_unique<Lab>(std::move(request))) {
  lab_->begin();
}

Experiment::~Experiment() = default;

const Step& Experiment::step() const { return lab_->asking_.step_; }

void Experiment::answer(Answer answer, double seconds) {
  FAIRLEAD_CHECK(!over(), "an answer after the end");
  lab_->take(std::move(answer), seconds);
}

bool Experiment::over() const { return lab_->asking_.over(); }

Stage Experiment::stage() const { return lab_->stage_; }

const std::vector<Fact>& Experiment::ledger() const { return lab_->ledger_.facts(); }

Lab::Lab(Request request) : request_(std::move(request)) {
  FAIRLEAD_CHECK(!request_.calls.empty(), "no call to export from");
  FAIRLEAD_CHECK(request_.roles.size() == request_.leaves.size(), "a leaf without a role");
  for (const Sizes& call : request_.calls) admit(call);
  for (const EmptyDim& empty : request_.empty) {
    FAIRLEAD_CHECK(empty.leaf < request_.leaves.size() &&
                       empty.axis < request_.leaves[empty.leaf].requests.size(),
                   "an empty dimension that no leaf has");
  }
  rows_.push_back(std::make_unique<Row>());
  rows_[0]->example = request_.calls[0];
  add_empty();
}

void Lab::add_empty() {
  for (const EmptyDim& empty : request_.empty) {
    Fact fact;
    fact.place = {empty.leaf, empty.axis};
    fact.kind = FactKind::kFixed;
    fact.evidence.why = Why::kEmpty;
    fact.evidence.text = empty.text;
    (void)ledger_.add(std::move(fact));
  }
}

void Lab::begin() {
  task_ = all();
  task_->start();
  if (task_->done()) task_->result();
}

void Lab::take(Answer answer, double seconds) {
  admit(answer);
  asking_.take(std::move(answer), seconds);
  if (task_->done()) task_->result();
}

// What comes from outside is looked at here, once: behind it numbers are indices.
void Lab::admit(const Sizes& sizes) const {
  FAIRLEAD_CHECK(sizes.size() == request_.leaves.size(), "a call of other leaves");
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    FAIRLEAD_CHECK(sizes[k].size() == request_.leaves[k].requests.size(), "a leaf of another rank");
    for (const std::int64_t size : sizes[k]) FAIRLEAD_CHECK(size >= 0, "a size below 0");
  }
}

void Lab::admit(const Answer& answer) const {
  const auto symbols = [&](ProgramId id) {
    const auto& probed = row(id).probed;
    return probed ? static_cast<int>(probed->symbols.size()) : 0;
  };
  if (const auto* call = std::get_if<CallFacts>(&answer); call != nullptr && call->found) {
    admit(call->sizes);
  }
  if (const auto* found = std::get_if<Questions>(&answer)) {
    const auto* asked = std::get_if<Ask>(&asking_.step_);
    FAIRLEAD_CHECK(asked != nullptr, "the answer to another step");
    const int questions = static_cast<int>(row(asked->program).built.questions.size());
    for (const Questions::Other& other : found->others) {
      FAIRLEAD_CHECK(other.question >= 0 && other.question < questions, "no such question");
      FAIRLEAD_CHECK(other.symbol >= -1 && other.symbol < symbols(asked->program),
                     "no such symbol");
      FAIRLEAD_CHECK(static_cast<int>(other.setting.size()) == symbols(asked->program),
                     "a setting of other symbols");
    }
  }
  if (const auto* checked = std::get_if<Checked>(&answer)) {
    FAIRLEAD_CHECK(checked->number >= -1 && checked->parts >= 0, "no such check");
  }
  if (const auto* file = std::get_if<Emitted>(&answer)) {
    FAIRLEAD_CHECK(file->culprit < symbols(programs().back()), "no such symbol");
  }
}

std::vector<ProgramId> Lab::programs() const {
  std::vector<ProgramId> found;
  for (const auto& row : rows_) {
    if (ledger_.is_open(row->id)) found.push_back(row->id);
  }
  return found;
}

bool Lab::is_heavy(const Row& row, const Sizes& sizes) const {
  if (elements(sizes) > kHeavy) return true;
  for (std::size_t leaf = 0; leaf < std::min(sizes.size(), row.example.size()); ++leaf) {
    const auto& own = row.example[leaf];
    for (std::size_t axis = 0; axis < std::min(sizes[leaf].size(), own.size()); ++axis) {
      const std::int64_t size = sizes[leaf][axis];
      const bool counts = size >= kHeavySize || request_.weight_bytes >= kHeavyBytes;
      if (counts && size >= kHeavyTimes * std::max<std::int64_t>(own[axis], 1)) return true;
    }
  }
  return false;
}

bool Lab::is_costly(const Row& row, const Sizes& sizes) {
  const double pairs = pairs_in(sizes);
  return pairs > kCostlyPairs && pairs > kCostlyTimes * pairs_in(row.example);
}

Task<Ran> Lab::run(Row& row, Input input, int reference, bool spare, bool brief) {
  RunModel asked;
  asked.program = row.id;
  asked.input = std::move(input);
  asked.reference = reference;
  asked.heavy = is_heavy(row, asked.input.sizes);
  asked.spare = spare && asked.heavy;
  asked.brief = brief;
  Ran ran = co_await ask<Ran>(std::move(asked));
  row.untold = row.untold || ran.untold;
  if (ran.problem.number >= 0) {
    Trouble trouble;
    trouble.program = row.id;
    trouble.problem = ran.problem;
    trouble.code = ran.problem.code;
    trouble.evidence.why = Why::kFailed;
    trouble.evidence.text = ran.problem.cause;
    throw Refusal{std::move(trouble)};
  }
  co_return ran;
}

// What was run once is not run again.
Task<Ran> Lab::run_at(Row& row, Sizes sizes, int reference, bool spare, bool brief) {
  const auto known = row.answers.find({reference, sizes});
  if (known != row.answers.end()) {
    asking_.seconds_ = 0;
    co_return known->second;
  }
  Input input;
  input.sizes = sizes;
  const Ran ran = co_await run(row, std::move(input), reference, spare, brief);
  if (!ran.absent && !ran.enough) row.answers[{reference, std::move(sizes)}] = ran;
  co_return ran;
}

Task<Ran> Lab::run_call(Row& row, Input input, int reference) {
  auto key = std::make_tuple(reference, input.kind, input.number, input.sizes);
  const auto known = row.calls_ran.find(key);
  if (known != row.calls_ran.end()) co_return known->second;
  const Ran ran = co_await run(row, std::move(input), reference);
  row.calls_ran.emplace(std::move(key), ran);
  co_return ran;
}

Task<std::optional<Evidence>> Lab::parting(Row& row, Sizes sizes) {
  const Ran ran = co_await run_at(row, std::move(sizes), row.probed->runs[0].run);
  if (!ran.parted) co_return std::nullopt;
  co_return branches(ran);
}

Task<std::optional<Evidence>> Lab::parting_of(Row& row, Input input) {
  const Ran ran = co_await run_call(row, std::move(input), row.probed->runs[0].run);
  if (!ran.parted) co_return std::nullopt;
  co_return branches(ran);
}

// The program of the example as if nothing was known of it.
Task<void> Lab::begin_anew(bool plain, bool forgets) {
  auto made = std::make_unique<Row>();
  made->example = request_.calls[0];
  made->plain = plain;
  made->forgets = forgets;
  *rows_[0] = std::move(*made);
  looked_beyond_.clear();
  looked_aside_.clear();
  followed_ = false;
  Open open;
  open.input.kind = Input::Kind::kCall;
  open.input.number = 0;
  open.plain = plain;
  open.forgets = forgets;
  (void)co_await ask<CallFacts>(open);
}

Task<void> Lab::all() {
  co_await begin_anew(request_.plain, false);
  for (;;) {
    const std::size_t known = ledger_.narrowed();
    const std::optional<Trouble> trouble = co_await attempt();
    if (!trouble) {
      asking_.step_ = Done{};
      co_return;
    }
    Row& row = *rows_.at(static_cast<std::size_t>(trouble->program));
    const bool example = row.id == 0;
    bool learnt = false;
    Fact forgets;
    forgets.kind = FactKind::kForgets;
    forgets.evidence.why = Why::kForgets;
    if (example && trouble->code == ErrorCode::kInvalidInput) {
      // One that only works where it finds a mask to be all ones, and leaves it out, does not while
      // it is told that it is traced.
      bool accepts = false;
      if (!row.plain && !row.probed) {
        const Ran ran = co_await ask<Ran>(RunPlain{});
        accepts = ran.run >= 0;
      }
      if (accepts) {
        Fact fact;
        fact.kind = FactKind::kPlain;
        fact.evidence.why = Why::kPlain;
        learnt = ledger_.add(std::move(fact));
        co_await begin_anew(true, false);
      }
    } else if (trouble->unfused) {
      learnt = true;
    } else if (example && trouble->at_example && drop_by_values(trouble->evidence)) {
      learnt = true;  // which of the programs is to run is not known
    } else if (example && trouble->at_example && !row.forgets && ledger_.narrows(forgets)) {
      learnt = ledger_.add(forgets);
      add_empty();
      for (Row* other : held()) {
        Fact closed;
        closed.of = other->id;
        closed.kind = FactKind::kClosed;
        closed.evidence.why = Why::kOuter;
        (void)ledger_.add(std::move(closed));
      }
      co_await begin_anew(row.plain, true);
    } else if (example && trouble->at_example && !row.plain) {
      // x * 2 if torch.compiler.is_compiling() else x * 3
      Fact fact;
      fact.kind = FactKind::kPlain;
      fact.evidence.why = Why::kTraced;
      learnt = ledger_.add(std::move(fact));
      co_await begin_anew(true, false);
    } else {
      learnt = co_await learns_from(row, *trouble);
      if (!learnt && !example) {
        drop(row, trouble->evidence);
        learnt = true;
      }
    }
    learnt = learnt || drop_by_values(trouble->evidence) || fixes_one_more(row, *trouble);
    if (!learnt) {
      Failed failed;
      failed.problem = trouble->problem.number;
      failed.finding = trouble->finding;
      failed.unknown = unknown_;
      asking_.step_ = std::move(failed);
      if (trouble->own) std::rethrow_exception(trouble->own);
      co_return;
    }
    FAIRLEAD_CHECK(ledger_.narrowed() > known, "a turn that learnt nothing");
  }
}

// Every program solved, written and checked; what stands in the way, where something does.
Task<std::optional<Trouble>> Lab::attempt() {
  std::optional<Trouble> trouble = co_await solve_all();
  if (trouble) co_return trouble;
  stage_ = Stage::kEmit;
  const Emitted file = co_await emit({});
  if (file.problem.number >= 0) {
    Trouble found;
    found.program =
        programs().back();  // without its last program the file can be made, or says why not
    found.problem = file.problem;
    found.code = file.problem.code;
    found.culprit = file.culprit;
    found.constants = file.constants;
    found.evidence.why =
        file.problem.code == ErrorCode::kUnsupported ? Why::kUnsupported : Why::kFailed;
    found.evidence.text = file.problem.cause;
    co_return found;
  }
  if (!request_.verify) co_return std::nullopt;
  stage_ = Stage::kVerify;
  std::vector<ProgramId> order = programs();
  std::reverse(order.begin(), order.end());  // the example's last: what it says is the contract's
  for (const ProgramId id : order) {
    trouble = co_await verify(*rows_[static_cast<std::size_t>(id)], file);
    if (trouble) co_return trouble;
  }
  co_return std::nullopt;
}

}  // namespace fairlead
