// Counts uses once, then keeps them.
#include "fairlead/passes/rewrite.h"

#include <algorithm>
#include <utility>

namespace fairlead {

Pattern any(std::size_t slot) {
  Pattern made;
  made.slot = slot;
  return made;
}

Pattern number(double value) {
  Pattern made;
  made.kind = Pattern::Kind::kNumber;
  made.number = value;
  return made;
}

Pattern call(Op op, std::vector<Pattern> args) {
  Pattern made;
  made.kind = Pattern::Kind::kCall;
  made.op = op;
  made.parts = std::move(args);
  return made;
}

Pattern either(Pattern a, Pattern b) {
  Pattern made;
  made.kind = Pattern::Kind::kEither;
  made.parts = {std::move(a), std::move(b)};
  return made;
}

namespace {

// A number that no size decides.
std::optional<double> constant_number(const Arg& arg) {
  if (arg.kind == ArgKind::kInt && is_const(arg.expr)) return static_cast<double>(arg.expr->value);
  if (arg.kind == ArgKind::kFloat && arg.expr == nullptr) return arg.number;
  return std::nullopt;
}

bool same(const Arg& a, const Arg& b) {
  if (a.kind == ArgKind::kValue || b.kind == ArgKind::kValue) {
    return a.kind == b.kind && a.value == b.value;
  }
  const auto x = constant_number(a), y = constant_number(b);
  return x && y && *x == *y;
}

}  // namespace

Rewriter::Rewriter(Graph& graph)
    : graph_(graph), producers_(graph.values.size(), nullptr), uses_(graph.values.size(), 0) {
  count(graph.nodes);
  for (const ValueId id : graph.outputs) ++uses_[id];
  for (const SymbolSource& source : graph.symbol_sources) {
    if (source.value != kNoValue) ++uses_[source.value];
  }
}

void Rewriter::count(std::vector<Node>& nodes) {
  for (Node& node : nodes) {
    for (const Arg& arg : node.args) count(arg, 1);
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) producers_[id] = &node;
    }
    for (Body& body : node.bodies) {
      count(body.nodes);
      for (const ValueId id : body.outputs) ++uses_[id];
    }
  }
}

void Rewriter::count(const Arg& arg, int by) {
  if (arg.kind == ArgKind::kValue) uses_[arg.value] += static_cast<std::size_t>(by);
  for (const Arg& item : arg.items) count(item, by);
}

std::size_t Rewriter::each(const Visit& visit) {
  return each_block([&](Rewriter& rewriter, std::vector<Node>& nodes) {
    std::size_t changes = 0;
    for (Node& node : nodes) changes += visit(rewriter, node) ? 1 : 0;
    return changes;
  });
}

std::size_t Rewriter::each_block(const VisitBlock& visit) {
  const std::size_t changes = visit_blocks(graph_.nodes, visit);
  // Addresses change only now, and nobody looks at them any more.
  const auto sweep = [](const auto& self, std::vector<Node>& nodes) -> void {
    std::erase_if(nodes, [](const Node& node) { return node.op.text().empty(); });
    for (Node& node : nodes) {
      for (Body& body : node.bodies) self(self, body.nodes);
    }
  };
  sweep(sweep, graph_.nodes);
  std::fill(producers_.begin(), producers_.end(), nullptr);
  std::fill(uses_.begin(), uses_.end(), 0);
  return changes;
}

std::size_t Rewriter::visit_blocks(std::vector<Node>& nodes, const VisitBlock& visit) {
  std::size_t changes = visit(*this, nodes);
  for (Node& node : nodes) {
    for (Body& body : node.bodies) changes += visit_blocks(body.nodes, visit);
  }
  return changes;
}

std::optional<Match> Rewriter::match(const Pattern& pattern, const Node& node) const {
  Match found;
  return fits(pattern, node, found) ? std::optional(found) : std::nullopt;
}

bool Rewriter::fits(const Pattern& pattern, const Arg& arg, Match& found) const {
  switch (pattern.kind) {
    case Pattern::Kind::kAny: {
      const Arg*& bound = found.args_.at(pattern.slot);
      if (bound != nullptr) return same(*bound, arg);
      bound = &arg;
      return true;
    }
    case Pattern::Kind::kNumber: {
      const auto value = constant_number(arg);
      return value && *value == pattern.number;
    }
    case Pattern::Kind::kCall: {
      const Node* made = arg.kind == ArgKind::kValue ? producers_[arg.value] : nullptr;
      return made != nullptr && fits(pattern, *made, found);
    }
    case Pattern::Kind::kEither:
      for (const Pattern& choice : pattern.parts) {
        Match tried = found;
        if (!fits(choice, arg, tried)) continue;
        found = tried;
        return true;
      }
      return false;
  }
  return false;
}

bool Rewriter::fits(const Pattern& pattern, const Node& node, Match& found) const {
  if (node.op != pattern.op || node.args.size() < pattern.parts.size()) return false;
  const auto in_order = [&](std::size_t first, std::size_t second, Match& tried) {
    for (std::size_t k = 0; k < pattern.parts.size(); ++k) {
      const std::size_t at = k == 0 ? first : k == 1 ? second : k;
      if (!fits(pattern.parts[k], node.args[at], tried)) return false;
    }
    return true;
  };
  for (const bool swapped : {false, true}) {
    if (swapped && (!pattern.swaps || pattern.parts.size() < 2)) break;
    Match tried = found;
    if (!in_order(swapped ? 1 : 0, swapped ? 0 : 1, tried)) continue;
    if (pattern.slot < kMostSlots) tried.nodes_[pattern.slot] = &node;
    found = tried;
    return true;
  }
  return false;
}

void Rewriter::become(Node& node, OpName op, std::vector<Arg> args) {
  for (const Arg& arg : args) count(arg, 1);
  for (const Arg& arg : node.args) count(arg, -1);
  node.op = std::move(op);
  node.args = std::move(args);
}

void Rewriter::become(Node& node, OpName op, std::vector<Arg> args, std::vector<ValueId> outputs) {
  become(node, std::move(op), std::move(args));
  node.outputs = std::move(outputs);
  for (const ValueId id : node.outputs) {
    if (id != kNoValue) producers_[id] = &node;
  }
}

void Rewriter::erase(Node& node) {
  for (const ValueId id : node.outputs) {
    if (id != kNoValue && producers_[id] == &node) producers_[id] = nullptr;
  }
  become(node, OpName(), {});
  node.outputs.clear();
}

ValueId Rewriter::add_constant(Dtype dtype, Constant constant, std::string name) {
  std::vector<Expr> shape;
  for (const std::int64_t size : constant.dims) shape.push_back(graph_.pool->constant(size));
  constant.value = graph_.add_value(dtype, std::move(shape), std::move(name));
  const ValueId id = constant.value;
  graph_.add_constant(std::move(constant));
  producers_.push_back(nullptr);
  uses_.push_back(0);
  return id;
}

void Rewriter::sweep(ValueId id) {
  Node* node = id == kNoValue ? nullptr : producers_[id];
  if (node == nullptr || !node->bodies.empty()) return;
  for (const ValueId made : node->outputs) {
    if (made != kNoValue && uses_[made] > 0) return;
  }
  std::vector<ValueId> read;
  const auto collect = [&](const auto& self, const Arg& arg) -> void {
    if (arg.kind == ArgKind::kValue) read.push_back(arg.value);
    for (const Arg& item : arg.items) self(self, item);
  };
  for (const Arg& arg : node->args) collect(collect, arg);
  erase(*node);
  for (const ValueId each : read) sweep(each);
}

}  // namespace fairlead
