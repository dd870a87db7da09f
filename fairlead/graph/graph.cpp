// Building and checking graphs.
#include "fairlead/graph/graph.h"

#include "fairlead/base/error.h"

namespace fairlead {

std::string_view Graph::keep(std::string_view name) {
  return names_->try_emplace(std::string(name), true).first->first;
}

ValueId Graph::add_value(Dtype dtype, std::vector<Expr> shape, std::string name) {
  values.push_back({dtype, std::move(shape), std::move(name)});
  return static_cast<ValueId>(values.size() - 1);
}

void Graph::add_constant(Constant constant) {
  constant_of.emplace(constant.value, constants.size());
  constants.push_back(std::move(constant));
}

void Graph::find_symbol_sources() {
  symbol_sources.resize(pool->symbols().size());
  for (const ValueId id : inputs) {
    const auto& shape = values[id].shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      // symbol, or constant*symbol where sizes only come in multiples
      const Expr e = shape[axis];
      const bool multiple = e->kind == ExprKind::kMul && e->args.size() == 1 &&
                            e->args[0]->kind == ExprKind::kSymbol && e->value > 0;
      if (e->kind != ExprKind::kSymbol && !multiple) continue;
      SymbolSource& source = symbol_sources[multiple ? e->args[0]->value : e->value];
      const std::int64_t divisor = multiple ? e->value : 1;
      if (source.value == kNoValue || source.divisor > divisor) {
        source = {id, static_cast<int>(axis), divisor};
      }
    }
  }
}

const Constant* Graph::constant(ValueId value) const {
  const auto it = constant_of.find(value);
  return it == constant_of.end() ? nullptr : &constants[it->second];
}

namespace {

struct Checker {
  const Graph& graph;
  std::vector<bool> made = std::vector<bool>(graph.values.size(), false);
  std::vector<bool> ever = made;  // also in a body that has ended

  void know(ValueId id, const std::string& who) const {
    FAIRLEAD_CHECK(id >= 0 && id < static_cast<ValueId>(graph.values.size()),
                   who + " names unknown value %" + std::to_string(id));
  }
  void make(ValueId id, const std::string& who) {
    know(id, who);
    FAIRLEAD_CHECK(!ever[id], who + " makes %" + std::to_string(id) + " a second time");
    made[id] = ever[id] = true;
  }
  void use(ValueId id, const std::string& who) const {
    know(id, who);
    FAIRLEAD_CHECK(made[id], who + " reads %" + std::to_string(id) + " before it is made");
  }
  void use(const Arg& arg, const std::string& who) const {
    if (arg.kind == ArgKind::kValue) use(arg.value, who);
    for (const Arg& item : arg.items) use(item, who);
  }
  void run(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      for (const Arg& arg : node.args) use(arg, node.op.str());
      for (const Body& body : node.bodies) run(body, node.op.str());
      for (const ValueId v : node.outputs) {
        if (v != kNoValue) make(v, node.op.str());
      }
    }
  }
  // What a body makes is not seen after it.
  void run(const Body& body, const std::string& who) {
    const std::vector<bool> outside = made;
    for (const ValueId v : body.inputs) make(v, "a body of " + who);
    run(body.nodes);
    for (const ValueId v : body.outputs) use(v, "a body of " + who);
    made = outside;
  }
};

}  // namespace

void check(const Graph& graph) {
  Checker checker{graph};
  for (const ValueId v : graph.inputs) checker.make(v, "an input");
  for (const Constant& c : graph.constants) checker.make(c.value, "a constant");
  checker.run(graph.nodes);
  for (const ValueId v : graph.outputs) checker.use(v, "an output");
}

}  // namespace fairlead
