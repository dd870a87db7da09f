// The state of an import, for the files import*.cpp.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "fairlead/pt2/defaults.h"
#include "fairlead/pt2/import.h"
#include "fairlead/pt2/sympy.h"
#include "fairlead/trace/functional.h"

namespace fairlead::pt2 {

namespace dom = simdjson::dom;

// What is known of a value of the program beside its content.
struct Fact {
  Dtype dtype = Dtype::kFloat32;
  std::vector<Expr> shape;
  std::vector<Expr> strides;
  RunValue parent = kNoRunValue;  // it is a view of
};

// Storages of one graph and of what is inlined into it. A body has its own: it sees values, not
// storages.
struct Storage {
  explicit Storage(Graph& graph) : functional(graph) {}
  Functional functional;
  std::vector<Fact> facts;              // by RunValue
  std::unordered_set<RunValue> unsure;  // roots that a reshape may or may not share
};

// The names of one graph of the program.
struct Scope {
  Storage* storage = nullptr;
  std::unordered_map<std::string_view, dom::object> metas;  // of tensors
  std::unordered_map<std::string_view, dom::object> ints;
  std::unordered_map<std::string_view, dom::object> floats;
  std::unordered_map<std::string_view, dom::object> flags;
  std::unordered_map<std::string_view, RunValue> tensors;
  std::unordered_map<std::string_view, ValueId>
      read;  // floats and flags that were read from tensors
};

class Importer {
 public:
  Importer(const Tensors& tensors, std::string_view where, const DimNames& names)
      : tensors_(tensors), where_(where), dim_names_(names) {}

  [[nodiscard]] Imported run(dom::object program);

 private:
  [[nodiscard]] Graph& graph() { return result_.program.graph; }
  [[nodiscard]] ExprPool& pool() { return *graph().pool; }
  [[noreturn]] void fail(ErrorCode code, const std::string& sentence) const;

  // import.cpp: versions, signature, inputs and outputs
  void check_versions(dom::object program);
  void open(Scope& scope, dom::object json);
  void name_inputs(dom::object module);
  void find_symbols(Scope& scope, dom::object program, dom::object json);
  void add_inputs(Scope& scope, dom::object signature);
  void add_input(Scope& scope, std::string_view name, const std::string& path);
  void add_constant(Scope& scope, std::string_view name, std::string_view target);
  void add_outputs(Scope& scope, dom::object signature);
  void check_symbols();

  // import_args.cpp: sizes and arguments
  [[nodiscard]] Expr symbol(std::string_view name);
  [[nodiscard]] Expr size(dom::element json);
  [[nodiscard]] Expr expression(std::string_view text);
  [[nodiscard]] Expr named_int(const Scope& scope, dom::element json, std::string_view constant);
  [[nodiscard]] Fact fact(const Scope& scope, std::string_view name);
  [[nodiscard]] RunValue tensor(const Scope& scope, std::string_view name) const;
  [[nodiscard]] Arg argument(Scope& scope, dom::element json);
  [[nodiscard]] Arg value(Scope& scope, std::string_view name);
  [[nodiscard]] Arg float_arg(const Scope& scope, dom::element json);
  [[nodiscard]] Arg flag_arg(const Scope& scope, dom::element json);

  // import_nodes.cpp: nodes
  void add_nodes(Scope& scope, dom::object json);
  void add_node(Scope& scope, dom::object json);
  void add_operator(Scope& scope, dom::object json, const Operator* schema);
  [[nodiscard]] std::vector<Arg> arguments(Scope& scope, dom::object json, const Operator* schema);
  [[nodiscard]] std::vector<std::string_view> results(dom::object json) const;
  void read_value(Scope& scope, dom::object json);
  void add_results(Scope& scope, dom::object json, Node node, const Operator* schema,
                   RunValue viewed);
  [[nodiscard]] RunValue define(Scope& scope, std::string_view name, Fact fact);
  void name_tensor(Scope& scope, std::string_view name, RunValue v);
  void bind_symbols(ValueId id);
  [[nodiscard]] bool is_view(Scope& scope, const Operator& schema, RunValue from, const Fact& to);
  [[nodiscard]] bool is_contiguous(const Fact& fact);
  [[nodiscard]] static RunValue root(const Storage& storage, RunValue v);

  // import_control.cpp: subgraphs
  void add_control(Scope& scope, dom::object json, std::string_view op);
  void inline_graph(Scope& scope, dom::object json, std::size_t graph_at, std::size_t operands_at);
  [[nodiscard]] Body body(dom::element json, const std::vector<Arg>& operands,
                          std::size_t parameters);

  const Tensors& tensors_;
  std::string_view where_;
  const DimNames& dim_names_;
  Imported result_;
  std::unordered_map<std::string_view, Expr> expressions_;  // by text
  std::unordered_map<std::string, Expr> symbols_;           // by the name that PyTorch gave
  std::vector<std::string> input_paths_;                    // by user input
  std::vector<std::string> output_paths_;
  std::vector<std::pair<std::string, RunValue>> buffers_;  // what could be written, by name
  std::string node_;                                       // the node at hand, for messages
  std::string_view module_;
  std::string_view source_;
};

// What the program's guards prove about its sizes: symbols that follow from others, as torch names
// -> expressions of `pool`. `sizes` has the input sizes by placeholder and axis.
struct Guards {
  std::unordered_map<std::string, std::vector<Expr>> sizes;
};
[[nodiscard]] std::vector<Expr> solve_guards(ExprPool& pool, const Guards& guards,
                                             dom::object program);

[[nodiscard]] Dtype dtype_of_code(std::int64_t code, std::string_view what);

}  // namespace fairlead::pt2
