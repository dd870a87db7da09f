// Builds the program from aligned runs: one pass over the operators of the reference run.
//
// Per operator: (1) arguments become Args, varying integers and floats solved; (2) a value read
// becomes a symbol or an assumption; (3) an in-place operator becomes its functional form and a
// write; (4) results get their symbolic shapes, data-dependent ones a symbol of their own.
#include "fairlead/trace/program.h"

#include <algorithm>
#include <cstdlib>

#include "fairlead/aten/rules/shape_call.h"
#include "fairlead/base/error.h"
#include "fairlead/graph/args.h"
#include "fairlead/trace/program_impl.h"

namespace fairlead {

Program ProgramBuilder::build() {
  find_writes();
  find_read_uses();
  find_used();
  add_inputs();
  try {
    for (op_ = 0; op_ < run_.ops.size() && unsolved_.size() < kMaxUnsolved; ++op_) add_operator();
    if (unsolved_.empty()) add_outputs();
  } catch (const Error&) {
    if (unsolved_.empty()) throw;  // otherwise it may only follow from the first fault
  }
  if (!unsolved_.empty()) {
    throw Error(
        ErrorCode::kUnsolved,
        "[export] " + first_unsolved_ + ". Fix the dimension it depends on with dynamic_shapes.",
        std::move(unsolved_), first_unsolved_);
  }
  if (!request_.nested) {
    add_guards();
    check(program_.graph);
  }
  program_.symbols_met = new_symbols_;
  return std::move(program_);
}

RunValue ProgramBuilder::root(RunValue v) const {
  while (run_.values[v].alias != kNoRunValue) v = run_.values[v].alias;
  return v;
}

std::uint32_t ProgramBuilder::skip(std::uint32_t at) const {
  const Item& item = run_.items[at++];
  if (item.kind == ItemKind::kList) {
    for (std::int64_t k = 0; k < item.i; ++k) at = skip(at);
  }
  return at;
}

// A storage that is ever written cannot be folded: the kept bytes may be those after the write.
void ProgramBuilder::find_writes() {
  for (const OpRecord& record : run_.ops) {
    const OpDef& def = vocabulary_.ops[record.op];
    if (def.writes < 0 || def.written_count < 0) continue;
    std::uint32_t at = record.items;
    for (int k = 0; k < def.writes; ++k) at = skip(at);
    for (int k = 0; k < def.written_count; ++k, at = skip(at)) {
      if (run_.items[at].kind != ItemKind::kTensor) continue;
      written_[root(static_cast<RunValue>(run_.items[at].i))] = true;
    }
  }
}

void ProgramBuilder::add_inputs() {
  for (std::size_t k = 0; k < run_.inputs.size(); ++k) {
    const RunValue v = run_.inputs[k];
    const InputSpec& spec = request_.inputs[k];
    const ValueId id = graph().add_value(run_.values[v].dtype, spec.shape, spec.name);
    graph().inputs.push_back(id);
    functional_.define_root(v, id);
    if (!spec.solved) set_open_shape(id, v);
    shapes_[v] = graph().values[id].shape;
  }
  if (request_.nested) {
    graph().symbol_sources.resize(pool().symbols().size());
  } else {
    graph().find_symbol_sources();
  }
}

void ProgramBuilder::add_operator() {
  const OpRecord& record = run_.ops[op_];
  const OpDef& def = vocabulary_.ops[record.op];
  hints_ = request_.step_parts;
  frame_hints_ = 0;
  constants_.clear();
  call_numbers_.clear();
  add_call_numbers(0);
  if (def.name == Op::fairlead_loop) return add_loop(record);
  if (folds(record, def)) return;

  Node node;
  node.op = def.functional.text().empty() ? def.name : def.functional;
  node.module = graph().keep(vocabulary_.strings[record.module]);
  node.source = graph().keep(vocabulary_.strings[record.source]);
  std::vector<RunValue> written;
  std::uint32_t at = record.items;
  const std::uint32_t end = record.items + record.item_count;
  for (std::size_t k = 0; at < end; ++k) {
    const std::string name = k < def.params.size() ? def.params[k] : def.name.str();
    const int nth = static_cast<int>(k) - def.writes;
    if (def.writes >= 0 && nth >= 0 && nth < std::abs(def.written_count)) {
      written.push_back(written_argument(run_.items[at], def, node));
      if (def.drops_written) {
        at = skip(at);
        continue;
      }
    }
    node.args.push_back(read_item(at, name));
    if (k == 0) add_scaled_hints(record, def);
    if (k == 0) add_frame_hints(record, def);
    if (k == 0) add_stride_hints(record, def, node);
  }
  if (def.name.has(Trait::kStrided)) {
    hints_.erase(hints_.begin(), hints_.begin() + static_cast<std::ptrdiff_t>(frame_hints_));
    add_strides(record, node);
  }
  if (reads_value(record, node)) return;
  node.random = def.random;
  if (!written.empty()) {
    add_write(std::move(node), written);
  } else {
    settle_squeeze(node, record.item_count > 0 && run_.items[record.items].kind == ItemKind::kTensor
                             ? static_cast<RunValue>(run_.items[record.items].i)
                             : kNoRunValue);
    add_results(record, std::move(node));
  }
}

// interpolate(x, scale_factor=0.37) computes its sizes below Python: the factors come with them.
void ProgramBuilder::add_scaled_hints(const OpRecord& record, const OpDef& def) {
  if (!def.name.has(Trait::kScales)) return;
  const std::vector<Expr> sizes = hints_;
  for (std::uint32_t k = 0; k < record.item_count; ++k) {
    const Item& item = run_.items[record.items + k];
    if (item.kind != ItemKind::kFloat) continue;
    for (const Expr e : sizes) {
      const Expr scaled = pool().real_op(ExprKind::kRealMul, e, pool().real(item.f));
      hints_.insert(hints_.begin(), pool().rounded(ExprKind::kTrunc, scaled));
    }
  }
}

// stft(x, n_fft, hop) counts its frames below Python: windows of one dimension of as_strided that
// start a stride of another apart.
void ProgramBuilder::add_frame_hints(const OpRecord& record, const OpDef& def) {
  if (!def.name.has(Trait::kStrided)) return;
  const std::span<const Item> items(run_.items.data() + record.items, record.item_count);
  if (items.size() < 2 || items[1].kind != ItemKind::kList) return;
  const auto rank = static_cast<std::size_t>(items[1].i);
  if (items.size() < 3 + 2 * rank || items[2 + rank].kind != ItemKind::kList) return;
  const std::vector<Expr> sizes = hints_;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t hop = items[3 + rank + i].i;
    const auto same = [&](const Run* run) {
      return run->items[run->ops[op_].items + 3 + rank + i].i == hop;
    };
    if (hop < 2 || !std::all_of(request_.runs.begin(), request_.runs.end(), same)) continue;
    for (std::size_t j = 0; j < rank; ++j) {
      if (items[3 + rank + j].i >= hop) continue;
      for (const Expr e : sizes) {
        const Expr room = pool().sub(e, pool().constant(items[2 + j].i));
        const Expr starts = pool().floordiv(room, pool().constant(hop));
        hints_.insert(hints_.begin(), pool().add(starts, pool().constant(1)));
        ++frame_hints_;
      }
    }
  }
}

// The results of an out= variant are its written tensors in order. Of other operators that write
// several, or that return something else than what they wrote, only PyTorch knows what they do.
RunValue ProgramBuilder::written_argument(const Item& item, const OpDef& def, const Node& node) {
  const bool several = def.written_count > 1 && !def.drops_written;
  if (item.kind != ItemKind::kTensor || several || def.written_count < 0) {
    throw Error(
        ErrorCode::kUnsupported,
        "[export] Expected operators that write to one tensor and return it, got " + def.name +
            " (in " + (node.module.empty() ? "the model" : std::string(node.module)) + " at " +
            std::string(node.source) + "). Use the operator that returns its results instead.");
  }
  return static_cast<RunValue>(item.i);
}

void ProgramBuilder::add_write(Node node, const std::vector<RunValue>& written) {
  std::vector<ValueId> made;
  for (const RunValue v : written) {
    const Value like = graph().values[functional_.read(v)];
    made.push_back(graph().add_value(like.dtype, like.shape));
  }
  node.outputs.assign(made.begin(), made.end());
  graph().nodes.push_back(std::move(node));
  for (std::size_t k = 0; k < made.size(); ++k) functional_.write(written[k], made[k]);
}

void ProgramBuilder::add_results(const OpRecord& record, Node node) {
  for (const Arg& arg : node.args) add_int_hints(arg);
  for (const Expr e : size_hints(pool(), graph(), node)) hints_.insert(hints_.begin(), e);
  std::size_t count = 0;
  for (std::uint32_t k = 0; k < record.result_count; ++k) {
    if (run_.items[record.results + k].kind != ItemKind::kList) ++count;
  }
  std::size_t rank = 0;
  for (std::uint32_t k = record.result_count; k-- > 0;) {
    const Item& item = run_.items[record.results + k];
    if (item.kind == ItemKind::kTensor) rank = run_.values[item.i].rank;
  }
  ResultShapes known = result_shapes(pool(), graph(), node, count, rank);
  if (known.empty()) known = alone_shapes(record, node);
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
    const std::size_t number = made.size();
    const std::vector<Expr> rule = number < known.size() ? known[number] : std::vector<Expr>{};
    // An operator may be written by the sizes of all of its results: where they are known, they
    // are those of one that nothing reads, too.
    const bool ruled = rule.size() == run_.values[v].rank &&
                       std::find(rule.begin(), rule.end(), nullptr) == rule.end();
    if (ruled || data || is_used_[static_cast<std::size_t>(v)]) {
      set_shape(node.outputs.back(), v, data ? &*data : nullptr, rule);
    } else {
      set_unused_shape(node.outputs.back(), v);
    }
    made.push_back(v);
  }
  add_count_guard(node, made.size());
  graph().nodes.push_back(std::move(node));
  const std::size_t index = graph().nodes.size() - 1;
  note_number(graph().nodes[index]);
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

// Whether a size is 1 is a question that squeeze() asks for the model: what it left out is named.
void ProgramBuilder::settle_squeeze(Node& node, RunValue given) {
  if (!node.op.has(Trait::kSqueezes) || given == kNoRunValue) return;
  const Shape& shape = graph().values[node.args[0].value].shape;
  const auto named = ShapeCall{pool(), graph(), node, 1, 0}.axes(1, shape.size());
  if (!named) return;
  Arg gone;
  gone.kind = ArgKind::kList;
  bool open = false;
  for (const std::size_t axis : *named) {
    const Expr size = shape[axis];
    const bool one = run_.dim(given, static_cast<int>(axis)) == 1;
    if (one) gone.items.push_back(int_arg(pool().constant(static_cast<std::int64_t>(axis))));
    if (is_const(size)) continue;
    open = true;
    if (request_.nested || request_.rolled != nullptr) continue;
    program_.guards.push_back({Compare::kEqual, one, size, pool().constant(1),
                               std::string(node.module), std::string(node.source)});
  }
  if (!open) return;
  node.op = Op::squeeze_dims;
  node.args = {node.args[0], std::move(gone)};
}

// split(20) makes as many parts as a size says: a question that PyTorch asks for the model.
void ProgramBuilder::add_count_guard(const Node& node, std::size_t count) {
  if (request_.nested || request_.rolled != nullptr || node.op != Op::split_Tensor) return;
  if (node.args.size() < 3 || node.args[1].kind != ArgKind::kInt) return;
  const Shape& shape = graph().values[node.args[0].value].shape;
  const auto axis = ShapeCall{pool(), graph(), node, count, 0}.axis(2, shape.size());
  if (!axis) return;
  const Expr size = shape[*axis];
  if (is_const(node.args[1].expr, 0)) return;
  const Expr parts = pool().max(pool().ceildiv(size, node.args[1].expr), pool().constant(1));
  if (is_const(parts)) return;
  program_.guards.push_back({Compare::kEqual, true, parts,
                             pool().constant(static_cast<std::int64_t>(count)),
                             std::string(node.module), std::string(node.source)});
}

void ProgramBuilder::add_int_hints(const Arg& arg) {
  if (arg.kind == ArgKind::kInt) add_hint(arg.expr);
  for (const Arg& item : arg.items) add_int_hints(item);
}

void ProgramBuilder::set_shape(ValueId id, RunValue v, const DataSize* data,
                               const std::vector<Expr>& known) {
  std::vector<Expr> shape;
  for (int axis = 0; axis < run_.values[v].rank; ++axis) {
    std::vector<std::int64_t> seen;
    for (const Run* run : request_.runs) seen.push_back(run->dim(v, axis));
    if (data != nullptr && axis == data->axis) {
      shape.push_back(data_symbol(*data, seen, id, axis));
    } else if (known.size() == run_.values[v].rank && known[axis] != nullptr &&
               explains(known[axis], seen)) {
      shape.push_back(known[axis]);
    } else {
      shape.push_back(solve_int(seen, "size " + std::to_string(axis) + " of the result"));
    }
    if (!is_const(shape.back())) sizes_.try_emplace(std::move(seen), shape.back());
  }
  shapes_[v] = shape;
  graph().values[id].shape = std::move(shape);
}

// Nothing reads it: it may be another size in a run without data than in one with them.
void ProgramBuilder::set_unused_shape(ValueId id, RunValue v) {
  std::vector<Expr> shape;
  for (int axis = 0; axis < run_.values[v].rank; ++axis) {
    shape.push_back(pool().constant(run_.dim(v, axis)));
  }
  shapes_[v] = shape;
  graph().values[id].shape = std::move(shape);
}

void ProgramBuilder::find_used() {
  is_used_.assign(run_.values.size(), false);
  for (const OpRecord& record : run_.ops) {
    for (std::uint32_t k = 0; k < record.item_count; ++k) {
      const Item& item = run_.items[record.items + k];
      if (item.kind == ItemKind::kTensor) is_used_[static_cast<std::size_t>(item.i)] = true;
    }
  }
  for (const RunValue v : run_.outputs) is_used_[static_cast<std::size_t>(v)] = true;
  for (const ValueFact& fact : run_.values) {
    if (fact.alias != kNoRunValue) is_used_[static_cast<std::size_t>(fact.alias)] = true;
  }
  // Numbers may remember its size.
  for (const Run* run : request_.runs) {
    for (const Carry& node : run->carried) {
      if (node.kind == CarryKind::kDim && static_cast<std::size_t>(node.a) < is_used_.size()) {
        is_used_[static_cast<std::size_t>(node.a)] = true;
      }
    }
  }
}

// What a loop carries may grow by what data decides: then its size is read from it.
void ProgramBuilder::set_open_shape(ValueId id, RunValue v) {
  std::vector<Expr> shape;
  for (int axis = 0; axis < run_.values[v].rank; ++axis) {
    std::vector<std::int64_t> seen;
    for (const Run* run : request_.runs) seen.push_back(run->dim(v, axis));
    const auto it = sizes_.find(seen);
    const bool constant =
        std::count(seen.begin(), seen.end(), seen[0]) == static_cast<std::ptrdiff_t>(seen.size());
    if (!constant && it == sizes_.end() && !solver_.solve(seen, hints_).found()) {
      shape.push_back(new_symbol("grown", SymbolKind::kData, seen));
      graph().symbol_sources[static_cast<std::size_t>(shape.back()->value)] = {id, axis};
      sizes_.try_emplace(std::move(seen), shape.back());
    } else {
      shape.push_back(solve_int(seen, "size " + std::to_string(axis) + " of what a loop carries"));
    }
  }
  graph().values[id].shape = std::move(shape);
}

Expr ProgramBuilder::data_symbol(const DataSize& data, const std::vector<std::int64_t>& seen,
                                 ValueId id, int axis) {
  if (data.key != kNoValue) {
    if (const auto it = counted_.find(data.key); it != counted_.end()) return it->second;
  }
  const Expr symbol = new_symbol("count", SymbolKind::kData, seen);
  graph().symbol_sources[symbol->value] = {id, axis};
  if (data.key != kNoValue) counted_.emplace(data.key, symbol);
  return symbol;
}

Expr ProgramBuilder::new_symbol(std::string_view stem, SymbolKind kind,
                                const std::vector<std::int64_t>& values) {
  const Expr symbol = pool().symbol(std::string(stem) + "_" + std::to_string(new_symbols_++), kind);
  graph().symbol_sources.resize(pool().symbols().size());
  solver_.add_symbol(static_cast<SymbolId>(symbol->value), values);
  for (std::size_t r = 0; r < values.size(); ++r) {
    symbol_values_[r].resize(pool().symbols().size(), 0);
    symbol_values_[r][static_cast<std::size_t>(symbol->value)] = values[r];
  }
  return symbol;
}

void ProgramBuilder::add_outputs() {
  op_ = run_.ops.size();
  for (std::size_t k = 0; k < run_.outputs.size(); ++k) {
    graph().outputs.push_back(read_value(run_.outputs[k]));
    graph().output_names.push_back(request_.output_names[k]);
  }
  for (std::size_t k = 0; k < run_.inputs.size(); ++k) {
    if (functional_.written(run_.inputs[k])) {
      program_.written_inputs.push_back(request_.inputs[k].name);
      if (request_.keep_writes) keep_write(run_.inputs[k], graph().inputs[k]);
    }
  }
  for (const RunConstant& constant : run_.constants) {
    if (constant.persistent && functional_.defined(constant.value) &&
        functional_.written(constant.value)) {
      program_.written_inputs.push_back(constant.name);
      if (!request_.keep_writes) continue;
      for (const Constant& held : graph().constants) {
        if (graph().values[held.value].name == constant.name) {
          keep_write(constant.value, held.value);
          break;
        }
      }
    }
  }
}

void ProgramBuilder::keep_write(RunValue v, ValueId target) {
  program_.targets.push_back(target);
  graph().outputs.push_back(functional_.read(v));
}

namespace {

[[noreturn]] void refuse_parted(const Vocabulary& vocabulary, const Run& first, const Run& other) {
  const std::size_t op = first_difference(first, other);
  const std::string before = describe(vocabulary, first, op), now = describe(vocabulary, other, op);
  const std::string cause =
      "operator " + std::to_string(op) + " is " + before + " in one run and " +
      (now == before ? "the same with other flags or tensors" : now) + " in another";
  throw Error(ErrorCode::kDiverged,
              "[export] Expected every run to execute the same operators, but " + cause +
                  ". The model branches on a size or a value there; fix that dimension with "
                  "dynamic_shapes.",
              {{"parting", {{"before", before}, {"now", now}}, {}}}, cause);
}

}  // namespace

Program build_program(const ProgramRequest& request) {
  FAIRLEAD_CHECK(!request.runs.empty(), "no run was recorded");
  if (request.one_program) return ProgramBuilder(request).build();
  const Run& first = *request.runs.front();
  const auto other = std::find_if(request.runs.begin(), request.runs.end(), [&](const Run* run) {
    return first_difference(first, *run) != kSameProgram;
  });
  if (other == request.runs.end()) return ProgramBuilder(request).build();
  const std::optional<Rolled> rolled = roll(*request.vocabulary, request.runs);
  if (!rolled) refuse_parted(*request.vocabulary, first, **other);
  ProgramRequest again = request;
  again.vocabulary = &rolled->vocabulary;
  again.rolled = &*rolled;
  again.recorded = request.runs;
  again.runs.clear();
  for (const Run& run : rolled->runs) again.runs.push_back(&run);
  Program program = ProgramBuilder(again).build();
  for (const OpRecord& record : rolled->unread) {
    program.assumptions.push_back(
        {"read", "read a list of numbers from a tensor, as long as a size says, and may go by them",
         request.vocabulary->strings[record.module], request.vocabulary->strings[record.source]});
  }
  return program;
}

}  // namespace fairlead
