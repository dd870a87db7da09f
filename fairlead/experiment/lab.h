// What an experiment keeps: its programs as rows, the ledger, and the step it waits for. Several
// sources serve it, one per concern; each function that asks is a Task.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fairlead/base/task.h"
#include "fairlead/experiment/asking.h"
#include "fairlead/experiment/experiment.h"
#include "fairlead/experiment/judging.h"

namespace fairlead {

using Setting = std::vector<std::int64_t>;  // by symbol

// Recorded runs of one program, and the value of every symbol in each.
struct Runs {
  std::vector<int> numbers;
  std::vector<Setting> values;
};

// A setting at which the file differed from eager although the model executed the same operators.
struct Wrong {
  Setting values;
  std::vector<std::size_t> blamed;  // symbols
  bool smallest = false;
  bool far = false;
  Evidence evidence;
};

// Why an export cannot go on as it is.
struct Trouble {
  ProgramId program = 0;
  Problem problem;                   // an error that the driver keeps, or
  std::exception_ptr own = nullptr;  // one of ours, or
  Finding finding;                   // what a check found
  ErrorCode code = ErrorCode::kInternal;
  Evidence evidence;
  // Where a check found it:
  Setting values;                   // the sizes, by symbol
  std::vector<std::size_t> blamed;  // symbols
  bool smallest = false;            // they are smaller than wherever the model ran
  bool far = false;
  bool at_example = false;  // the file computes something else than the model at its own example
  bool guarded = false;
  bool unfused = false;   // the file differs by fusions, which are left out from now on
  int other_values = -1;  // the check with other values at the example's sizes
  int culprit = -1;       // the symbol without which the file could be made
  std::vector<std::string> constants;  // symbols that it could only hold as constants
};

// One program of the model.
struct Row {
  ProgramId id = 0;
  ProgramId parent = -1;
  Sizes example;
  // Of a further program: where it is, seen from its parent.
  Side side = Side::kExample;
  std::string symbol;              // that has a range of sizes there
  std::string words;               // "sequence = 1"
  Evidence parting;                // what it executes there
  std::vector<Place> places;       // dimensions that decide
  std::int64_t size = 0;           // the boundary
  std::vector<Place> to_vary;      // for which it was opened: of one size in its parent
  Evidence reason;                 // why its sizes are not the parent's
  std::vector<std::int64_t> rest;  // sizes to try where it turns out to be of one size only
  std::vector<Sizes> elsewhere;    // beyond other bounds of its parent, where it is the same one

  bool fixed = false;     // in the places that decide
  bool by_value = false;  // it parts from its parent by values
  bool untold = false;    // a run parted from it, and no question says why
  bool plain = false;     // the model is not told that it is traced
  bool forgets = false;   // its sizes are plain integers
  bool solved = false;
  bool keeps_probed = false;  // what was learnt does not ask for another probing
  int probings = 0;
  std::optional<ProbeResult> probed;
  Runs looked_at;  // those that were solved last
  Built built;
  std::map<std::pair<int, Sizes>, Ran> answers;  // of runs at sizes, by reference
  std::map<std::tuple<int, Input::Kind, int, Sizes>, Ran> calls_ran;  // the same with other values
  std::map<int, Sizes> sizes_of;                                      // run -> sizes
  struct Parting {
    Sizes sizes;
    int reference;
    Ran ran;
  };
  std::vector<Parting> partings;    // of the last probing
  std::vector<Setting> parted_far;  // far sizes at which it executes another program
  std::map<Place, std::int64_t>
      parted_at;  // a size of the dimension at which the model executes another program
  std::vector<ProbedRun> crossed;            // runs from the other side of questions, and far ones
  std::map<std::string, Evidence> required;  // questions that the file requires
  std::vector<Wrong> wrong;                  // settings to be solved for as well
  std::vector<Setting> apart;  // where it is another program, and maybe no question says why
  std::vector<int> calls;      // checks whose tensors are
  CheckedRows checks;          // of the last file
};

class Lab {
 public:
  explicit Lab(Request request);

  void begin();
  void take(Answer answer, double seconds);

  // ---- what is known ----------------------------------------------------------------------------

  [[nodiscard]] const Row& row(ProgramId id) const {
    return *rows_.at(static_cast<std::size_t>(id));
  }
  // The programs of the file: that of the example first.
  [[nodiscard]] std::vector<ProgramId> programs() const;
  // Sizes of a symbol that the contract allows.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> range_of(const Row& row, std::size_t k) const;
  // (symbol, min, max) of the sizes outside of which the model is known to do something else.
  using Bound = std::tuple<std::string, std::int64_t, std::int64_t>;
  [[nodiscard]] std::vector<Bound> bounds(const Row& row) const;
  [[nodiscard]] std::int64_t most_of(const Row& row, std::size_t k) const;
  [[nodiscard]] std::int64_t allowed_most(const Row& row, std::size_t k) const;

  Request request_;
  Ledger ledger_;
  Asking asking_;
  Judge judge_{asking_, ledger_};
  Stage stage_ = Stage::kProbe;

 private:
  friend class Experiment;

  void admit(const Sizes& sizes) const;
  void admit(const Answer& answer) const;

  // ---- asking -----------------------------------------------------------------------------------

  template <typename A>
  Task<A> ask(Step step) {
    return asking_.ask<A>(std::move(step));
  }
  [[nodiscard]] bool is_heavy(const Row& row, const Sizes& sizes) const;
  // Whether a run with weights there may cost more than an export should.
  [[nodiscard]] static bool is_costly(const Row& row, const Sizes& sizes);
  // spare: nothing comes of it (absent) where it is heavy and needs the weights.
  Task<Ran> run(Row& row, Input input, int reference, bool spare = false, bool brief = false);
  Task<Ran> run_at(Row& row, Sizes sizes, int reference, bool spare = false, bool brief = false);
  Task<Ran> try_at(Row& row, Sizes sizes, bool spare);
  Task<Ran> run_call(Row& row, Input input, int reference);
  Task<std::optional<Evidence>> parting(Row& row, Sizes sizes);
  Task<std::optional<Evidence>> parting_of(Row& row, Input input);

  // ---- the whole --------------------------------------------------------------------------------

  Task<void> all();
  Task<std::optional<Trouble>> attempt();
  Task<void> begin_anew(bool plain, bool forgets);
  void add_empty();
  Task<bool> learns_from(Row& row, const Trouble& trouble);
  Task<bool> learn(Row& row, const Trouble& trouble);
  bool solve_for(Row& row, const Trouble& trouble);
  bool give_up(Row& row);
  bool keeps_example(Row& row, const Trouble& trouble);
  bool fixes_constants(const Trouble& trouble);
  bool learns_guarded(Row& row, const Trouble& trouble);
  bool fixes_one_more(Row& row, const Trouble& trouble);

  // ---- one program: probing and solving ---------------------------------------------------------

  Task<std::optional<Trouble>> solve(Row& row);
  Task<void> solve_or_throw(Row& row);
  Task<ProbeResult> probe(Row& row);
  [[nodiscard]] bool went_too_far(const Row& row);
  void limit_sizes(Row& row);
  void note_refused_below(Row& row);
  void leave_to_questions(Row& row);
  Task<void> build(Row& row);
  Task<Built> build_of(Row& row, const Runs& runs, bool kept);
  Task<Runs> runs(Row& row);
  Task<Runs> at_more_sizes(Row& row, Runs runs);
  Task<Runs> with_other_values(Row& row, Runs runs);
  Task<Runs> with_other_values_elsewhere(Row& row, Runs runs);
  Task<void> add_run(Row& row, Runs& runs, Setting setting);
  Task<std::vector<std::size_t>> unsolved_symbols(Row& row);

  // ---- questions --------------------------------------------------------------------------------

  Task<void> settle_questions(Row& row);
  Task<bool> go_far(Row& row);
  Task<bool> settle(Row& row, Questions::Other other, Built::Question question);
  Task<bool> runs_elsewhere(Row& row, Questions::Other other);
  Task<void> go_further(Row& row, Questions::Other other);
  Task<bool> go_around(Row& row, Setting setting);
  Task<bool> go_to(Row& row, Setting setting);
  Task<void> go_beside(Row& row, Setting setting, std::size_t k, std::vector<std::int64_t> sizes);
  Task<void> stop_before(Row& row, Questions::Other other, Evidence why);
  Task<void> end_at(Row& row, std::size_t k, std::int64_t most, std::int64_t size, Evidence why);
  [[nodiscard]] Ask ask_about(const Row& row) const;

  // ---- boundaries -------------------------------------------------------------------------------

  using SizesAt = std::function<Sizes(std::int64_t)>;
  Task<std::int64_t> boundary(Row& row, std::int64_t alike, std::int64_t differs, SizesAt sizes_at);
  Task<bool> leave_below(Row& row, std::size_t k, std::int64_t least, Evidence reason);
  bool raise_minimum(Row& row, std::size_t k, std::int64_t least, Evidence reason, bool taken);
  bool lower_maximum(Row& row, std::size_t k, std::int64_t most, Evidence reason, bool taken);
  bool bound_to_tried(Row& row, const Trouble& trouble);
  bool fix(Row& row, std::size_t k, const Evidence& reason);
  Task<bool> bound_at_other_program(Row& row, std::size_t k, std::int64_t size, Evidence reason);
  Task<std::vector<std::pair<std::size_t, std::int64_t>>> smallest_together(
      Row& row, std::vector<std::size_t> symbols);
  Task<std::int64_t> smallest_of_same_program(Row& row, std::size_t k, std::int64_t differs);
  Task<bool> finds_boundary(Row& row);
  Task<bool> finds_boundary_of(Row& row, std::vector<Place> places, std::int64_t size);
  Task<void> branch_above(Row& row);
  Task<void> branch_elsewhere(Row& row);

  // ---- further programs -------------------------------------------------------------------------

  [[nodiscard]] bool may_open() const;
  bool first_time(const Row& row, const std::vector<Place>& places, Side side);
  Task<bool> is_held(Row& row, Sizes sizes);
  [[nodiscard]] bool within(const Row& row, const Setting& setting) const;
  Task<bool> below(Row& row, std::size_t k, std::int64_t least, Evidence reason);
  Task<void> each(Row& row, std::size_t k, std::vector<std::int64_t> sizes, Evidence reason);
  Task<bool> above(Row& row, std::size_t k, std::int64_t most, std::int64_t size);
  Task<bool> aside(Row& row, Setting setting, std::string key, Evidence why);
  Task<void> elsewhere(Row& row, std::vector<Place> places, Sizes sizes, Evidence why);
  Task<void> by_value(Row& row, Input input, Ran ran);
  [[nodiscard]] bool chosen_by_values(const Row& row) const;
  bool drop_by_values(const Evidence& why);
  Task<bool> at_example(Row& row, std::vector<std::size_t> ones, Evidence reason);
  Task<void> follow();
  [[nodiscard]] bool branches_on_cache_or_tokens(const Row& row) const;
  struct Opening {
    Side side;
    std::string words;
    Evidence parting;
    std::vector<Place> places;
    bool fixed = false;     // in the deciding dimensions
    bool inherits = true;   // what its parent knows
    std::int64_t size = 0;  // the boundary
    Evidence reason;
    std::string symbol = {};
  };
  Task<Row*> open(Row& parent, Input input, Opening opening);
  Task<std::optional<Trouble>> solve_all();
  Task<bool> solve_further(Row& row);
  void drop(Row& row, const Evidence& why);
  void drop_fixed();
  [[nodiscard]] std::vector<Row*> held();

  // ---- checking ---------------------------------------------------------------------------------

  Task<Emitted> emit(std::vector<std::string> without);
  Task<std::optional<Trouble>> verify(Row& row, const Emitted& file);
  Task<bool> is_right_without(Check check, std::vector<std::string> kinds);
  Task<std::vector<std::string>> to_blame(Check check, std::vector<std::string> suspects,
                                          std::vector<std::string> gone);
  Task<bool> leaves_out(Check check, Trouble trouble, std::vector<std::string> suspects);
  Task<Trouble> trouble_of(Row& row, Judged judged);
  Task<void> settle_order(Check check);
  [[nodiscard]] static Trouble unfused(const Row& row);
  Task<void> blame(Row& row, const Judged& judged, Trouble& trouble);
  Task<std::vector<std::size_t>> blamed(Row& row, Setting values, bool operators);

  std::vector<std::unique_ptr<Row>> rows_;
  std::set<std::tuple<ProgramId, std::vector<Place>, Side>> looked_beyond_;
  std::set<std::pair<ProgramId, std::string>> looked_aside_;
  std::vector<std::string> unknown_;                // of the user's largest sizes
  std::map<std::string, std::int64_t> ran_beyond_;  // the user's largest size
  // Kinds of fusions that made the file differ, and at what.
  std::vector<std::pair<std::string, std::string>> unfused_;
  bool order_settled_ = false;  // whether kPlainOrder stays was tried
  int fixed_blindly_ = 0;       // dimensions that nothing showed to be to blame
  bool followed_ = false;
  bool by_values_ = true;      // programs that values lead to are opened
  std::int64_t recorded_ = 0;  // operators, of the runs that questions led to
  std::optional<Task<void>> task_;
};

// What a driver's error, or one of ours, ends: thrown where the answer of a step has one, caught
// where a program is solved.
struct Refusal {
  Trouble trouble;
};

// ---- symbols and places (places.cpp) ------------------------------------------------------------

// (leaf, axis) of the dimensions that are this symbol, or a multiple of it, with times what.
[[nodiscard]] std::vector<std::pair<Place, std::int64_t>> units_of(const ProbeResult& probed,
                                                                   std::size_t symbol);
[[nodiscard]] std::vector<Place> places_of(const ProbeResult& probed, std::size_t symbol);
[[nodiscard]] Setting changed(Setting setting, std::size_t k, std::int64_t size);
// The value of every symbol in a call of these sizes; nothing where it does not fit the symbols.
[[nodiscard]] std::optional<Setting> setting_of(const ProbeResult& probed, const Sizes& sizes);
[[nodiscard]] std::vector<std::size_t> ones_in(const ProbeResult& probed, const Sizes& sizes);
[[nodiscard]] bool is_constant(const ProbeResult& probed, const Place& place);
[[nodiscard]] std::string text_at(const ProbeResult& probed, const Place& place);
[[nodiscard]] std::string in_words(const ProbeResult& probed, const Setting& setting);
[[nodiscard]] std::int64_t elements(const Sizes& sizes);
[[nodiscard]] Evidence branches(const Ran& ran);

}  // namespace fairlead
