// The rules of the door, each where validate.h numbers it.
#include "fairlead/graph/validate.h"

#include <algorithm>
#include <string>

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

std::string_view name_of(ArgKind kind) {
  switch (kind) {
    case ArgKind::kNone:
      return "None";
    case ArgKind::kValue:
      return "a tensor";
    case ArgKind::kInt:
      return "an integer";
    case ArgKind::kFloat:
      return "a float";
    case ArgKind::kBool:
      return "a flag";
    case ArgKind::kString:
      return "a text";
    case ArgKind::kDtype:
      return "an element type";
    case ArgKind::kList:
      return "a list";
  }
  return "nothing";
}

std::string_view words_of(char letter) {
  switch (letter) {
    case 'T':
      return "a tensor";
    case 't':
      return "a tensor or None";
    case 'L':
      return "a list of tensors";
    case 'l':
      return "a list of tensors or Nones";
    case 'i':
      return "an integer";
    case 'o':
      return "an integer or None";
    case 'I':
      return "a list of integers";
    case 'J':
      return "a list of integers or None";
    case 'f':
      return "a number";
    case 'g':
      return "a number or None";
    case 'b':
      return "a flag";
    case 'c':
      return "a flag or None";
    case 's':
      return "a number";
    case 'q':
      return "a number or None";
    default:
      return "an argument";
  }
}

struct Parameter {
  char letter = 'x';
  char mark = 0;  // @ ^ % ~ or none
  bool has_default = false;
};

class NodeCheck {
 public:
  NodeCheck(const Graph& graph, const Node& node, std::string_view where)
      : graph_(graph), node_(node), where_(where) {}

  void run() {
    for (const Arg& arg : node_.args) check_form(arg, 0);
    check_bodies();
    for (const ValueId id : node_.outputs) {
      if (id != kNoValue) check_value(id);
    }
    const Operator* row = node_.op.row();
    if (row == nullptr || !row->has_schema()) return;
    const std::size_t colon = row->kinds.find(':');
    check_arguments(parse(row->kinds.substr(0, colon)));
    check_results(row->kinds.substr(colon + 1));
  }

  [[noreturn]] void fail(const std::string& sentence) const {
    std::string text = "[graph] Expected " + sentence + " (node " + node_.op;
    if (!node_.source.empty()) text += " at " + std::string(node_.source);
    text += " of " + std::string(where_) + ").";
    throw Error(ErrorCode::kInvalidInput, text);
  }

  // What a graph cannot hold, and could at fixed sizes.
  [[noreturn]] void fail_varying(const std::string& what, Expr e) const {
    ErrorDetail detail;
    detail.kind = "must be constant";
    detail.fields = {{"operator", node_.op.str()},
                     {"why", what},
                     {"module", std::string(node_.module)},
                     {"source", std::string(node_.source)}};
    for (const SymbolId id : graph_.pool->symbols_of(e)) {
      detail.values.push_back(graph_.pool->symbols()[id].name);
    }
    std::string text =
        "[graph] Expected " + what + ", got " + graph_.pool->to_string(e) + " (node " + node_.op;
    if (!node_.source.empty()) text += " at " + std::string(node_.source);
    throw Error(ErrorCode::kUnsupported, text + " of " + std::string(where_) + ").", {detail});
  }

  // Rule 4 of a value.
  void check_value(ValueId id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= graph_.values.size()) {
      fail("a value of the graph, got number " + std::to_string(id));
    }
    const Shape& shape = graph_.values[static_cast<std::size_t>(id)].shape;
    if (shape.size() > kMostAxes) {
      fail("at most " + std::to_string(kMostAxes) + " axes, got " + std::to_string(shape.size()));
    }
    std::int64_t elements = 1;
    bool empty = false;
    for (const Expr e : shape) {
      if (e == nullptr || (is_const(e) && e->value < 0)) {
        fail("sizes that are not negative, got " +
             (e == nullptr ? std::string("none") : std::to_string(e->value)));
      }
      if (!is_const(e)) continue;
      empty = empty || e->value == 0;
      if (e->value > 0 && elements > kMostElements / e->value) elements = kMostElements + 1;
      if (e->value > 0 && elements <= kMostElements) elements *= e->value;
    }
    if (elements > kMostElements && !empty) {
      fail("tensors of at most " + std::to_string(kMostElements) + " elements, got more");
    }
  }

 private:
  static std::vector<Parameter> parse(std::string_view text) {
    std::vector<Parameter> found;
    Parameter next;
    for (const char c : text) {
      if (c == '.') {
        next.has_default = true;
      } else if (c == '@' || c == '^' || c == '%' || c == '~') {
        next.mark = c;
      } else {
        next.letter = c;
        found.push_back(next);
        next = {};
      }
    }
    return found;
  }

  [[nodiscard]] std::string at(std::size_t k) const { return " as argument " + std::to_string(k); }

  // What an argument of any operator holds: an integer has its expression, a list no list of lists
  // of lists.
  void check_form(const Arg& arg, std::size_t depth) const {
    if (arg.kind == ArgKind::kInt && arg.expr == nullptr) fail("a number in an integer, got none");
    if (arg.kind == ArgKind::kValue) check_value(arg.value);
    if (arg.items.size() > kMostItems || depth > 4) {
      fail("lists of at most " + std::to_string(kMostItems) + " items, four deep, got more");
    }
    for (const Arg& item : arg.items) check_form(item, depth + 1);
  }

  [[nodiscard]] static bool is_integer(const Arg& arg) {
    // A flag that sizes decide is an integer, and a number that was read is a tensor.
    return arg.kind == ArgKind::kInt || arg.kind == ArgKind::kBool;
  }
  [[nodiscard]] static bool is_number(const Arg& arg) {
    return is_integer(arg) || arg.kind == ArgKind::kFloat || arg.kind == ArgKind::kValue;
  }

  [[nodiscard]] static bool fits(const Arg& arg, char letter) {
    const bool none = arg.kind == ArgKind::kNone;
    const bool list = arg.kind == ArgKind::kList;
    const auto all = [&](auto test) {
      return list && std::all_of(arg.items.begin(), arg.items.end(), test);
    };
    const auto is_plain_integer = [](const Arg& a) { return a.kind == ArgKind::kInt; };
    const auto is_tensor = [](const Arg& a) { return a.kind == ArgKind::kValue; };
    switch (letter) {
      case 'T':  // numbers stand for tensors of one element
        return is_number(arg);
      case 't':
        return none || is_number(arg);
      case 'L':
        return all(is_tensor);
      case 'l':
        return none || all([&](const Arg& a) { return is_tensor(a) || a.kind == ArgKind::kNone; });
      case 'i':
        return is_integer(arg);
      case 'o':
        return none || is_integer(arg);
      case 'I':
        return arg.kind == ArgKind::kInt || all(is_plain_integer);
      case 'J':
        return none || arg.kind == ArgKind::kInt || all(is_plain_integer);
      case 'f':
      case 's':
        return is_number(arg);
      case 'g':
      case 'q':
        return none || is_number(arg);
      case 'b':
        return is_integer(arg) || arg.kind == ArgKind::kValue;
      case 'c':
        return none || is_integer(arg) || arg.kind == ArgKind::kValue;
      default:
        return true;
    }
  }

  // Rule 2. The first argument is what the operator works on: a tensor where the schema says so, or
  // a number beside another or beside a tensor: 1.0 // x, torch.div(x.shape[1], 2).
  void check_arguments(const std::vector<Parameter>& parameters) {
    const auto& args = node_.args;
    const bool works_on_tensor =
        !args.empty() &&
        (args[0].kind == ArgKind::kValue ||
         (node_.op.has(Trait::kNumberFirst) && args.size() > 1 && is_number(args[1])));
    if (args.size() > parameters.size()) {
      fail("at most " + std::to_string(parameters.size()) + " arguments, got " +
           std::to_string(args.size()));
    }
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      if (k >= args.size()) {
        if (parameters[k].has_default) continue;
        fail(std::string(words_of(parameters[k].letter)) + at(k) + ", got none");
      }
      const bool plain = k == 0 && parameters[k].letter == 'T' && !works_on_tensor;
      // A recorded reshape may have sizes that are tensors; what it makes is known without them.
      const bool sizes = k == 1 && node_.op == Op::reshape && args[k].kind == ArgKind::kList &&
                         std::all_of(args[k].items.begin(), args[k].items.end(), is_number);
      if (plain || (!sizes && !fits(args[k], parameters[k].letter))) {
        fail(std::string(words_of(parameters[k].letter)) + at(k) + ", got " +
             std::string(name_of(args[k].kind)));
      }
    }
    for (std::size_t k = 0; k < std::min(args.size(), parameters.size()); ++k) {
      if (parameters[k].mark != 0) check_axes(k, parameters[k].mark);
    }
  }

  // Rule 3.
  void check_axes(std::size_t k, char mark) const {
    const Arg& arg = node_.args[k];
    if (arg.kind == ArgKind::kNone) return;
    // Lists of tensors count the axes of their longest: an empty one may stand beside others.
    std::size_t rank = 0;
    const Arg& first = node_.args[0];
    if (first.kind == ArgKind::kValue) rank = rank_of(first.value);
    for (const Arg& item : first.items) {
      if (item.kind == ArgKind::kValue) rank = std::max(rank, rank_of(item.value));
    }
    if (mark == '^') ++rank;
    const auto limit = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
    const std::size_t count = arg.kind == ArgKind::kList ? arg.items.size() : 1;
    if ((mark != '~' && count > static_cast<std::size_t>(limit)) ||
        (mark == '%' && count != rank)) {
      fail("axes of a tensor of " + std::to_string(rank) + at(k) + ", got " +
           std::to_string(count) + " of them");
    }
    std::vector<bool> seen(static_cast<std::size_t>(limit), false);
    for (std::size_t n = 0; n < count; ++n) {
      const Arg& each = arg.kind == ArgKind::kList ? arg.items[n] : arg;
      if (each.kind != ArgKind::kInt) fail("an axis" + at(k) + ", got none");
      if (!is_const(each.expr)) fail_varying("a constant axis" + at(k), each.expr);
      const std::int64_t axis = each.expr->value;
      if (axis < -limit || axis >= limit) {
        fail("an axis of a tensor of " + std::to_string(rank) + at(k) + ", got " +
             std::to_string(axis));
      }
      const auto place = static_cast<std::size_t>(axis < 0 ? axis + limit : axis);
      if (seen[place] && mark != '~')
        fail("every axis once" + at(k) + ", got " + std::to_string(axis) + " twice");
      seen[place] = true;
    }
  }

  [[nodiscard]] std::size_t rank_of(ValueId id) const {
    return graph_.values[static_cast<std::size_t>(id)].shape.size();
  }

  void check_results(std::string_view letters) const {
    if (node_.outputs.empty()) return;
    if (letters.find_first_of("Ll") != std::string_view::npos) return;  // as many as the list has
    const std::size_t most = std::max<std::size_t>(letters.size(), 1);
    if (node_.outputs.size() > most) {
      fail("at most " + std::to_string(most) + " results, got " +
           std::to_string(node_.outputs.size()));
    }
  }

  // Rule 4 of control flow.
  void check_bodies() const {
    const Operator* row = node_.op.row();
    const Control control = row == nullptr ? Control{} : row->control;
    if (node_.bodies.size() != control.bodies) {
      fail(std::to_string(control.bodies) + " bodies, got " + std::to_string(node_.bodies.size()));
    }
    if (control.bodies == 0) return;
    std::size_t carried = control.counts ? 1 : 0;  // the number of the step
    for (std::size_t k = 0; k < std::size_t{control.first_list} + control.lists; ++k) {
      if (k >= node_.args.size()) fail("an argument" + at(k) + ", got none");
      if (k < control.first_list) continue;
      if (!fits(node_.args[k], 'L')) {
        fail("a list of tensors" + at(k) + ", got " + std::string(name_of(node_.args[k].kind)));
      }
      carried += node_.args[k].items.size();
    }
    for (std::size_t k = 0; k < node_.bodies.size(); ++k) {
      const Body& body = node_.bodies[k];
      if (body.inputs.size() != carried) {
        fail(std::to_string(carried) + " inputs of a body, got " +
             std::to_string(body.inputs.size()));
      }
      const std::size_t results = control.tests && k == 0 ? 1 : node_.outputs.size();
      if (body.outputs.size() != results) {
        fail(std::to_string(results) + " results of a body, got " +
             std::to_string(body.outputs.size()));
      }
      for (const ValueId id : body.inputs) check_value(id);
      for (const ValueId id : body.outputs) check_value(id);
    }
    // What a loop carries comes first among its results.
    const std::size_t states = control.carries ? node_.args[control.first_list].items.size() : 0;
    if (node_.outputs.size() < states || (control.tests && node_.outputs.size() != states)) {
      fail("a result for each of " + std::to_string(states) + " tensors that are carried, got " +
           std::to_string(node_.outputs.size()));
    }
  }

  const Graph& graph_;
  const Node& node_;
  std::string_view where_;
};

// Rule 1, and the others node by node.
class GraphCheck {
 public:
  GraphCheck(const Graph& graph, std::string_view where)
      : graph_(graph), where_(where), made_(graph.values.size(), false), ever_(made_) {}

  void run() {
    for (const ValueId v : graph_.inputs) make(v, "an input");
    for (const Constant& c : graph_.constants) make(c.value, "a constant");
    run(graph_.nodes, 0);
    for (const ValueId v : graph_.outputs) use(v, "an output");
    if (graph_.output_names.size() != graph_.outputs.size()) {
      fail("a name for each of " + std::to_string(graph_.outputs.size()) + " outputs, got " +
               std::to_string(graph_.output_names.size()),
           "the graph");
    }
    const Node none;
    const NodeCheck check(graph_, none, where_);
    for (const ValueId v : graph_.inputs) check.check_value(v);
    for (const Constant& c : graph_.constants) check.check_value(c.value);
    for (const SymbolSource& source : graph_.symbol_sources) check_source(source);
  }

 private:
  [[noreturn]] void fail(const std::string& sentence, const std::string& who) const {
    throw Error(ErrorCode::kInvalidInput,
                "[graph] Expected " + sentence + " (" + who + " of " + std::string(where_) + ").");
  }
  void know(ValueId id, const std::string& who) const {
    if (id < 0 || static_cast<std::size_t>(id) >= graph_.values.size()) {
      fail("a value of the graph, got number " + std::to_string(id), who);
    }
  }
  void make(ValueId id, const std::string& who) {
    know(id, who);
    if (ever_[id]) fail("every value to be made once, got %" + std::to_string(id) + " again", who);
    made_[id] = ever_[id] = true;
  }
  void use(ValueId id, const std::string& who) const {
    know(id, who);
    if (!made_[id]) {
      fail("a value that is made before it is read, got %" + std::to_string(id), who);
    }
  }
  void use(const Arg& arg, const std::string& who) const {
    if (arg.kind == ArgKind::kValue) use(arg.value, who);
    for (const Arg& item : arg.items) use(item, who);
  }
  void run(const std::vector<Node>& nodes, std::size_t depth) {
    if (depth > kMostNesting) {
      fail("at most " + std::to_string(kMostNesting) + " bodies in each other, got more", "a body");
    }
    for (const Node& node : nodes) {
      const std::string who = "node " + node.op;
      for (const Arg& arg : node.args) use(arg, who);
      NodeCheck(graph_, node, where_).run();
      for (const Body& body : node.bodies) run(body, who, depth);
      for (const ValueId v : node.outputs) {
        if (v != kNoValue) make(v, who);
      }
    }
  }
  // What a body makes is not seen after it.
  void run(const Body& body, const std::string& who, std::size_t depth) {
    const std::vector<bool> outside = made_;
    for (const ValueId v : body.inputs) make(v, "a body of " + who);
    run(body.nodes, depth + 1);
    for (const ValueId v : body.outputs) use(v, "a body of " + who);
    made_ = outside;
  }
  void check_source(const SymbolSource& source) const {
    if (source.value == kNoValue) return;
    know(source.value, "a symbol");
    if (source.divisor <= 0 || source.axis < 0) {
      fail("a symbol read from an axis, got axis " + std::to_string(source.axis), "a symbol");
    }
  }

  const Graph& graph_;
  std::string_view where_;
  std::vector<bool> made_;
  std::vector<bool> ever_;  // also in a body that has ended
};

}  // namespace

void validate(const Graph& graph, std::string_view where) { GraphCheck(graph, where).run(); }

void validate_node(const Graph& graph, const Node& node, std::string_view where) {
  NodeCheck(graph, node, where).run();
}

}  // namespace fairlead
