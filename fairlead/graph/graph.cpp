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

const Constant* Graph::constant(ValueId value) const {
  const auto it = constant_of.find(value);
  return it == constant_of.end() ? nullptr : &constants[it->second];
}

namespace {

void check_uses(const Graph& graph, const Node& node, const Arg& arg,
                const std::vector<bool>& made) {
  if (arg.kind == ArgKind::kValue) {
    FAIRLEAD_CHECK(arg.value >= 0 && arg.value < static_cast<ValueId>(graph.values.size()),
                   node.op + " reads unknown value %" + std::to_string(arg.value));
    FAIRLEAD_CHECK(made[arg.value],
                   node.op + " reads %" + std::to_string(arg.value) + " before it is made");
  }
  for (const Arg& item : arg.items) check_uses(graph, node, item, made);
}

}  // namespace

void check(const Graph& graph) {
  std::vector<bool> made(graph.values.size(), false);
  for (const ValueId v : graph.inputs) made[v] = true;
  for (const Constant& c : graph.constants) made[c.value] = true;
  for (const Node& node : graph.nodes) {
    for (const Arg& arg : node.args) check_uses(graph, node, arg, made);
    for (const ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      FAIRLEAD_CHECK(!made[v], node.op + " makes %" + std::to_string(v) + " a second time");
      made[v] = true;
    }
  }
  for (const ValueId v : graph.outputs) {
    FAIRLEAD_CHECK(made[v], "output %" + std::to_string(v) + " is never made");
  }
}

}  // namespace fairlead
