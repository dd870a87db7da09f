// Builds the program from aligned runs: one pass over the operators of the reference run.
//
// Per operator: (1) arguments become Args, varying integers and floats solved; (2) a value read
// becomes a symbol or an assumption; (3) an in-place operator becomes its functional form and a
// write; (4) results get their symbolic shapes, data-dependent ones a symbol of their own.
#include "fairlead/trace/program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

#include "fairlead/base/error.h"
#include "fairlead/trace/data_sizes.h"
#include "fairlead/trace/fresh.h"
#include "fairlead/trace/functional.h"
#include "fairlead/trace/size_hints.h"

namespace fairlead {
namespace {

class Builder {
 public:
  explicit Builder(const ProgramRequest& request)
      : request_(request),
        vocabulary_(*request.vocabulary),
        run_(*request.runs.front()),
        solver_(*request.pool, request.symbols),
        functional_(program_.graph, run_.values.size()),
        written_(run_.values.size(), false) {
    program_.graph.pool = request.pool;
  }

  Program build() {
    align();
    find_writes();
    add_inputs();
    for (op_ = 0; op_ < run_.ops.size(); ++op_) add_operator();
    add_outputs();
    check(program_.graph);
    return std::move(program_);
  }

 private:
  [[nodiscard]] Graph& graph() { return program_.graph; }
  [[nodiscard]] ExprPool& pool() { return *request_.pool; }
  [[nodiscard]] std::string where() const { return describe(vocabulary_, run_, op_); }

  void align() const {
    for (std::size_t r = 1; r < request_.runs.size(); ++r) {
      const std::size_t op = first_difference(run_, *request_.runs[r]);
      if (op == kSameProgram) continue;
      throw Error(ErrorCode::kDiverged,
                  "[export] Expected every run to execute the same operators, but operator " +
                      std::to_string(op) + " is " + describe(vocabulary_, run_, op) +
                      " in one run and " + describe(vocabulary_, *request_.runs[r], op) +
                      " in another. The model branches on a size or a value there; fix that "
                      "dimension with dynamic_shapes.");
    }
  }

  // A storage that is ever written cannot be folded: the kept bytes may be those after the write.
  void find_writes() {
    for (const OpRecord& record : run_.ops) {
      const OpDef& def = vocabulary_.ops[record.op];
      if (def.writes < 0) continue;
      std::uint32_t at = record.items;
      for (int k = 0; k < def.writes; ++k) at = skip(at);
      if (run_.items[at].kind == ItemKind::kTensor) {
        written_[root(static_cast<RunValue>(run_.items[at].i))] = true;
      }
    }
  }

  [[nodiscard]] RunValue root(RunValue v) const {
    while (run_.values[v].alias != kNoRunValue) v = run_.values[v].alias;
    return v;
  }

  [[nodiscard]] std::uint32_t skip(std::uint32_t at) const {
    const Item& item = run_.items[at++];
    if (item.kind == ItemKind::kList) {
      for (std::int64_t k = 0; k < item.i; ++k) at = skip(at);
    }
    return at;
  }

  void add_inputs() {
    for (std::size_t k = 0; k < run_.inputs.size(); ++k) {
      const RunValue v = run_.inputs[k];
      const InputSpec& spec = request_.inputs[k];
      const ValueId id = graph().add_value(run_.values[v].dtype, spec.shape, spec.name);
      graph().inputs.push_back(id);
      functional_.define_root(v, id);
    }
    graph().symbol_sources.resize(pool().symbols().size());
    for (const ValueId id : graph().inputs) {
      const auto& shape = graph().values[id].shape;
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        // symbol, or constant*symbol where sizes only come in multiples
        const Expr e = shape[axis];
        const bool multiple = e->kind == ExprKind::kMul && e->args.size() == 1 &&
                              e->args[0]->kind == ExprKind::kSymbol && e->value > 0;
        if (e->kind != ExprKind::kSymbol && !multiple) continue;
        SymbolSource& source = graph().symbol_sources[multiple ? e->args[0]->value : e->value];
        const std::int64_t divisor = multiple ? e->value : 1;
        if (source.value == kNoValue || source.divisor > divisor) {
          source = {id, static_cast<int>(axis), divisor};
        }
      }
    }
  }

  // ---- arguments ------------------------------------------------------------------------------

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

  // In this order: a size of the operator's own inputs, a size of any value made before, a search.
  Expr solve_int(const std::vector<std::int64_t>& observed, std::string_view what) {
    if (std::all_of(observed.begin(), observed.end(),
                    [&](std::int64_t v) { return v == observed[0]; })) {
      return pool().constant(observed[0]);
    }
    for (const Expr hint : hints_) {
      auto [it, fresh] = values_.try_emplace(hint);
      if (fresh) it->second = solver_.values_of(hint);
      if (it->second == observed) return hint;
    }
    if (const auto it = sizes_.find(observed); it != sizes_.end()) return it->second;
    const Solution solution = solver_.solve(observed, hints_);
    if (!solution.found()) {
      std::string seen;
      for (const std::int64_t v : observed) seen += (seen.empty() ? "" : ", ") + std::to_string(v);
      throw Error(ErrorCode::kUnsolved,
                  "[export] Expected every integer to follow from the input sizes, got " +
                      std::string(what) + " = " + seen + " over the runs (" + where() +
                      "). Fix the dimension it depends on with dynamic_shapes.");
    }
    if (solution.ambiguous()) ++program_.ambiguous;
    return solution.expr;
  }

  Arg read_item(std::uint32_t& at, const std::string& name) {
    const Item item = run_.items[at];
    Arg arg;
    switch (item.kind) {
      case ItemKind::kNone:
        break;
      case ItemKind::kTensor:
        arg.kind = ArgKind::kValue;
        arg.value = read_value(static_cast<RunValue>(item.i));
        break;
      case ItemKind::kInt:
        arg.kind = ArgKind::kInt;
        arg.expr = solve_int(over_runs(at, false, [](const Item& i) { return i.i; }), name);
        break;
      case ItemKind::kFloat:
        read_float(at, name, arg);
        break;
      case ItemKind::kBool: {
        const auto seen = over_runs(at, false, [](const Item& i) { return i.i; });
        if (std::count(seen.begin(), seen.end(), seen[0]) !=
            static_cast<std::ptrdiff_t>(seen.size())) {
          throw Error(ErrorCode::kUnsolved, "[export] Expected the flag " + name +
                                                " to be the same in every run (" + where() +
                                                "). Fix the dimension it depends on.");
        }
        arg.kind = ArgKind::kBool;
        arg.number = static_cast<double>(item.i);
        break;
      }
      case ItemKind::kString:
        arg.kind = ArgKind::kString;
        arg.text = vocabulary_.strings[item.i];
        break;
      case ItemKind::kDtype:
        arg.kind = ArgKind::kDtype;
        arg.dtype = static_cast<Dtype>(item.i);
        break;
      case ItemKind::kList: {
        arg.kind = ArgKind::kList;
        ++at;
        for (std::int64_t k = 0; k < item.i; ++k) arg.items.push_back(read_item(at, name));
        return arg;
      }
    }
    ++at;
    return arg;
  }

  void read_float(std::uint32_t at, const std::string& name, Arg& arg) {
    const auto seen = over_runs(at, false, [](const Item& i) { return i.f; });
    arg.kind = ArgKind::kFloat;
    arg.number = seen[0];
    const bool constant = std::all_of(seen.begin(), seen.end(), [&](double v) {
      return v == seen[0] || (v != v && seen[0] != seen[0]);
    });
    if (constant) return;
    auto solution = solver_.solve_float(seen);
    if (!solution) solution = solve_fraction(seen);
    if (!solution) {
      std::string text;
      for (const double v : seen) text += (text.empty() ? "" : ", ") + std::to_string(v);
      throw Error(ErrorCode::kUnsolved,
                  "[export] Expected the number " + name + " to follow from the input sizes, got " +
                      text + " over the runs (" + where() +
                      "). Fix the dimension it depends on with dynamic_shapes.");
    }
    arg.number = solution->coefficient;
    arg.expr = solution->base;
    arg.power = solution->power;
  }

  // h - 0.5 and its kin: an integer expression divided by a small power of two.
  std::optional<FloatSolution> solve_fraction(const std::vector<double>& seen) {
    for (const double scale : {1.0, 2.0, 4.0, 8.0}) {
      std::vector<std::int64_t> whole;
      for (const double v : seen) {
        const double scaled = v * scale;
        if (scaled != std::floor(scaled) || std::abs(scaled) > 1e12) break;
        whole.push_back(static_cast<std::int64_t>(scaled));
      }
      if (whole.size() != seen.size()) continue;
      const Solution solution = solver_.solve(whole, hints_);
      if (solution.found()) return FloatSolution{1 / scale, solution.expr, 1};
    }
    return std::nullopt;
  }

  // ---- values ---------------------------------------------------------------------------------

  ValueId read_value(RunValue v) {
    if (!functional_.defined(v)) {
      const ValueFact& fact = run_.values[v];
      FAIRLEAD_CHECK(fact.origin == Origin::kConstant,
                     "value is read before it is made, " + where());
      add_constant(v);
    }
    const ValueId id = functional_.read(v);
    for (const Expr e : graph().values[id].shape) add_hint(e);
    return id;
  }

  void add_hint(Expr e) {
    if (!is_const(e) && std::find(hints_.begin(), hints_.end(), e) == hints_.end())
      hints_.push_back(e);
  }

  void add_constant(RunValue v) {
    functional_.define_root(v, constant_value(graph(), request_.runs, v, solver_, where()));
  }

  void fold(RunValue v, const RunConstant& kept) {
    std::vector<Expr> shape;
    Constant constant;
    for (int axis = 0; axis < run_.values[v].rank; ++axis) {
      constant.dims.push_back(run_.dim(v, axis));
      shape.push_back(pool().constant(constant.dims.back()));
    }
    constant.data = kept.data;
    constant.strides = kept.strides;
    constant.value = graph().add_value(run_.values[v].dtype, std::move(shape));
    const ValueId id = constant.value;
    graph().add_constant(std::move(constant));
    functional_.define_root(v, id);
  }

  // ---- operators ------------------------------------------------------------------------------

  void add_operator() {
    const OpRecord& record = run_.ops[op_];
    const OpDef& def = vocabulary_.ops[record.op];
    hints_.clear();
    if (folds(record, def)) return;

    Node node;
    node.op = def.functional.empty() ? def.name : def.functional;
    node.module = graph().keep(vocabulary_.strings[record.module]);
    node.source = graph().keep(vocabulary_.strings[record.source]);
    RunValue written = kNoRunValue;
    std::uint32_t at = record.items;
    const std::uint32_t end = record.items + record.item_count;
    for (std::size_t k = 0; at < end; ++k) {
      const std::string& name = k < def.params.size() ? def.params[k] : def.name;
      if (static_cast<int>(k) == def.writes) {
        written = static_cast<RunValue>(run_.items[at].i);
        if (def.drops_written) {
          at = skip(at);
          continue;
        }
      }
      node.args.push_back(read_item(at, name));
    }
    if (def.name.starts_with("aten.as_strided")) add_strides(record, node);
    if (reads_value(record, node)) return;
    node.random = def.random;
    if (written != kNoRunValue) {
      add_write(std::move(node), written);
    } else {
      add_results(record, std::move(node));
    }
  }

  // as_strided reads memory: the strides and the offset of its tensor become its last argument.
  void add_strides(const OpRecord& record, Node& node) {
    const auto v = static_cast<RunValue>(run_.items[record.items].i);
    const auto it = run_.strides.find(v);
    if (it == run_.strides.end()) return;
    Arg list;
    list.kind = ArgKind::kList;
    for (std::size_t k = 0; k < it->second.size(); ++k) {
      std::vector<std::int64_t> seen;
      for (const Run* run : request_.runs) seen.push_back(run->strides.at(v).at(k));
      Arg stride;
      stride.kind = ArgKind::kInt;
      stride.expr = solve_int(seen, "a stride");
      list.items.push_back(std::move(stride));
    }
    node.args.push_back(std::move(list));
  }

  // An operator whose arguments no input decides, with the same integers in every run: its kept
  // result is the constant.
  bool folds(const OpRecord& record, const OpDef& def) {
    if (def.random || def.writes >= 0) return false;
    for (std::uint32_t k = 0; k < record.result_count; ++k) {
      const Item& item = run_.items[record.results + k];
      if (item.kind == ItemKind::kList) continue;
      if (item.kind != ItemKind::kTensor) return false;
      const RunValue v = static_cast<RunValue>(item.i);
      if (run_.values[v].tainted || !run_.kept.contains(v) || written_[root(v)]) return false;
      for (const Run* run : request_.runs) {
        for (int axis = 0; axis < run_.values[v].rank; ++axis) {
          if (run->dim(v, axis) != run_.dim(v, axis)) return false;
        }
      }
    }
    std::uint32_t at = record.items;
    for (std::uint32_t k = 0; k < record.item_count; ++k, ++at) {
      const Item& item = run_.items[at];
      if (item.kind == ItemKind::kTensor) {
        const RunValue v = static_cast<RunValue>(item.i);
        if (!is_constant(v)) return false;
      } else if (item.kind == ItemKind::kInt || item.kind == ItemKind::kBool) {
        const auto seen = over_runs(at, false, [](const Item& i) { return i.i; });
        for (const std::int64_t value : seen) {
          if (value != item.i) return false;
        }
      } else if (item.kind == ItemKind::kFloat) {
        const auto seen = over_runs(at, false, [](const Item& i) { return i.f; });
        for (const double value : seen) {
          if (value != item.f && value == value) return false;
        }
      }
    }
    for (std::uint32_t k = 0; k < record.result_count; ++k) {
      const Item& item = run_.items[record.results + k];
      if (item.kind != ItemKind::kTensor) continue;
      const RunValue v = static_cast<RunValue>(item.i);
      fold(v, run_.kept.at(v));
    }
    return true;
  }

  bool is_constant(RunValue v) {
    if (written_[root(v)]) return false;
    if (!functional_.defined(v)) {
      if (run_.values[v].origin != Origin::kConstant) return false;
      add_constant(v);
    }
    return graph().constant(functional_.read(v)) != nullptr;
  }

  // .item(), .tolist(), bool(t): results that are numbers. Each is a symbol where it varies.
  bool reads_value(const OpRecord& record, const Node& node) {
    bool reads = false;
    std::int64_t element = 0;
    for (std::uint32_t k = 0; k < record.result_count; ++k) {
      const std::uint32_t at = record.results + k;
      const ItemKind kind = run_.items[at].kind;
      if (kind != ItemKind::kInt && kind != ItemKind::kFloat && kind != ItemKind::kBool) continue;
      reads = true;
      if (kind == ItemKind::kFloat) {
        read_number(node, over_runs(at, true, [](const Item& i) { return i.f; }), element++);
      } else if (kind == ItemKind::kBool) {
        read_flag(node, over_runs(at, true, [](const Item& i) { return i.i; }));
      } else {
        read_number(node, over_runs(at, true, [](const Item& i) { return i.i; }), element++);
      }
    }
    return reads;
  }

  // if x.sum() > 0: what the model did after that answer is the program. Where both answers were
  // seen the runs did not part, so nothing is assumed.
  void read_flag(const Node& node, const std::vector<std::int64_t>& seen) {
    if (!tainted_args()) return;
    for (const std::int64_t v : seen) {
      if (v != seen[0]) return;
    }
    program_.assumptions.push_back({"read",
                                    std::string("read ") + (seen[0] != 0 ? "True" : "False") +
                                        " from a tensor in every run and may go by it",
                                    std::string(node.module), std::string(node.source)});
  }

  template <typename T>
  void read_number(const Node& node, const std::vector<T>& seen, std::int64_t element) {
    const ValueId from = node.args.empty() ? kNoValue : node.args[0].value;
    const bool varies = std::any_of(seen.begin(), seen.end(), [&](T v) { return v != seen[0]; });
    if (!varies) {
      if (tainted_args()) {
        program_.assumptions.push_back(
            {"read",
             "read " + number_text(seen[0]) + " from a tensor in every run and may go by it",
             std::string(node.module), std::string(node.source)});
      }
      return;
    }
    if constexpr (std::is_same_v<T, std::int64_t>) {
      if (!tainted_args() && solver_.solve(seen, hints_).found()) return;
      const Expr symbol = new_symbol("read", SymbolKind::kRead, seen);
      graph().symbol_sources[symbol->value] = {from, static_cast<int>(element)};
    }
  }

  [[nodiscard]] bool tainted_args() const {
    const OpRecord& record = run_.ops[op_];
    for (std::uint32_t k = 0; k < record.item_count; ++k) {
      const Item& item = run_.items[record.items + k];
      if (item.kind == ItemKind::kTensor && run_.values[item.i].tainted) return true;
    }
    return false;
  }

  static std::string number_text(std::int64_t v) { return std::to_string(v); }
  static std::string number_text(double v) { return std::to_string(v); }

  Expr new_symbol(std::string_view stem, SymbolKind kind, const std::vector<std::int64_t>& values) {
    const Expr symbol =
        pool().symbol(std::string(stem) + "_" + std::to_string(new_symbols_++), kind);
    graph().symbol_sources.resize(pool().symbols().size());
    solver_.add_symbol(static_cast<SymbolId>(symbol->value), values);
    return symbol;
  }

  void add_write(Node node, RunValue written) {
    const ValueId before = functional_.read(written);
    const Value like = graph().values[before];
    const ValueId out = graph().add_value(like.dtype, like.shape);
    node.outputs = {out};
    graph().nodes.push_back(std::move(node));
    functional_.write(written, out);
  }

  void add_results(const OpRecord& record, Node node) {
    for (const Arg& arg : node.args) add_int_hints(arg);
    for (const Expr e : size_hints(pool(), graph(), node)) hints_.insert(hints_.begin(), e);
    std::vector<RunValue> made;
    for (std::uint32_t k = 0; k < record.result_count; ++k) {
      const Item& item = run_.items[record.results + k];
      if (item.kind == ItemKind::kList) continue;
      if (item.kind != ItemKind::kTensor) {
        node.outputs.push_back(kNoValue);
        made.push_back(kNoRunValue);
        continue;
      }
      const RunValue v = static_cast<RunValue>(item.i);
      const auto data = data_size(graph(), node, made.size());
      node.outputs.push_back(graph().add_value(run_.values[v].dtype, {}));
      set_shape(node.outputs.back(), v, data ? &*data : nullptr);
      made.push_back(v);
    }
    graph().nodes.push_back(std::move(node));
    const std::size_t index = graph().nodes.size() - 1;
    for (std::size_t k = 0; k < made.size(); ++k) {
      const RunValue v = made[k];
      if (v == kNoRunValue) continue;
      const RunValue parent = run_.values[v].alias;
      if (parent != kNoRunValue && functional_.defined(parent)) {
        functional_.define_view(v, parent, index, k);
      } else {
        functional_.define_root(v, graph().nodes[index].outputs[k]);
      }
    }
  }

  void add_int_hints(const Arg& arg) {
    if (arg.kind == ArgKind::kInt) add_hint(arg.expr);
    for (const Arg& item : arg.items) add_int_hints(item);
  }

  void set_shape(ValueId id, RunValue v, const DataSize* data) {
    std::vector<Expr> shape;
    for (int axis = 0; axis < run_.values[v].rank; ++axis) {
      std::vector<std::int64_t> seen;
      for (const Run* run : request_.runs) seen.push_back(run->dim(v, axis));
      if (data != nullptr && axis == data->axis) {
        shape.push_back(data_symbol(*data, seen, id, axis));
      } else {
        shape.push_back(solve_int(seen, "size " + std::to_string(axis) + " of the result"));
      }
      if (!is_const(shape.back())) sizes_.try_emplace(std::move(seen), shape.back());
    }
    graph().values[id].shape = std::move(shape);
  }

  Expr data_symbol(const DataSize& data, const std::vector<std::int64_t>& seen, ValueId id,
                   int axis) {
    if (data.key != kNoValue) {
      if (const auto it = counted_.find(data.key); it != counted_.end()) return it->second;
    }
    const Expr symbol = new_symbol("count", SymbolKind::kData, seen);
    graph().symbol_sources[symbol->value] = {id, axis};
    if (data.key != kNoValue) counted_.emplace(data.key, symbol);
    return symbol;
  }

  // ---- outputs --------------------------------------------------------------------------------

  void add_outputs() {
    op_ = run_.ops.size();
    for (std::size_t k = 0; k < run_.outputs.size(); ++k) {
      graph().outputs.push_back(read_value(run_.outputs[k]));
      graph().output_names.push_back(request_.output_names[k]);
    }
    for (std::size_t k = 0; k < run_.inputs.size(); ++k) {
      if (functional_.written(run_.inputs[k])) {
        program_.written_inputs.push_back(request_.inputs[k].name);
      }
    }
    for (const RunConstant& constant : run_.constants) {
      if (constant.persistent && functional_.defined(constant.value) &&
          functional_.written(constant.value)) {
        program_.written_inputs.push_back(constant.name);
      }
    }
  }

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
  std::size_t op_ = 0;
  int new_symbols_ = 0;
};

}  // namespace

Program build_program(const ProgramRequest& request) {
  FAIRLEAD_CHECK(!request.runs.empty(), "no run was recorded");
  return Builder(request).build();
}

}  // namespace fairlead
