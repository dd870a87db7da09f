// A rolled loop: its steps are solved like runs, with the number of the step as one more symbol,
// and become the body of one node.
#include <algorithm>

#include "fairlead/base/error.h"
#include "fairlead/graph/args.h"
#include "fairlead/trace/program_impl.h"

namespace fairlead {
namespace {

// The first steps and the last of each run tell what there is to tell; more would only cost time.
constexpr std::int64_t kFirstSteps = 4;
constexpr std::int64_t kLastSteps = 2;
constexpr std::int64_t kMostWhole = 400;  // steps of a run that are all looked at
constexpr std::int64_t kShort = 64;  // the same of any loop: rows of a few columns that are fixed

// Puts a program that was solved apart into a graph, as a body of one of its nodes.
class Splice {
 public:
  Splice(Graph& graph, const Graph& from) : graph_(graph), from_(from), ids_(from.values.size()) {
    std::fill(ids_.begin(), ids_.end(), kNoValue);
  }

  void is(ValueId inside, ValueId outside) { ids_[inside] = outside; }
  ValueId copy(ValueId id) {
    if (id == kNoValue) return id;
    if (ids_[id] == kNoValue) {
      const Value& value = from_.values[id];
      ids_[id] = graph_.add_value(value.dtype, value.shape, value.name);
    }
    return ids_[id];
  }
  void copy_constants() {
    for (Constant constant : from_.constants) {
      constant.value = copy(constant.value);
      graph_.add_constant(std::move(constant));
    }
  }
  // Of symbols that were met inside.
  void copy_sources() {
    graph_.symbol_sources.resize(graph_.pool->symbols().size());
    for (std::size_t id = 0; id < from_.symbol_sources.size(); ++id) {
      SymbolSource source = from_.symbol_sources[id];
      if (source.value == kNoValue) continue;
      source.value = copy(source.value);
      graph_.symbol_sources[id] = source;
    }
  }
  std::vector<Node> copy(const std::vector<Node>& nodes) {
    std::vector<Node> copies = nodes;
    for (Node& node : copies) {
      for (Arg& arg : node.args) rename(arg);
      for (ValueId& id : node.outputs) id = copy(id);
      node.module = graph_.keep(node.module);
      node.source = graph_.keep(node.source);
      for (Body& body : node.bodies) {
        for (ValueId& id : body.inputs) id = copy(id);
        body.nodes = copy(body.nodes);
        for (ValueId& id : body.outputs) id = copy(id);
      }
    }
    return copies;
  }

 private:
  void rename(Arg& arg) {
    if (arg.kind == ArgKind::kValue) arg.value = copy(arg.value);
    for (Arg& item : arg.items) rename(item);
  }

  Graph& graph_;
  const Graph& from_;
  std::vector<ValueId> ids_;
};

// What loops in each other count, from the number of the step of the one loop that they are recorded
// as where their steps are alike: for i in range(n): for j in range(m) is step//m and step%m.
// 1. A count is a size that varies, or one of kForms of it.
// 2. Counts, the innermost first, are taken off the number of steps as long as each divides what is
//    left in every run, until a constant or a count is left: the outermost.
class Nesting {
 public:
  // `steps` in runs of these settings.
  Nesting(ExprPool& pool, const std::vector<std::vector<std::int64_t>>& settings, Expr step,
          const std::vector<std::int64_t>& steps)
      : pool_(pool), step_(step) {
    // Later axes first: what is inside goes over them.
    for (std::size_t id = pool.symbols().size(); id-- > 0 && counts_.size() < kMostCounts;) {
      const Expr size = pool.symbol(pool.symbols()[id].name);
      if (size == step) continue;
      std::vector<std::int64_t> values;
      for (const auto& setting : settings) values.push_back(id < setting.size() ? setting[id] : 0);
      if (!varies(values)) continue;
      for (const Form& form : kForms) {
        Count count{form.of(pool, size), {}};
        for (const std::int64_t value : values) count.values.push_back(form.at(value));
        counts_.push_back(std::move(count));
      }
    }
    take(steps, 0);
  }

  // Hints for the solver; empty where the steps are not known to be such.
  [[nodiscard]] std::vector<Expr> parts() const {
    std::vector<Expr> found;
    const auto add = [&](Expr e) {
      if (std::find(found.begin(), found.end(), e) == found.end()) found.push_back(e);
    };
    for (const Way& way : ways_) {
      Expr whole = step_;
      // The number in one loop, and the next of a ring of as many.
      const auto add_number = [&](Expr number, Expr count) {
        add(number);
        add(count);
        add(pool_.mod(pool_.add(number, pool_.constant(1)), count));
      };
      for (const Expr count : way.counts) {
        add_number(pool_.mod(whole, count), count);
        whole = pool_.floordiv(whole, count);
      }
      add_number(whole, way.outermost);
    }
    return found;
  }

  // The number of steps, as products.
  [[nodiscard]] std::vector<Expr> wholes() const {
    std::vector<Expr> found;
    for (const Way& way : ways_) {
      Expr whole = way.outermost;
      for (const Expr count : way.counts) whole = pool_.mul(whole, count);
      found.push_back(whole);
    }
    return found;
  }

 private:
  struct Form {
    Expr (*of)(ExprPool&, Expr);
    std::int64_t (*at)(std::int64_t);
  };
  struct Count {
    Expr expr;
    std::vector<std::int64_t> values;  // by run
  };
  struct Way {
    std::vector<Expr> counts;  // the innermost first
    Expr outermost;
  };
  template <int kBy>
  static Expr plus(ExprPool& pool, Expr e) {
    return pool.add(e, pool.constant(kBy));
  }
  template <int kBy>
  static Expr part(ExprPool& pool, Expr e) {
    return pool.floordiv(e, pool.constant(kBy));
  }
  template <int kBy>
  static Expr parts_of(ExprPool& pool, Expr e) {
    return pool.ceildiv(e, pool.constant(kBy));
  }
  static constexpr Form kForms[] = {
      {plus<0>, [](std::int64_t n) { return n; }},
      {plus<-1>, [](std::int64_t n) { return n - 1; }},
      {plus<1>, [](std::int64_t n) { return n + 1; }},
      {plus<-2>, [](std::int64_t n) { return n - 2; }},
      {plus<2>, [](std::int64_t n) { return n + 2; }},
      {[](ExprPool& pool, Expr e) { return pool.mul(e, pool.constant(2)); },
       [](std::int64_t n) { return 2 * n; }},
      {part<2>, [](std::int64_t n) { return n / 2; }},
      {parts_of<2>, [](std::int64_t n) { return (n + 1) / 2; }},
      {parts_of<3>, [](std::int64_t n) { return (n + 2) / 3; }},
      {parts_of<4>, [](std::int64_t n) { return (n + 3) / 4; }},
  };
  static constexpr std::size_t kMostCounts = 100;
  static constexpr std::size_t kMostWays = 8;
  static constexpr std::size_t kDeepest = 3;

  static bool varies(const std::vector<std::int64_t>& values) {
    return std::any_of(values.begin(), values.end(),
                       [&](std::int64_t value) { return value != values.front(); });
  }

  void take(const std::vector<std::int64_t>& steps, std::size_t depth) {
    if (depth == kDeepest) return;
    for (const Count& count : counts_) {
      if (ways_.size() == kMostWays) return;
      std::vector<std::int64_t> left;
      for (std::size_t r = 0; r < steps.size(); ++r) {
        if (count.values[r] < 1 || steps[r] % count.values[r] != 0) break;
        left.push_back(steps[r] / count.values[r]);
      }
      if (left.size() < steps.size()) continue;
      way_.push_back(count.expr);
      const auto whole = std::find_if(counts_.begin(), counts_.end(),
                                      [&](const Count& other) { return other.values == left; });
      if (whole != counts_.end()) {
        ways_.push_back({way_, whole->expr});
      } else if (varies(left)) {
        take(left, depth + 1);
      } else if (left.front() > 1) {
        ways_.push_back({way_, pool_.constant(left.front())});
      }
      way_.pop_back();
    }
  }

  ExprPool& pool_;
  Expr step_;
  std::vector<Count> counts_;
  std::vector<Expr> way_;
  std::vector<Way> ways_;
};

}  // namespace

std::vector<std::int64_t> ProgramBuilder::steps_of(const LoopSteps& loop) const {
  std::vector<std::int64_t> counts(request_.runs.size(), 0);
  for (const std::size_t run : loop.run_of) ++counts[run];
  return counts;
}

Program ProgramBuilder::solve_steps(const LoopSteps& loop, Expr number, std::vector<Expr> parts,
                                    const std::vector<ValueId>& invariants) {
  ProgramRequest request;
  request.vocabulary = request_.vocabulary;
  request.rolled = request_.rolled;
  request.pool = request_.pool;
  request.keep_writes = true;
  request.nested = true;
  request.step = number;
  request.first_symbol = new_symbols_;
  request.step_parts = std::move(parts);
  const std::vector<std::int64_t> counts = steps_of(loop);
  for (std::size_t s = 0; s < loop.steps.size(); ++s) {
    const std::size_t run = loop.run_of[s];
    const std::int64_t step = loop.number_of[s];
    const bool edge = step < kFirstSteps || step >= counts[run] - kLastSteps;
    // Of loops in each other every row has its edges.
    if (!edge && counts[run] > (request.step_parts.empty() ? kShort : kMostWhole)) continue;
    request.runs.push_back(&loop.steps[s]);
    std::vector<std::int64_t>& values = request.symbols.emplace_back(symbol_values_[run]);
    values.resize(pool().symbols().size(), 0);
    values[static_cast<std::size_t>(number->value)] = step;
  }
  const Run& first = loop.steps.front();
  for (std::size_t k = 0; k < first.inputs.size(); ++k) {
    InputSpec& spec = request.inputs.emplace_back();
    spec.solved = k < loop.invariants;
    if (spec.solved) spec.shape = graph().values[invariants[k]].shape;
  }
  request.output_names.resize(first.outputs.size());
  return ProgramBuilder(request).build();
}

// fairlead.loop(loop, steps, [invariants], [carried])
void ProgramBuilder::add_loop(const OpRecord& record) {
  std::uint32_t at = record.items;
  const LoopSteps& loop = request_.rolled->loops[static_cast<std::size_t>(run_.items[at++].i)];
  Node node;
  node.op = Op::fairlead_loop;
  node.module = graph().keep(vocabulary_.strings[record.module]);
  node.source = graph().keep(vocabulary_.strings[record.source]);
  const Expr number = pool().symbol("step_" + std::to_string(new_symbols_++), SymbolKind::kRead);
  const Nesting nesting(pool(), symbol_values_, number, steps_of(loop));
  for (const Expr whole : nesting.wholes()) add_hint(whole);
  Arg steps;
  steps.kind = ArgKind::kInt;
  steps.expr = counted(over_runs(at, false, [](const Item& i) { return i.i; }));
  if (steps.expr != nullptr) {
    ++at;
  } else {
    steps = read_item(at, "steps");
  }
  std::vector<RunValue> outside;
  std::vector<ValueId> invariants;
  ++at;  // the list
  for (std::size_t k = 0; k < loop.invariants; ++k) {
    outside.push_back(static_cast<RunValue>(run_.items[at++].i));
    invariants.push_back(read_value(outside.back()));
  }
  Arg carried = read_item(at, "carried");

  Program inside = solve_steps(loop, number, nesting.parts(), invariants);
  new_symbols_ = inside.symbols_met;
  program_.ambiguous += inside.ambiguous;
  program_.assumptions.insert(program_.assumptions.end(), inside.assumptions.begin(),
                              inside.assumptions.end());

  Splice splice(graph(), inside.graph);
  Body body;
  body.inputs.push_back(graph().add_value(Dtype::kInt64, {}));
  const std::vector<ValueId>& in = inside.graph.inputs;
  for (std::size_t k = loop.invariants; k < in.size(); ++k) {
    body.inputs.push_back(splice.copy(in[k]));
  }
  std::vector<std::size_t> written;  // invariants that a step writes: carried, too
  for (const ValueId target : inside.targets) {
    const auto it = std::find(in.begin(), in.end(), target);
    FAIRLEAD_CHECK(it != in.end() && it - in.begin() < static_cast<std::ptrdiff_t>(loop.invariants),
                   "a loop writes what is not its own, " + where());
    written.push_back(static_cast<std::size_t>(it - in.begin()));
    body.inputs.push_back(splice.copy(target));
    carried.items.push_back(value_arg(invariants[written.back()]));
  }
  for (std::size_t k = 0; k < loop.invariants; ++k) {
    if (std::find(written.begin(), written.end(), k) == written.end()) {
      splice.is(in[k], invariants[k]);
    }
  }
  splice.copy_constants();
  body.nodes = splice.copy(inside.graph.nodes);
  splice.copy_sources();
  graph().symbol_sources[static_cast<std::size_t>(number->value)] = {body.inputs[0], 0};
  // carried, written, collected
  const std::vector<ValueId>& out = inside.graph.outputs;
  const std::size_t returned = out.size() - written.size();
  for (std::size_t k = 0; k < loop.carried; ++k) body.outputs.push_back(splice.copy(out[k]));
  for (std::size_t k = returned; k < out.size(); ++k) body.outputs.push_back(splice.copy(out[k]));
  for (std::size_t k = loop.carried; k < returned; ++k) {
    body.outputs.push_back(splice.copy(out[k]));
  }
  node.args = {steps, std::move(carried)};
  node.bodies.push_back(std::move(body));

  add_hint(steps.expr);
  const auto result = [&](std::size_t k) {
    const auto v = static_cast<RunValue>(run_.items[record.results + k].i);
    const ValueId id = graph().add_value(run_.values[v].dtype, {});
    set_open_shape(id, v);
    functional_.define_root(v, id);
    node.outputs.push_back(id);
  };
  for (std::size_t k = 0; k < loop.carried; ++k) result(k);
  for (const std::size_t k : written) {
    const Value like = graph().values[invariants[k]];
    node.outputs.push_back(graph().add_value(like.dtype, like.shape));
  }
  for (std::size_t k = loop.carried; k < record.result_count; ++k) result(k);
  const std::vector<ValueId> outputs = node.outputs;
  graph().nodes.push_back(std::move(node));
  for (std::size_t k = 0; k < written.size(); ++k) {
    functional_.write(outside[written[k]], outputs[loop.carried + k]);
  }
}

}  // namespace fairlead
