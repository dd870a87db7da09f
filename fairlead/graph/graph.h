// The program: one SSA graph of ATen operators whose values carry dtype and exact symbolic shape.
//
// Nodes are in execution order; every value is a graph input, a constant, the result of one node,
// or made inside a body (a branch, a loop) and seen there alone. The graph borrows constants' bytes
// (the bindings keep the tensors alive) and knows no protobuf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fairlead/aten/operators.h"
#include "fairlead/base/checked_list.h"
#include "fairlead/base/dtype.h"
#include "fairlead/symbol/expr.h"

namespace fairlead {

using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;

enum class ArgKind : std::uint8_t {
  kNone,
  kValue,   // value
  kInt,     // expr
  kFloat,   // number; with `expr` set: number * expr^power
  kBool,    // number is 0 or 1
  kString,  // text; also devices, layouts and memory formats
  kDtype,   // dtype
  kList,    // items
};

struct Arg {
  ArgKind kind = ArgKind::kNone;
  Dtype dtype = Dtype::kFloat32;
  ValueId value = kNoValue;
  Expr expr = nullptr;
  double number = 0;
  double power = 1;
  std::string text;
  CheckedList<Arg> items;
};

// Sizes by axis; an axis that the tensor does not have is an Error.
using Shape = CheckedList<Expr>;

struct Value {
  Dtype dtype = Dtype::kFloat32;
  Shape shape;
  std::string name;  // inputs, outputs and constants; empty for intermediates
};

struct Node;

// What a control-flow operator runs: a branch of cond, the step of a loop. Its values are numbered
// with those of the graph, and its nodes may read whatever was made before the operator.
struct Body {
  CheckedList<ValueId> inputs;
  std::vector<Node> nodes;
  CheckedList<ValueId> outputs;
};

struct Node {
  OpName op;                      // "aten.view.default"
  CheckedList<Arg> args;          // in schema order, defaults filled in
  CheckedList<ValueId> outputs;   // kNoValue for a result that is None
  std::string_view module;        // "model.layers.0.self_attn", kept in Graph::names
  std::string_view source;        // "modeling_llama.py:246"
  bool random = false;            // its results are drawn anew each time
  CheckedList<Body> bodies = {};  // of control flow: see kControlOps in onnx/ops/control_ops.cpp
};

// Bytes of a constant. `strides` are in elements; empty means contiguous.
struct Constant {
  ValueId value = kNoValue;
  const std::byte* data = nullptr;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;
  std::shared_ptr<const std::vector<std::byte>> owned;  // set where the graph made the bytes itself
};

// Where a symbol's value comes from when the program runs.
struct SymbolSource {
  ValueId value = kNoValue;  // kSize, kData: its dimension `axis`; kRead: element `axis` of it
  int axis = 0;
  std::int64_t divisor = 1;  // the dimension is this many times the symbol
};

// What sizes have to be like for this program: it is another one's, or nobody's, otherwise.
struct Requirement {
  Expr holds = nullptr;  // 1 where it is so, else 0
  std::string words;     // "n < m"
};

struct Graph {
  std::shared_ptr<ExprPool> pool = std::make_shared<ExprPool>();
  CheckedList<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<std::string> output_names;
  std::vector<Constant> constants;
  std::unordered_map<ValueId, std::size_t> constant_of;  // value -> index into constants
  CheckedList<SymbolSource> symbol_sources;              // by SymbolId
  std::vector<Requirement> requirements;
  bool joined = false;  // of several programs, each with what it takes as a condition of its own

  // Keeps a name alive as long as the graph.
  std::string_view keep(std::string_view name);

  ValueId add_value(Dtype dtype, std::vector<Expr> shape, std::string name = {});
  void add_constant(Constant constant);
  // Reads every symbol from an input that has it as a size, or has the smallest multiple of it.
  void find_symbol_sources();
  [[nodiscard]] const Constant* constant(ValueId value) const;

 private:
  std::shared_ptr<std::unordered_map<std::string, bool>> names_ =
      std::make_shared<std::unordered_map<std::string, bool>>();
};

// One line per node; the inverse of parse_graph except for the constants' bytes and for values that
// nothing makes (any more), which are left out.
//
//   symbol batch: size = %0[0]
//   input %0 "x": float32[batch, 64]
//   %1: float32[batch, 32] = aten.slice.Tensor(%0, 1, 0, 32, 1) in "model.mlp" at "mlp.py:12"
//   output "y" = %1
//   require "batch < 8" = less(batch, 8)
//
// The bodies of a node follow it: lines "body", "parameter %2: ...", nodes, "result %3, %4", "end".
[[nodiscard]] std::string to_text(const Graph& graph);
// Throws Error(kParse) with line and column.
[[nodiscard]] Graph parse_graph(std::string_view text);
// Throws Error(kInternal) where a value is used before it is made, made twice, or unknown.
void check(const Graph& graph);

// Calls `visit` for every node, those of bodies after the node they belong to.
template <typename Nodes, typename Visit>
void for_each_node(Nodes& nodes, const Visit& visit) {
  for (auto& node : nodes) {
    visit(node);
    for (auto& body : node.bodies) for_each_node(body.nodes, visit);
  }
}

}  // namespace fairlead
