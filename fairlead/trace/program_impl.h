// The builder of programs. Several sources serve it, one per concern.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/trace/data_sizes.h"
#include "fairlead/trace/functional.h"
#include "fairlead/trace/program.h"
#include "fairlead/trace/roll.h"

namespace fairlead {

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
  void add_strides(const OpRecord& record, Node& node);
  [[nodiscard]] static RunValue written_argument(const Item& item, const OpDef& def,
                                                 const Node& node);
  void add_write(Node node, const std::vector<RunValue>& written);
  void add_results(const OpRecord& record, Node node);
  void add_int_hints(const Arg& arg);
  void set_shape(ValueId id, RunValue v, const DataSize* data, const std::vector<Expr>& known = {});
  void set_open_shape(ValueId id, RunValue v);
  Expr data_symbol(const DataSize& data, const std::vector<std::int64_t>& seen, ValueId id,
                   int axis);
  Expr new_symbol(std::string_view stem, SymbolKind kind, const std::vector<std::int64_t>& values);
  void add_outputs();
  void keep_write(RunValue v, ValueId target);

  // ---- loops ----------------------------------------------------------------------------------

  void add_loop(const OpRecord& record);
  Program solve_steps(const LoopSteps& loop, Expr number, const std::vector<ValueId>& invariants);

  // A number that nothing explains. The builder goes on as if it were known, so that one error
  // names them all.
  void note_unsolved(const std::string& sentence, std::string_view what,
                     std::vector<std::string> values);

  // ---- arguments ------------------------------------------------------------------------------

  Expr solve_int(const std::vector<std::int64_t>& observed, std::string_view what);
  Arg read_item(std::uint32_t& at, const std::string& name);
  void read_float(std::uint32_t at, const std::string& name, Arg& arg);
  std::optional<FloatSolution> solve_fraction(const std::vector<double>& seen);
  ValueId read_value(RunValue v);
  void add_hint(Expr e);
  void add_constant(RunValue v);

  // ---- constants ------------------------------------------------------------------------------

  bool folds(const OpRecord& record, const OpDef& def);
  bool is_constant(RunValue v);
  void fold(RunValue v, const RunConstant& kept);

  // ---- values read ----------------------------------------------------------------------------

  template <typename T>
  void read_number(const Node& node, const std::vector<T>& seen, std::int64_t element);
  bool reads_value(const OpRecord& record, const Node& node);
  void read_flag(const Node& node, const std::vector<std::int64_t>& seen);
  [[nodiscard]] bool tainted_args() const;

  const ProgramRequest& request_;
  const Vocabulary& vocabulary_;
  const Run& run_;
  Program program_;
  Solver solver_;
  Functional functional_;
  std::vector<bool> written_;
  std::vector<Expr> hints_;
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
