// The nodes of a program, one by one.
//
// 1. A node that only computes with sizes is not needed: its result stands as an expression in the
// program.
// 2. A node that reads a value (item) gives a symbol its source.
// 3. A node without results that writes nothing is a check, and is dropped.
// 4. An operator that writes becomes its functional form and a write; a view is remembered as one.
#include <algorithm>

#include "fairlead/aten/rules/composite.h"
#include "fairlead/base/error.h"
#include "fairlead/graph/args.h"
#include "fairlead/graph/validate.h"
#include "fairlead/pt2/import_impl.h"

namespace fairlead::pt2 {
namespace {

// "L__self__,,__main__.M;L__self__l,l,torch.nn.modules.linear.Linear" -> "l"
std::string_view module_path(std::string_view stack) {
  const std::size_t last = stack.rfind(';');
  if (last != std::string_view::npos) stack.remove_prefix(last + 1);
  const std::size_t first = stack.find(',');
  if (first == std::string_view::npos) return {};
  stack.remove_prefix(first + 1);
  const std::string_view path = stack.substr(0, stack.find(','));
  return path.starts_with("_empty_nn_module_stack") ? std::string_view() : path;
}

// The innermost line of the model, not of PyTorch: "modeling_llama.py:246".
std::string source_line(std::string_view trace) {
  std::string found;
  constexpr std::string_view kFile = "File \"";
  for (std::size_t at = trace.find(kFile); at != std::string_view::npos;
       at = trace.find(kFile, at)) {
    at += kFile.size();
    const std::size_t end = trace.find('"', at);
    if (end == std::string_view::npos) break;
    const std::string_view file = trace.substr(at, end - at);
    constexpr std::string_view kLine = "\", line ";
    if (!trace.substr(end).starts_with(kLine)) continue;
    const std::size_t number = end + kLine.size();
    std::size_t stop = number;
    while (stop < trace.size() && trace[stop] >= '0' && trace[stop] <= '9') ++stop;
    const bool of_torch = file.starts_with("torch/") || file.starts_with('<') ||
                          file.find("/torch/") != std::string_view::npos;
    if (!of_torch || found.empty()) {
      const std::size_t slash = file.rfind('/');
      const std::string_view name = slash == std::string_view::npos ? file : file.substr(slash + 1);
      found = std::string(name) + ":" + std::string(trace.substr(number, stop - number));
    }
    at = stop;
  }
  return found;
}

std::string_view optional_name(dom::element json) {
  std::string_view name;
  return json["as_tensor"]["name"].get(name) == simdjson::SUCCESS ? name : std::string_view();
}

// Operators with dropout in them draw nothing when it is off.
bool draws(const Node& node) {
  const auto off = [&](std::int8_t k) {
    if (k < 0) return false;
    const Arg& arg = node.args[static_cast<std::size_t>(k)];
    return arg.expr == nullptr && (arg.kind == ArgKind::kBool || arg.kind == ArgKind::kFloat) &&
           arg.number == 0;
  };
  const auto& chances = node.op.row()->chances;
  return std::none_of(chances.begin(), chances.end(), off);
}

// The row of an operator whose arguments a program names; nullptr: they are taken as they come.
const Operator* schema_of(std::string_view op) {
  const Operator* row = find_operator(op);
  return row != nullptr && row->has_schema() ? row : nullptr;
}

}  // namespace

void Importer::add_nodes(Scope& scope, dom::object json) {
  for (const dom::element node : dom::array(json["nodes"])) {
    try {
      add_node(scope, node);
    } catch (const LookupError&) {
      fail(ErrorCode::kInvalidInput,
           "Expected arguments and results that fit each other, got others");
    }
  }
}

void Importer::add_node(Scope& scope, dom::object json) {
  std::string_view target = json["target"];
  node_ = std::string(target);
  std::string_view text;
  module_ = source_ = {};
  if (json["metadata"]["nn_module_stack"].get(text) == simdjson::SUCCESS) {
    module_ = graph().keep(module_path(text));
  }
  if (json["metadata"]["stack_trace"].get(text) == simdjson::SUCCESS) {
    source_ = graph().keep(source_line(text));
  }
  constexpr std::string_view kOps = "torch.ops.";
  const bool is_operator = target.starts_with(kOps);
  if (is_operator) target.remove_prefix(kOps.size());
  if (is_operator && target.starts_with("higher_order.")) return add_control(scope, json, target);
  const dom::array outputs = json["outputs"];
  bool only_sizes = outputs.size() > 0;  // rule 1
  for (const dom::element output : outputs) {
    for (const auto field : dom::object(output)) {
      only_sizes = only_sizes && (field.key.starts_with("as_sym_") || field.key == "as_int" ||
                                  field.key == "as_float" || field.key == "as_bool");
    }
  }
  if (only_sizes) {
    if (OpName(target).has(Trait::kReads)) read_value(scope, json);
    return;
  }
  const Operator* schema = is_operator ? schema_of(target) : nullptr;
  if (outputs.size() == 0 && (schema == nullptr || schema->writes < 0)) return;  // rule 3
  if (!is_operator) {
    fail(ErrorCode::kUnsupported,
         "Expected operators of PyTorch, got the function " + std::string(target));
  }
  node_ = std::string(target);
  add_operator(scope, json, schema);
}

void Importer::read_value(Scope& scope, dom::object json) {
  const std::string_view from = dom::array(json["inputs"]).at(0)["arg"]["as_tensor"]["name"];
  const ValueId id = scope.storage->functional.read(tensor(scope, from));
  const dom::element output = dom::array(json["outputs"]).at(0);
  dom::element name;
  if (output["as_sym_int"].get(name) == simdjson::SUCCESS) {
    const Expr e = named_int(scope, name, "as_int");
    if (e->kind != ExprKind::kSymbol) return;
    SymbolSource& source = graph().symbol_sources[e->value];
    if (source.value != kNoValue) return;
    source = {id, 0};
    pool().symbol_info(static_cast<SymbolId>(e->value)).kind = SymbolKind::kRead;
    return;
  }
  std::string_view text;
  for (const char* kind : {"as_sym_float", "as_sym_bool"}) {
    if (output[kind]["as_name"].get(text) == simdjson::SUCCESS) scope.read[text] = id;
  }
}

std::vector<Arg> Importer::arguments(Scope& scope, dom::object json, const Operator* schema) {
  const dom::array inputs = json["inputs"];
  std::vector<Arg> args;
  if (schema == nullptr) {
    for (const dom::element input : inputs) args.push_back(argument(scope, input["arg"]));
    return args;
  }
  const std::vector<Param> params = params_of(*schema);
  std::vector<bool> given(params.size(), false);
  args.resize(params.size());
  for (const dom::element input : inputs) {
    const std::string_view name = input["name"];
    const auto it = std::find_if(params.begin(), params.end(),
                                 [&](const Param& param) { return param.name == name; });
    if (it == params.end()) {
      fail(ErrorCode::kUnsupported, "Expected the arguments " + std::string(schema->params) +
                                        ", got '" + std::string(name) + "'");
    }
    const auto k = static_cast<std::size_t>(it - params.begin());
    args[k] = argument(scope, input["arg"]);
    given[k] = true;
  }
  for (std::size_t k = 0; k < params.size(); ++k) {
    if (given[k]) continue;
    if (!params[k].has_default) {
      fail(ErrorCode::kParse,
           "Expected the argument '" + std::string(params[k].name) + "', got none");
    }
    args[k] = default_arg(params[k].default_text, pool());
  }
  return args;
}

// The names of the results, empty for one that is None; lists are flattened.
std::vector<std::string_view> Importer::results(dom::object json) const {
  std::vector<std::string_view> names;
  for (const dom::element output : dom::array(json["outputs"])) {
    for (const auto field : dom::object(output)) {
      if (field.key == "as_tensor") {
        names.push_back(field.value["name"]);
      } else if (field.key == "as_optional_tensor") {
        names.push_back(optional_name(field.value));
      } else if (field.key == "as_tensors") {
        for (const dom::element item : dom::array(field.value)) names.push_back(item["name"]);
      } else if (field.key == "as_optional_tensors") {
        for (const dom::element item : dom::array(field.value)) {
          names.push_back(optional_name(item));
        }
      } else {
        names.emplace_back();
      }
    }
  }
  return names;
}

void Importer::add_operator(Scope& scope, dom::object json, const Operator* schema) {
  Node node;
  node.op = schema != nullptr && !schema->functional.empty() ? OpName(schema->functional) : node_;
  node.module = module_;
  node.source = source_;
  node.args = arguments(scope, json, schema);
  validate_node(graph(), node, where_);
  node.random = schema != nullptr && schema->random && (node.op.row() == nullptr || draws(node));
  const auto given_name = [&](std::size_t at) -> std::string_view {
    const std::vector<Param> params = params_of(*schema);
    for (const dom::element input : dom::array(json["inputs"])) {
      std::string_view name;
      if (std::string_view(input["name"]) == params[at].name &&
          input["arg"]["as_tensor"]["name"].get(name) == simdjson::SUCCESS) {
        return name;
      }
    }
    fail(ErrorCode::kUnsupported, "Expected one tensor that is written or viewed, got a list");
  };
  if (schema == nullptr) return add_results(scope, json, std::move(node), schema, kNoRunValue);
  if (schema->writes < 0) {
    const bool views = schema->alias != Alias::kNever && !node.args.empty() &&
                       node.args[0].kind == ArgKind::kValue;
    const RunValue viewed = views ? tensor(scope, given_name(0)) : kNoRunValue;
    return add_results(scope, json, std::move(node), schema, viewed);
  }
  Storage& storage = *scope.storage;
  const RunValue written = tensor(scope, given_name(static_cast<std::size_t>(schema->writes)));
  if (storage.unsure.contains(root(storage, written))) {
    fail(ErrorCode::kUnsupported,
         "Expected to know whether a tensor shares its memory, got a write after "
         "a reshape that may have copied (in " +
             std::string(module_) + " at " + std::string(source_) +
             "). Clone the tensor before writing to it");
  }
  const Value like = graph().values[storage.functional.read(written)];
  const ValueId out = graph().add_value(like.dtype, like.shape);
  node.outputs = {out};
  rewrite_composite(graph(), node);
  graph().nodes.push_back(std::move(node));
  storage.functional.write(written, out);
  for (const std::string_view name : results(json)) {
    if (!name.empty()) name_tensor(scope, name, written);
  }
}

RunValue Importer::define(Scope& scope, std::string_view name, Fact fact) {
  const auto v = static_cast<RunValue>(scope.storage->facts.size());
  scope.storage->facts.push_back(std::move(fact));
  name_tensor(scope, name, v);
  return v;
}

// Each name is made once: PyTorch refuses what makes it again, and so would its readers be in
// doubt.
void Importer::name_tensor(Scope& scope, std::string_view name, RunValue v) {
  if (!scope.tensors.emplace(name, v).second) {
    fail(ErrorCode::kParse, "Expected one origin of '" + std::string(name) + "', got a second");
  }
}

// A size that no input gives is born where it is first seen.
void Importer::bind_symbols(ValueId id) {
  const auto& shape = graph().values[id].shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis]->kind != ExprKind::kSymbol) continue;
    SymbolSource& source = graph().symbol_sources[shape[axis]->value];
    if (source.value == kNoValue) source = {id, static_cast<int>(axis)};
  }
}

void Importer::add_results(Scope& scope, dom::object json, Node node, const Operator* schema,
                           RunValue viewed) {
  Storage& storage = *scope.storage;
  const std::vector<std::string_view> names = results(json);
  std::vector<Fact> facts;
  for (const std::string_view name : names) {
    if (name.empty() || (names.size() > 1 && !scope.metas.contains(name))) {
      node.outputs.push_back(kNoValue);
      facts.emplace_back();
      continue;
    }
    facts.push_back(fact(scope, name));
    node.outputs.push_back(graph().add_value(facts.back().dtype, facts.back().shape));
    bind_symbols(node.outputs.back());
  }
  rewrite_composite(graph(), node);
  graph().nodes.push_back(std::move(node));
  const std::size_t index = graph().nodes.size() - 1;
  for (std::size_t k = 0; k < names.size(); ++k) {
    const ValueId id = graph().nodes[index].outputs[k];
    if (id == kNoValue) continue;
    const bool views = viewed != kNoRunValue && is_view(scope, *schema, viewed, facts[k]);
    facts[k].parent = views ? viewed : kNoRunValue;
    const RunValue v = define(scope, names[k], std::move(facts[k]));
    if (views) {
      storage.functional.define_view(v, viewed, index, k);
    } else {
      storage.functional.define_root(v, id);
    }
  }
}

RunValue Importer::root(const Storage& storage, RunValue v) {
  while (storage.facts[v].parent != kNoRunValue) v = storage.facts[v].parent;
  return v;
}

bool Importer::is_contiguous(const Fact& fact) {
  Expr step = pool().constant(1);
  for (std::size_t k = fact.shape.size(); k-- > 0;) {
    if (k >= fact.strides.size()) return false;
    if (!is_const(fact.shape[k], 1) && fact.strides[k] != step) return false;
    step = pool().mul(step, fact.shape[k]);
  }
  return true;
}

// contiguous and to share where nothing changes; reshape shares a contiguous tensor, and may share
// others.
bool Importer::is_view(Scope& scope, const Operator& schema, RunValue from, const Fact& to) {
  if (schema.alias == Alias::kView) return true;
  Storage& storage = *scope.storage;
  const Fact& before = storage.facts[from];
  if (before.dtype != to.dtype) return false;
  if (schema.has(Trait::kSharesAsIs)) return before.strides == to.strides;
  if (before.shape == to.shape || is_contiguous(before)) return true;
  storage.unsure.insert(root(storage, from));
  return false;
}

}  // namespace fairlead::pt2
