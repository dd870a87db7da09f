// Subgraphs: branches and loops become bodies, regions that only set a mode are inlined.
#include "fairlead/base/error.h"
#include "fairlead/graph/args.h"
#include "fairlead/pt2/import_impl.h"

namespace fairlead::pt2 {
namespace {

dom::element input(dom::object json, std::size_t k) {
  return dom::array(json["inputs"]).at(k)["arg"];
}

}  // namespace

// cond(pred, true, false, operands); while_loop(test, step, carried, others); scan(step, init, xs,
// others); map_impl(step, xs, others)
void Importer::add_control(Scope& scope, dom::object json, std::string_view name) {
  const OpName op = name;
  if (op == Op::higher_order_wrap_with_set_grad_enabled) {
    return inline_graph(scope, json, 1, 2);
  }
  if (op == Op::higher_order_wrap_with_autocast) {
    // (device, dtype, enabled, cache enabled, graph, operands...)
    bool enabled = true;
    if (input(json, 2)["as_bool"].get(enabled) != simdjson::SUCCESS || enabled) {
      fail(ErrorCode::kUnsupported,
           "Expected a program without autocast, got a region with it. Convert "
           "the model to the type instead");
    }
    return inline_graph(scope, json, 4, 5);
  }
  if (op == Op::higher_order_invoke_subgraph) {
    return inline_graph(scope, json, 0, 2);
  }
  const auto operands = [&](std::size_t k) {
    Arg list = argument(scope, input(json, k));
    return list.items;
  };
  const auto append = [](std::vector<Arg> a, const std::vector<Arg>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const auto list_of = [](std::vector<Arg> items) {
    Arg list;
    list.kind = ArgKind::kList;
    list.items = std::move(items);
    return list;
  };
  Node node;
  node.op = op;
  node.module = module_;
  node.source = source_;
  if (op == Op::higher_order_cond) {
    const Arg pred = argument(scope, input(json, 0));
    const std::vector<Arg> given = operands(3);
    node.args = {pred};
    for (const std::size_t k : {1, 2}) node.bodies.push_back(body(input(json, k), given, 0));
  } else if (op == Op::higher_order_while_loop) {
    const std::vector<Arg> carried = operands(2);
    const std::vector<Arg> given = append(carried, operands(3));
    node.args = {list_of(carried)};
    for (const std::size_t k : {0, 1}) {
      node.bodies.push_back(body(input(json, k), given, carried.size()));
    }
  } else if (op == Op::higher_order_scan) {
    const std::vector<Arg> start = operands(1);
    const std::vector<Arg> scanned = operands(2);
    const std::vector<Arg> given = append(append(start, scanned), operands(3));
    node.args = {list_of(start), list_of(scanned)};
    node.bodies.push_back(body(input(json, 0), given, start.size() + scanned.size()));
  } else if (op == Op::higher_order_map_impl) {
    const std::vector<Arg> scanned = operands(1);
    node.args = {list_of(scanned)};
    node.bodies.push_back(body(input(json, 0), append(scanned, operands(2)), scanned.size()));
  } else {
    fail(ErrorCode::kUnsupported, "Expected cond, while_loop, scan or map as control flow, got " +
                                      std::string(name) + ". Write the model without it");
  }
  add_results(scope, json, std::move(node), nullptr, kNoRunValue);
}

// The nodes of the subgraph become nodes of this graph; its tensors share storage with the
// operands.
void Importer::inline_graph(Scope& scope, dom::object json, std::size_t graph_at,
                            std::size_t operands_at) {
  const dom::object inner = input(json, graph_at)["as_graph"]["graph"];
  Scope inside;
  inside.storage = scope.storage;
  open(inside, inner);
  const dom::array inputs = json["inputs"];
  std::size_t k = operands_at;
  for (const dom::element parameter : dom::array(inner["inputs"])) {
    const std::size_t at = k++;
    std::string_view name;
    if (parameter["as_tensor"]["name"].get(name) != simdjson::SUCCESS) continue;
    name_tensor(inside, name, tensor(scope, inputs.at(at)["arg"]["as_tensor"]["name"]));
  }
  add_nodes(inside, inner);
  node_ = std::string(std::string_view(json["target"]));
  const std::vector<std::string_view> names = results(json);
  k = 0;
  for (const dom::element output : dom::array(inner["outputs"])) {
    const std::size_t at = k++;
    std::string_view name;
    if (output["as_tensor"]["name"].get(name) != simdjson::SUCCESS) continue;
    if (at >= names.size()) fail(ErrorCode::kParse, "Expected as many results as the subgraph has");
    name_tensor(scope, names[at], tensor(inside, name));
  }
}

// The first `parameters` operands change from step to step and are inputs of the body; the others
// are read from outside.
Body Importer::body(dom::element json, const std::vector<Arg>& operands, std::size_t parameters) {
  const std::string op = node_;
  const std::string_view module = module_;
  const std::string_view source = source_;
  const dom::object inner = json["as_graph"]["graph"];
  Storage storage(graph());
  Scope inside;
  inside.storage = &storage;
  open(inside, inner);
  Body made;
  std::size_t k = 0;
  for (const dom::element parameter : dom::array(inner["inputs"])) {
    const std::size_t at = k++;
    if (at >= operands.size())
      fail(ErrorCode::kParse, "Expected one operand per input of a subgraph");
    std::string_view name;
    if (parameter["as_tensor"]["name"].get(name) != simdjson::SUCCESS) continue;
    Fact known = fact(inside, name);
    ValueId id = operands[at].value;
    if (at < parameters) {
      id = graph().add_value(known.dtype, known.shape);
      made.inputs.push_back(id);
      bind_symbols(id);
    } else if (operands[at].kind != ArgKind::kValue) {
      fail(ErrorCode::kUnsupported, "Expected tensors as operands of control flow, got a number");
    }
    storage.functional.define_root(define(inside, name, std::move(known)), id);
  }
  if (made.inputs.size() != parameters) {
    fail(ErrorCode::kUnsupported,
         "Expected tensors that a loop carries, got numbers. Make them tensors");
  }
  std::vector<Node> outside;
  std::swap(outside, graph().nodes);
  add_nodes(inside, inner);
  for (const dom::element output : dom::array(inner["outputs"])) {
    std::string_view name;
    if (output["as_tensor"]["name"].get(name) != simdjson::SUCCESS) {
      fail(ErrorCode::kUnsupported,
           "Expected tensors as results of control flow, got a number or None");
    }
    made.outputs.push_back(storage.functional.read(tensor(inside, name)));
  }
  made.nodes = std::move(graph().nodes);
  graph().nodes = std::move(outside);
  node_ = op;
  module_ = module;
  source_ = source;
  return made;
}

}  // namespace fairlead::pt2
