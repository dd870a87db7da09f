// The builder of programs. Several sources serve it, one per concern.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "fairlead/aten/rules/data_sizes.h"
#include "fairlead/aten/rules/shapes.h"
#include "fairlead/base/error.h"
#include "fairlead/trace/functional.h"
#include "fairlead/trace/program.h"
#include "fairlead/trace/roll.h"

namespace fairlead {

[[nodiscard]] bool is_product(Expr e);

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const ProgramRequest& request)
      : request_(request),
        vocabulary_(*request.vocabulary),
        run_(*request.runs.front()),
        solver_(*request.pool, request.symbols),
        functional_(program_.graph, run_.values.size()),
        written_(run_.values.size(), false),
        symbol_values_(request.symbols),
        new_symbols_(request.first_symbol) {
    program_.graph.pool = request.pool;
  }

  Program build();

 private:
  [[nodiscard]] Graph& graph() { return program_.graph; }
  [[nodiscard]] ExprPool& pool() { return *request_.pool; }
  [[nodiscard]] std::string where() const { return describe(vocabulary_, run_, op_); }

  // Item `at` of the operator at hand, read in every run.
  template <typename Read>
  auto over_runs(std::uint32_t at, bool result, Read read) const {
    std::vector<decltype(read(Item{}))> values;
    const OpRecord& reference = run_.ops[op_];
    const std::uint32_t offset = at - (result ? reference.results : reference.items);
    for (const Run* run : request_.runs) {
      const OpRecord& record = run->ops[op_];
      values.push_back(read(run->items[(result ? record.results : record.items) + offset]));
    }
    return values;
  }

  // ---- operators and their results ------------------------------------------------------------

  [[nodiscard]] RunValue root(RunValue v) const;
  [[nodiscard]] std::uint32_t skip(std::uint32_t at) const;
  void find_writes();
  void add_inputs();
  void add_operator();
  void add_stride_hints(const OpRecord& record, const OpDef& def, const Node& node);
  std::vector<Expr> dense_strides(RunValue v, const Shape& shape);
  void add_strides(const OpRecord& record, Node& node);
  void add_scaled_hints(const OpRecord& record, const OpDef& def);
  void add_frame_hints(const OpRecord& record, const OpDef& def);
  [[nodiscard]] static RunValue written_argument(const Item& item, const OpDef& def,
                                                 const Node& node);
  void add_write(Node node, const std::vector<RunValue>& written);
  void add_results(const OpRecord& record, Node node);
  void add_int_hints(const Arg& arg);
  // The sizes of an operator without a rule, by asking the operator alone.
  ResultShapes alone_shapes(const OpRecord& record, const Node& node);
  std::map<std::string, ResultShapes> asked_alone_;
  void settle_squeeze(Node& node, RunValue given);
  void add_count_guard(const Node& node, std::size_t count);
  void set_shape(ValueId id, RunValue v, const DataSize* data, const std::vector<Expr>& known = {});
  void set_open_shape(ValueId id, RunValue v);
  void find_used();
  void set_unused_shape(ValueId id, RunValue v);
  std::vector<bool> is_used_;  // by value of the reference run
  Expr data_symbol(const DataSize& data, const std::vector<std::int64_t>& seen, ValueId id,
                   int axis);
  Expr new_symbol(std::string_view stem, SymbolKind kind, const std::vector<std::int64_t>& values);
  void add_outputs();
  void keep_write(RunValue v, ValueId target);

  // ---- loops ----------------------------------------------------------------------------------

  void add_loop(const OpRecord& record);
  [[nodiscard]] std::vector<std::int64_t> steps_of(const LoopSteps& loop) const;  // by run
  Program solve_steps(const LoopSteps& loop, Expr number, std::vector<Expr> parts,
                      const std::vector<ValueId>& invariants);

  // A number that nothing explains, by the cause of the error. The builder goes on as if it were
  // known, so that one error names them all.
  void note_unsolved(std::string cause, std::string_view what, std::vector<std::string> values);

  // ---- arguments ------------------------------------------------------------------------------

  [[nodiscard]] Expr solve_apart(const std::vector<std::int64_t>& observed);
  // Over the first steps, and over the others; made anew when there are more symbols.
  std::unique_ptr<Solver> apart_[2];
  std::size_t apart_symbols_ = 0;
  Expr solve_int(const std::vector<std::int64_t>& observed, std::string_view what,
                 std::uint32_t at = kNowhere);
  static constexpr std::uint32_t kNowhere = UINT32_MAX;
  void note_edges(Expr e);
  void note_fitted(Expr e, std::string_view what);
  Arg read_item(std::uint32_t& at, const std::string& name);
  void read_float(std::uint32_t at, const std::string& name, Arg& arg);
  std::optional<FloatSolution> solve_fraction(const std::vector<double>& seen);
  ValueId read_value(RunValue v);
  void add_hint(Expr e);
  void add_constant(RunValue v);

  // ---- numbers that remember -------------------------------------------------------------------

  // What node `id` of run `r` is; null where it has no expression.
  Expr carried(std::size_t r, CarryId id);
  Expr translate(std::size_t r, const Carry& node);
  Expr shape_at(std::size_t r, RunValue v, int axis);
  // Expressions of the numbers that led to the operator at hand, in run `r`.
  void add_call_numbers(std::size_t r);
  // What the number at an argument was computed from; null where it forgot.
  Expr remembered(std::uint32_t at, const std::vector<std::int64_t>& observed);
  Expr read_in_step(std::uint32_t offset, const std::vector<std::int64_t>& observed);
  [[nodiscard]] std::vector<CarryId> number_ids(std::uint32_t offset, int k) const;
  // One expression for the nodes of all runs: theirs, a min or a max, or a choice by guards.
  using Fits = std::function<bool(Expr)>;  // whether it has the values that were seen
  using Matches = std::function<bool(std::size_t, const Carry&)>;  // of a run
  Expr unified(const std::vector<CarryId>& ids, const Fits& fits);
  Expr unified(const std::vector<Expr>& by_run, const Fits& fits);
  Expr written(std::uint32_t offset, const std::vector<std::int64_t>& observed, const Fits& fits);
  Expr of_some(const std::vector<Expr>& by_run, const Fits& fits);
  // Number `place` where that matches.
  Expr called(const Matches& matches, const Fits& fits, int place = -1);
  Expr called_real(const std::vector<double>& observed, bool single, int place = -1);
  [[nodiscard]] bool explains_real(Expr e, const std::vector<double>& observed, bool single);
  void follow_ways();
  std::pair<Expr, Expr> value_count(std::size_t r, const Guard& guard);
  Expr by_question(const ProgramGuard& asked, const std::vector<Expr>& by_run,
                   const std::vector<std::size_t>& runs);
  Expr by_way(const std::vector<Expr>& by_run, const std::vector<std::size_t>& runs, std::size_t at,
              const std::vector<ProgramGuard>& before);
  [[nodiscard]] bool require_seen(const std::vector<std::size_t>& runs, std::size_t at,
                                  const std::vector<ProgramGuard>& before);
  void note_thin(Expr e, const std::vector<std::size_t>& runs);
  bool is_of_values(const ProgramGuard& guard);
  Expr either(const ProgramGuard& asked, Expr a, Expr b);
  void add_rival(Expr chosen, Expr other);
  void add_choices(Expr found, const std::vector<Expr>& by_run,
                   const std::vector<std::size_t>& runs, const std::vector<ProgramGuard>& before);
  int choices_ = 0;  // that were added
  Expr remembered_real(std::uint32_t at, const std::vector<double>& observed);
  [[nodiscard]] bool explains(Expr e, const std::vector<std::int64_t>& observed);
  void find_read_uses();
  Expr counted(const std::vector<std::int64_t>& observed);
  [[nodiscard]] const Run& recorded(std::size_t r) const {
    return request_.recorded.empty() ? *request_.runs[r] : *request_.recorded[r];
  }
  [[nodiscard]] bool forgot() const;
  // How a number was told that forgot where it comes from: as these, first in a run that had gone
  // this way.
  struct Counted {
    std::set<Expr> numbers;
    bool told = true;  // and nothing but told (carried.h)
    std::size_t run = 0;
    std::vector<GuardPath::Step> way;
    std::string module, source;  // of the line that counted
  };
  void note_unseen(Expr number, const Counted& counted);
  void note_spread(const std::vector<SymbolId>& over, const Counted& counted);
  void add_guards();
  void require_answer(std::size_t guard);
  bool holds_in_all_runs(Expr flag);

  // ---- constants ------------------------------------------------------------------------------

  bool folds(const OpRecord& record, const OpDef& def);
  bool is_constant(RunValue v);
  void fold(RunValue v, const RunConstant& kept);

  // ---- values read ----------------------------------------------------------------------------

  template <typename T>
  void read_number(const Node& node, const std::vector<T>& seen, std::int64_t element);
  bool reads_value(const OpRecord& record, const Node& node);
  void note_number(const Node& node);
  std::unordered_map<ValueId, Expr> numbers_;  // that tensors of one element hold
  // The numbers that were read directly before the operator at hand: x.view(t, -1) reads t below
  // Python, where numbers have no memory.
  std::vector<Expr> just_read_;
  Expr read_below(const std::vector<std::int64_t>& observed);
  void read_flag(const Node& node, const std::vector<std::int64_t>& seen);
  [[nodiscard]] bool tainted_args() const;
  [[nodiscard]] bool sized_args();

  static constexpr std::size_t kLongestWay = 400;
  static constexpr std::size_t kMostCounts = 24;  // of one loop, that a number is chosen by
  static constexpr std::size_t kMostBefore =
      12;  // answers that led to a question, of a requirement
  struct ByValue {
    bool operator()(Expr a, Expr b) const { return a->value < b->value; }
  };
  struct Way {
    struct Step {
      ProgramGuard guard;
      bool answer;
    };
    std::vector<Step> steps;
    std::map<std::tuple<Compare, Expr, Expr>, bool> seen;  // questions and their answers
    std::size_t next = 0;  // the first guard of the run that was not looked at
  };
  std::vector<Way> ways_;  // by run
  struct Translated {
    std::vector<Expr> nodes;  // by CarryId, as far as they were needed
  };
  std::vector<Translated> translated_;                      // by run
  std::unordered_map<RunValue, std::vector<Expr>> shapes_;  // of values that were made
  std::map<std::pair<CarryId, CarryId>, Expr> reads_;  // by operator and number among its results
  std::map<std::pair<CarryId, CarryId>, bool> used_reads_;
  std::set<std::pair<CarryId, CarryId>> asked_reads_;  // those that questions are about
  std::size_t seen_required_ = 0;                      // by require_seen
  std::vector<Expr> call_numbers_;                     // of the operator at hand

  const ProgramRequest& request_;
  const Vocabulary& vocabulary_;
  const Run& run_;
  Program program_;
  Solver solver_;
  Functional functional_;
  std::vector<bool> written_;
  std::vector<Expr> hints_;
  std::size_t frame_hints_ = 0;          // how many of them, in front, are counts of frames
  std::vector<std::int64_t> constants_;  // sizes and numbers of the operator at hand that are fixed
  std::map<ValueId, Expr> counted_;
  std::unordered_map<Expr, std::vector<std::int64_t>> values_;  // of hints, by run
  std::map<std::vector<std::int64_t>, Expr> sizes_;  // sizes of values, by their observed values
  static constexpr std::size_t kMaxUnsolved = 20;    // a failed search is the slowest
  std::vector<ErrorDetail> unsolved_;
  std::string first_unsolved_;
  std::size_t op_ = 0;
  std::vector<std::vector<std::int64_t>> symbol_values_;  // by run, then SymbolId
  int new_symbols_ = 0;
};

}  // namespace fairlead
