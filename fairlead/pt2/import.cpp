// The outside of a program: versions, names, inputs, tensors, outputs.
//
// (1) Versions are checked; (2) inputs get the paths of the call; (3) the symbols of their sizes
// get names, and those that guards tie to others are replaced; (4) nodes are added in order; (5)
// outputs are read, and what was written is listed.
#include "fairlead/pt2/import.h"

#include <algorithm>
#include <set>

#include "fairlead/base/error.h"
#include "fairlead/base/only_errors.h"
#include "fairlead/graph/validate.h"
#include "fairlead/probe/names.h"
#include "fairlead/pt2/import_impl.h"
#include "fairlead/pt2/treespec.h"
#include "fairlead/symbol/copy.h"

namespace fairlead::pt2 {
namespace {

constexpr std::int64_t kSchemaMajor = 8;  // of torch 2.5 and later

std::string_view text_or(dom::object object, std::string_view key, std::string_view otherwise) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? text : otherwise;
}

// The one field of a union such as {"user_input": {...}}.
dom::key_value_pair only_field(dom::object object) {
  for (const auto field : object) return field;
  throw Error(ErrorCode::kParse,
              "[pt2] Expected one field in each part of the signature, got none.");
}

}  // namespace

void Importer::fail(ErrorCode code, const std::string& sentence) const {
  std::string text = "[pt2] " + sentence + " (";
  if (!node_.empty()) text += "node " + node_ + " of ";
  text += std::string(where_) + ").";
  throw Error(code, text);
}

void Importer::check_versions(dom::object program) {
  result_.torch_version = std::string(text_or(program, "torch_version", "unknown"));
  std::int64_t major = 0;
  if (program["schema_version"]["major"].get(major) != simdjson::SUCCESS) {
    fail(ErrorCode::kParse, "Expected a program of torch.export with a schema version, got none");
  }
  if (major != kSchemaMajor) {
    fail(ErrorCode::kUnsupported, "Expected a program of schema version " +
                                      std::to_string(kSchemaMajor) + ", got version " +
                                      std::to_string(major) + " of torch " + result_.torch_version +
                                      ". Load it with torch.export.load and save it again");
  }
}

void Importer::open(Scope& scope, dom::object json) {
  const auto fill = [&](std::string_view key, auto& map) {
    dom::object values;
    if (json[key].get(values) != simdjson::SUCCESS) return;
    for (const auto field : values) {
      dom::object meta;
      if (field.value.get(meta) == simdjson::SUCCESS) map.emplace(field.key, meta);
    }
  };
  fill("tensor_values", scope.metas);
  fill("sym_int_values", scope.ints);
  fill("sym_float_values", scope.floats);
  fill("sym_bool_values", scope.flags);
}

void Importer::name_inputs(dom::object module) {
  const dom::array calls = module["module_call_graph"];
  dom::object call;
  if (calls.size() == 0 || calls.at(0)["signature"].get(call) != simdjson::SUCCESS) return;
  std::vector<std::string> parameters;
  dom::array names;
  if (call["forward_arg_names"].get(names) == simdjson::SUCCESS) {
    for (const dom::element name : names) parameters.emplace_back(std::string_view(name));
  }
  input_paths_ = input_names(std::string_view(call["in_spec"]), parameters);
  output_paths_ = output_paths(std::string_view(call["out_spec"]));
  for (const char* key : {"in_spec", "out_spec"}) {
    for (std::string& name : tree_classes(std::string_view(call[key]))) {
      result_.classes.push_back(std::move(name));
    }
  }
}

// Symbols of the inputs' sizes, in a pool of their own first: what guards tie is not to be a symbol
// of the graph.
void Importer::find_symbols(Scope& scope, dom::object program, dom::object json) {
  ExprPool own;
  const SymbolOf plain = [&](std::string_view name) { return own.symbol(name); };
  struct Place {
    std::size_t input, axis, rank;
  };
  std::unordered_map<SymbolId, Place> places;
  std::unordered_map<SymbolId, std::int64_t> examples;
  std::vector<SymbolId> order;
  Guards guards;
  std::size_t user = 0;
  for (const dom::element spec : dom::array(json["signature"]["input_specs"])) {
    const auto field = only_field(spec);
    if (field.key == "constant_input") ++user;
    if (field.key != "user_input") continue;
    const std::size_t input = user++;
    std::string_view name;
    if (field.value["arg"]["as_tensor"]["name"].get(name) != simdjson::SUCCESS) continue;
    const auto meta = scope.metas.find(name);
    if (meta == scope.metas.end()) continue;
    std::vector<Expr>& sizes = guards.sizes[std::string(name)];
    const dom::array dims = meta->second["sizes"];
    for (const dom::element dim : dims) {
      std::int64_t number = 0;
      if (dim["as_int"].get(number) == simdjson::SUCCESS) {
        sizes.push_back(own.constant(number));
        continue;
      }
      const Expr e = parse_sympy(std::string_view(dim["as_expr"]["expr_str"]), own, plain);
      sizes.push_back(e);
      for (const SymbolId id : own.symbols_of(e)) {
        const bool bare = e->kind == ExprKind::kSymbol;
        if (!places.contains(id) && bare) {
          places[id] = {input, sizes.size() - 1, dims.size()};
          order.push_back(id);
        }
        if (bare && dim["as_expr"]["hint"]["as_int"].get(number) == simdjson::SUCCESS) {
          examples[id] = number;
        }
      }
    }
  }
  for (SymbolId id = 0; id < own.symbols().size(); ++id) {
    if (!places.contains(id)) order.push_back(id);
  }
  const std::vector<Expr> solved = solve_guards(own, guards, program);
  const auto known = [&](SymbolId id) -> const std::string* {
    const auto at = places.find(id);
    if (at == places.end()) return nullptr;
    const auto given = dim_names_.find({at->second.input, at->second.axis});
    return given == dim_names_.end() ? nullptr : &given->second;
  };
  std::set<std::string> taken;
  std::vector<std::pair<std::string, std::string>> sums;  // torch's name, what it is known to be
  for (const SymbolId id : order) {
    if (id < solved.size() && solved[id] != nullptr) continue;
    if (const std::string* text = known(id)) {
      const bool plain = text->find_first_of(" +-*/(") == std::string::npos;
      if (!plain || taken.contains(*text)) {
        sums.emplace_back(own.symbols()[id].name, *text);
        continue;
      }
    }
    ImportedSymbol found;
    found.torch_name = own.symbols()[id].name;
    found.name = found.torch_name;
    if (const auto at = places.find(id); at != places.end()) {
      const Place& place = at->second;
      if (const std::string* text = known(id)) {
        found.name = *text;
      } else if (place.input < input_paths_.size()) {
        found.name = symbol_name(input_paths_[place.input], place.axis, place.rank);
      }
    }
    const std::string stem = found.name;
    for (int k = 2; !taken.insert(found.name).second; ++k)
      found.name = stem + "_" + std::to_string(k);
    if (const auto it = examples.find(id); it != examples.end()) found.example = it->second;
    dom::object range;
    if (program["range_constraints"][found.torch_name].get(range) == simdjson::SUCCESS) {
      if (range["min_val"].get(found.min) != simdjson::SUCCESS) found.min = 0;
      if (range["max_val"].get(found.max) != simdjson::SUCCESS) found.max = INT64_MAX;
    }
    const Expr e = pool().symbol(found.name);
    found.id = static_cast<SymbolId>(e->value);
    symbols_.emplace(found.torch_name, e);
    result_.symbols.push_back(std::move(found));
  }
  for (const auto& [name, text] : sums) {
    const std::size_t before = pool().symbols().size();
    const Expr e = pool().parse(text);
    if (pool().symbols().size() != before) {
      fail(ErrorCode::kInvalidInput,
           "Expected sizes made of the sizes of inputs, got '" + text + "'");
    }
    symbols_.emplace(name, e);
  }
  // What guards solved, over the graph's symbols.
  std::vector<Expr> renamed(own.symbols().size(), nullptr);
  for (const Expr e : solved) {
    if (e == nullptr) continue;
    for (const SymbolId id : own.symbols_of(e)) {
      const std::string& name = own.symbols()[id].name;
      const auto it = symbols_.find(name);
      renamed[id] = it != symbols_.end() ? it->second : pool().symbol(name);
    }
  }
  ExprCopier copy(pool(), std::move(renamed));
  for (SymbolId id = 0; id < solved.size(); ++id) {
    if (solved[id] != nullptr) symbols_[own.symbols()[id].name] = copy(solved[id]);
  }
}

void Importer::add_input(Scope& scope, std::string_view name, const std::string& path) {
  Fact known = fact(scope, name);
  const ValueId id = graph().add_value(known.dtype, known.shape, path);
  graph().inputs.push_back(id);
  const RunValue v = define(scope, name, std::move(known));
  scope.storage->functional.define_root(v, id);
  buffers_.emplace_back(path, v);
}

void Importer::add_inputs(Scope& scope, dom::object signature) {
  std::size_t user = 0;
  std::set<std::string> taken;
  for (const dom::element spec : dom::array(signature["input_specs"])) {
    const auto field = only_field(spec);
    const dom::element what = field.value;
    if (field.key == "parameter") {
      add_constant(scope, std::string_view(what["arg"]["name"]),
                   std::string_view(what["parameter_name"]));
    } else if (field.key == "buffer") {
      add_constant(scope, std::string_view(what["arg"]["name"]),
                   std::string_view(what["buffer_name"]));
    } else if (field.key == "tensor_constant") {
      add_constant(scope, std::string_view(what["arg"]["name"]),
                   std::string_view(what["tensor_constant_name"]));
    } else if (field.key == "constant_input") {
      result_.user_inputs.push_back(-1);
      ++user;
    } else if (field.key == "user_input") {
      const std::size_t k = user++;
      std::string_view name;
      if (what["arg"]["as_tensor"]["name"].get(name) != simdjson::SUCCESS) {
        const auto kind = only_field(what["arg"]);
        if (kind.key.starts_with("as_sym_")) {
          fail(ErrorCode::kUnsupported,
               "Expected tensors as inputs that vary, got a number that varies. Pass it as a "
               "tensor");
        }
        result_.user_inputs.push_back(-1);
        continue;
      }
      result_.user_inputs.push_back(static_cast<std::int32_t>(graph().inputs.size()));
      std::string path = k < input_paths_.size() ? input_paths_[k] : std::string(name);
      const std::string stem = path;
      for (int n = 2; !taken.insert(path).second; ++n) path = stem + "_" + std::to_string(n);
      add_input(scope, name, path);
    } else if (field.key == "custom_obj" || field.key == "token") {
      fail(ErrorCode::kUnsupported,
           "Expected tensors as inputs, got a custom object or a token. Export the model without "
           "it");
    } else {
      fail(ErrorCode::kParse,
           "Expected a known kind of input, got '" + std::string(field.key) + "'");
    }
  }
}

void Importer::add_constant(Scope& scope, std::string_view name, std::string_view target) {
  const auto it = tensors_.find(target);
  if (it == tensors_.end()) {
    fail(ErrorCode::kInvalidInput,
         "Expected a tensor for '" + std::string(target) +
             "', got none: the weights are incomplete. Save the program again");
  }
  const Tensor& tensor = it->second;
  Fact known = fact(scope, name);
  std::vector<Expr> shape;
  for (const std::int64_t d : tensor.dims) shape.push_back(pool().constant(d));
  if (shape != known.shape || tensor.dtype != known.dtype) {
    fail(ErrorCode::kInvalidInput,
         "Expected '" + std::string(target) +
             "' with the type and sizes that the program declares, got another");
  }
  Constant constant;
  constant.value = graph().add_value(tensor.dtype, std::move(shape), std::string(target));
  constant.data = tensor.data;
  constant.dims = tensor.dims;
  constant.strides = tensor.strides;
  const ValueId id = constant.value;
  graph().add_constant(std::move(constant));
  const RunValue v = define(scope, name, std::move(known));
  scope.storage->functional.define_root(v, id);
  buffers_.emplace_back(std::string(target), v);
}

void Importer::add_outputs(Scope& scope, dom::object signature) {
  node_.clear();
  std::vector<std::string> paths;
  std::vector<std::string>& written = result_.program.written_inputs;
  std::size_t user = 0;
  for (const dom::element spec : dom::array(signature["output_specs"])) {
    const auto field = only_field(spec);
    if (field.key == "buffer_mutation" || field.key == "parameter_mutation" ||
        field.key == "user_input_mutation") {
      const char* key = field.key == "buffer_mutation"      ? "buffer_name"
                        : field.key == "parameter_mutation" ? "parameter_name"
                                                            : "user_input_name";
      std::string name(std::string_view(field.value[key]));
      if (const auto it = scope.tensors.find(name); it != scope.tensors.end()) {
        for (const auto& [path, v] : buffers_) {
          if (v == it->second) name = path;
        }
      }
      written.push_back(name);
      continue;
    }
    if (field.key == "token") continue;
    if (field.key != "user_output") {
      fail(ErrorCode::kUnsupported,
           "Expected a program for inference, got one whose outputs are a loss "
           "or gradients. Export the model in eval mode");
    }
    const std::size_t k = user++;
    std::string_view name;
    if (field.value["arg"]["as_tensor"]["name"].get(name) != simdjson::SUCCESS) continue;
    graph().outputs.push_back(scope.storage->functional.read(tensor(scope, name)));
    paths.push_back(k < output_paths_.size() ? output_paths_[k] : std::string(name));
  }
  if (paths.empty()) {
    fail(ErrorCode::kInvalidInput, "Expected a program that returns tensors, got none");
  }
  std::vector<std::string> inputs;
  for (const ValueId id : graph().inputs) inputs.push_back(graph().values[id].name);
  graph().output_names = output_names(paths, inputs);
  for (const auto& [path, v] : buffers_) {
    if (scope.storage->functional.written(v) &&
        std::find(written.begin(), written.end(), path) == written.end()) {
      written.push_back(path);
    }
  }
}

// Every symbol in an argument or a size comes from somewhere.
void Importer::check_symbols() {
  const auto use = [&](Expr e) {
    if (e == nullptr || is_const(e)) return;
    for (const SymbolId id : pool().symbols_of(e)) {
      if (graph().symbol_sources[id].value != kNoValue) continue;
      fail(ErrorCode::kUnsupported,
           "Expected every size to follow from the inputs' sizes or from a "
           "value that is read, got '" +
               pool().symbols()[id].name + "', which nothing gives");
    }
  };
  const auto use_arg = [&](const auto& self, const Arg& arg) -> void {
    use(arg.expr);
    for (const Arg& item : arg.items) self(self, item);
  };
  graph().symbol_sources.resize(pool().symbols().size());
  for_each_node(graph().nodes, [&](const Node& node) {
    node_ = node.op;
    for (const Arg& arg : node.args) use_arg(use_arg, arg);
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      for (const Expr e : graph().values[id].shape) use(e);
    }
  });
  node_.clear();
}

Imported Importer::run(dom::object program) {
  check_versions(program);
  const dom::object module = program["graph_module"];
  const dom::object json = module["graph"];
  const dom::object signature = module["signature"];
  Storage storage(graph());
  Scope scope;
  scope.storage = &storage;
  open(scope, json);
  name_inputs(module);
  find_symbols(scope, program, module);
  add_inputs(scope, signature);
  graph().find_symbol_sources();
  add_nodes(scope, json);
  add_outputs(scope, signature);
  check_symbols();
  validate(graph(), where_);
  return std::move(result_);
}

Imported import_program(std::string_view json, const Tensors& tensors, std::string_view where,
                        const DimNames& names) {
  dom::parser parser;
  try {
    return only_errors("pt2", where, [&] {
      const dom::element root = parser.parse(json.data(), json.size());
      return Importer(tensors, where, names).run(root);
    });
  } catch (const simdjson::simdjson_error& error) {
    throw Error(ErrorCode::kParse,
                "[pt2] Expected a program as torch.export writes it, got JSON that is "
                "damaged or has other fields: " +
                    std::string(error.what()) + " (" + std::string(where) +
                    "). Save the program again.");
  }
}

}  // namespace fairlead::pt2
