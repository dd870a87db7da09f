// Lowering: one ATen operator becomes ONNX nodes, through a builder that shares and folds what it
// can.
//
// A family file (onnx/ops/*.cpp) holds functions and, beside them, a table of rows; lowering.cpp
// joins the tables. A lowering reads the arguments of the node at hand, emits nodes and sets the
// results:
//
//   // aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
//   void lower_select(Lowering& b) {
//     b.result(b.op("Gather", {b.in(0), b.size_scalar(b.integer(2))}, {attr("axis", b.axis(1))}));
//   }
//
// Emitting twice the same node gives the same value back, so shape arithmetic is never repeated.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fairlead/graph/bounds.h"
#include "fairlead/graph/graph.h"
#include "fairlead/onnx/model.h"

namespace fairlead::onnx {

// A tensor of the ONNX graph under construction; absent by default.
struct Val {
  TensorId id = kAbsent;
  [[nodiscard]] bool present() const { return id != kAbsent; }
  bool operator==(const Val&) const = default;
};

using fairlead::Shape;
using Ints = CheckedList<std::int64_t>;
using Inputs = CheckedList<Val>;
using Attributes = std::vector<Attribute>;

[[nodiscard]] Attribute attr(std::string_view name, std::int64_t value);
[[nodiscard]] Attribute attr(std::string_view name, float value);
[[nodiscard]] Attribute attr(std::string_view name, std::string_view value);
[[nodiscard]] Attribute attr(std::string_view name, std::vector<std::int64_t> value);
// Without this a literal would convert to bool.
[[nodiscard]] inline Attribute attr(std::string_view name, const char* value) {
  return attr(name, std::string_view(value));
}
[[nodiscard]] inline Attribute attr(std::string_view name, int value) {
  return attr(name, static_cast<std::int64_t>(value));
}
[[nodiscard]] inline Attribute attr(std::string_view name, bool value) {
  return attr(name, static_cast<std::int64_t>(value));
}

class Lowering;
using LowerFn = void (*)(Lowering&);

struct OpRow {
  std::string_view aten;  // "aten.select.int"
  LowerFn lower;
  std::string_view form;    // what it becomes, for the generated page: "Gather"
  std::string_view limits;  // what it cannot do, in words; empty: nothing
};

struct LowerOptions {
  int opset = 20;
  std::vector<SizeBounds> bounds;  // the file refuses sizes outside of them
  // Whether a weight's bytes are stored already, in their own order, in a file beside the model's:
  // then it is not stored transposed. None: no.
  std::function<bool(const std::byte*)> stored;
};

class Lowering {
 public:
  Lowering(const fairlead::Graph& graph, const LowerOptions& options);

  // ---- The node at hand: arguments by schema position
  // --------------------------------------------
  [[nodiscard]] const fairlead::Node& node() const { return *node_; }
  [[nodiscard]] const fairlead::Graph& graph() const { return graph_; }
  [[nodiscard]] int opset() const { return options_.opset; }
  [[nodiscard]] bool has(std::size_t i) const;  // given and not None
  [[nodiscard]] bool is_tensor(std::size_t i) const;
  [[nodiscard]] Val in(std::size_t i);  // tensor argument; absent for None
  // Tensor or number, cast to `dtype`; a number becomes a scalar constant or a computed scalar.
  [[nodiscard]] Val in(std::size_t i, Dtype dtype);
  [[nodiscard]] Inputs ins(std::size_t i);  // list of tensors; absent entries for None
  [[nodiscard]] Val value(ValueId id);      // any value of the graph made before this node
  [[nodiscard]] const Shape& shape(std::size_t i) const;
  [[nodiscard]] int rank(std::size_t i) const { return static_cast<int>(shape(i).size()); }
  [[nodiscard]] Dtype dtype(std::size_t i) const;   // of a tensor argument
  [[nodiscard]] Expr integer(std::size_t i) const;  // may be symbolic
  [[nodiscard]] Expr integer(std::size_t i, std::int64_t otherwise) const;
  [[nodiscard]] Shape integers(std::size_t i) const;  // a single int counts as a list
  // Constant integers; an Error names the argument where one is symbolic.
  [[nodiscard]] std::int64_t constant_int(std::size_t i) const;
  [[nodiscard]] std::int64_t constant_int(std::size_t i, std::int64_t otherwise) const;
  [[nodiscard]] Ints constant_ints(std::size_t i) const;
  [[nodiscard]] double number(std::size_t i,
                              double otherwise = 0) const;  // constant float, int, bool
  [[nodiscard]] bool flag(std::size_t i, bool otherwise = false) const;
  [[nodiscard]] std::string_view text(std::size_t i) const;
  [[nodiscard]] std::optional<Dtype> dtype_arg(std::size_t i) const;
  // Argument i as an axis of a tensor of rank `of_rank` (default: argument 0's), made non-negative;
  // unsupported where there is no such axis.
  [[nodiscard]] std::int64_t axis(std::size_t i, int of_rank = -1) const;
  [[nodiscard]] Ints axes(std::size_t i, int of_rank = -1) const;
  // PyTorch's type promotion over tensor and number arguments.
  [[nodiscard]] Dtype promoted(std::initializer_list<std::size_t> arguments) const;

  // ---- Results
  // ------------------------------------------------------------------------------------
  [[nodiscard]] std::size_t result_count() const { return node_->outputs.size(); }
  [[nodiscard]] bool result_used(std::size_t k) const;
  [[nodiscard]] Dtype out_dtype(std::size_t k = 0) const;
  [[nodiscard]] const Shape& out_shape(std::size_t k = 0) const;
  [[nodiscard]] int out_rank(std::size_t k = 0) const {
    return static_cast<int>(out_shape(k).size());
  }
  void result(Val v) { result(0, v); }
  void result(std::size_t k, Val v);  // cast to the observed dtype where it differs

  // ---- Complex numbers: a pair of real tensors, joined (last dimension 2) only where a node asks
  // for it ----- What `in` gives for a complex tensor is joined; these give its parts, in their own
  // dtype.
  [[nodiscard]] bool is_complex_arg(std::size_t i) const;
  [[nodiscard]] Val part(std::size_t i, int k);  // 0: real, 1: imaginary
  void result_parts(std::size_t k, Val re, Val im);
  // Runs a lowering on the real parts and then on the imaginary parts of every complex value.
  void run_by_parts(LowerFn lower);

  // ---- Emitting
  // ------------------------------------------------------------------------------------- One
  // result. Its dtype follows the operator (Equal -> bool, Shape -> int64, Cast -> `to`, else the
  // first input's, for Where the second's) unless `dtype` says otherwise.
  Val op(std::string_view type, const Inputs& inputs, Attributes attributes = {},
         std::optional<Dtype> dtype = std::nullopt, std::string_view domain = {});
  // Several results, with their dtypes.
  Inputs ops(std::string_view type, const Inputs& inputs, const std::vector<Dtype>& dtypes,
             Attributes attributes = {}, std::string_view domain = {});
  // Like op, for operators whose result differs each time (random): never shared.
  Val fresh_op(std::string_view type, const Inputs& inputs, Attributes attributes, Dtype dtype);
  // The body of a Loop, If or Scan: nodes emitted by `build` belong to it, and may use values from
  // outside. `build` gets the body's inputs (types and, where known, shapes; their names are given)
  // and gives its outputs.
  [[nodiscard]] std::shared_ptr<Graph> body(std::vector<TensorInfo> inputs,
                                            const std::function<Inputs(const Inputs&)>& build);

  // The nodes of a body of the node at hand, emitted here on these inputs; its results.
  [[nodiscard]] Inputs inline_body(const Body& body, const Inputs& inputs);

  // Also where a lowering expects a tensor and the node has none: unsupported.
  [[nodiscard]] Dtype dtype_of(Val v) const;
  // Whether v is what a node of this type just made.
  [[nodiscard]] bool made_by(Val v, std::string_view type) const;
  // The constant bytes behind v, or nullptr: initializers of the model and emitted constants.
  [[nodiscard]] const TensorData* data_of(Val v) const;

  // Constants. Equal ones are stored once.
  Val constant(TensorData data, std::string_view name = {});
  Val ints(std::span<const std::int64_t> values);  // int64 [n]
  Val ints(std::initializer_list<std::int64_t> values);
  Val scalar(double value, Dtype dtype);                                      // rank 0
  Val filled(double value, Dtype dtype, std::span<const std::int64_t> dims);  // small constants
  // Lowest and highest finite value of a dtype, as used in masks.
  [[nodiscard]] static double lowest(Dtype dtype);
  [[nodiscard]] static double highest(Dtype dtype);

  // Sizes as tensors.
  Val size_scalar(Expr e, Dtype dtype = Dtype::kInt64);  // rank 0
  Val dim(Expr e);
  Val divisor(Expr e);
  Val real(Expr e);  // a real expression in double, of one element as `dim` gives it
  Val shape_tensor(std::span<const Expr> shape);  // int64 [n]

  // Common forms.
  Val cast(Val v, Dtype dtype);  // v itself where it has that dtype
  // Reshape from `from` to `to`, with 0 and -1 where they spare arithmetic.
  Val reshape(Val v, const Shape& from, const Shape& to);
  Val expand(Val v, const Shape& from, const Shape& to);  // v itself where nothing changes
  Val transpose(Val v, std::vector<std::int64_t> perm);
  Val unsqueeze(Val v, std::vector<std::int64_t> axes);
  Val squeeze(Val v, std::vector<std::int64_t> axes);
  Val slice(Val v, std::int64_t axis, Val start, Val end,
            std::int64_t step = 1);  // start, end: [1]
  Val concat(const Inputs& parts, std::int64_t axis);
  // 0, of rank 0, where `holds` is 1; where it is 0 the file stops with these words.
  Val zero_where(Expr holds, const std::string& words);
  // Reductions take axes as input or attribute depending on operator and opset: this knows which.
  Val reduce(std::string_view type, Val v, std::vector<std::int64_t> axes, bool keepdim);
  // x @ weight^T for a constant weight is a transposed initializer, streamed, never copied.
  Val transposed_weight(std::size_t i);

  [[nodiscard]] ExprPool& pool() { return *graph_.pool; }
  [[nodiscard]] Expr expr(std::int64_t value) { return graph_.pool->constant(value); }

  // Stops with Error(kUnsupported): "[lower] aten.x.y: why (in module at source)."
  [[noreturn]] void unsupported(const std::string& why) const;
  // A number of the node as a place in a table of this size; unsupported where it lies outside.
  [[nodiscard]] std::size_t place(std::size_t i, std::size_t size) const;
  // The same for a number that ONNX has as an attribute and that follows free sizes: the detail is
  // of kind "must be constant" and its values name them, so that they can be fixed: "the stride",
  // n//2.
  [[noreturn]] void must_be_constant(const std::string& what, Expr e) const;

  // ---- For lower_graph
  // -------------------------------------------------------------------------------
  void check_bounds();
  void check_values();
  void run(const fairlead::Node& node, LowerFn lower);
  Model finish();

 private:
  Inputs emit(std::string_view type, const Inputs& inputs, const std::vector<Dtype>& dtypes,
              Attributes attributes, std::string_view domain, bool shared);
  [[nodiscard]] const Arg& arg(std::size_t i) const;
  [[nodiscard]] Val part_of(ValueId id, int k);
  [[nodiscard]] Dtype seen(Dtype dtype) const;
  [[nodiscard]] std::int64_t within(std::int64_t axis, int rank) const;
  [[nodiscard]] Val arg_number(const Arg& a, Dtype dtype);
  [[nodiscard]] TensorId new_tensor(Dtype dtype, std::string name);
  [[nodiscard]] std::string unique(std::string name);
  [[nodiscard]] std::string scope() const;
  [[noreturn]] void refuse(std::string_view kind, const std::string& why,
                           std::vector<std::string> values) const;
  Val symbol(SymbolId id);
  void check_bounds(const SizeBounds& bounds);
  void check_steps();
  void stop_where(const Val& beyond, const std::string& words, const std::vector<Expr>& sizes);
  void count_weight_uses();
  void prune();

  const fairlead::Graph& graph_;
  LowerOptions options_;
  Model model_;
  const fairlead::Node* node_ = nullptr;
  std::vector<Val> values_;                                // by ValueId
  std::vector<bool> used_;                                 // by ValueId
  std::unordered_map<ValueId, std::array<Val, 2>> parts_;  // of complex values
  int part_ = -1;                                          // while a lowering runs by parts
  std::unordered_map<std::string, std::vector<TensorId>> emitted_;
  std::unordered_map<std::string, int> names_;
  std::unordered_map<std::string, TensorId>
      constants_;  // by dtype, dims, strides, bytes or pointer
  std::unordered_map<TensorId, std::size_t> initializer_of_;
  std::unordered_map<const std::byte*, bool> plain_use_;  // constants read other than as x @ w^T
};

// Every row of every family, sorted by name. Throws Error(kInternal) on a duplicate.
[[nodiscard]] std::span<const OpRow> op_rows();
// The row of that name: a registered one before one of the families.
[[nodiscard]] const OpRow* find_op(std::string_view aten);

// Adds a row for an operator of one's own ("mylib.myop.default"), or replaces one. Not while a
// graph is being lowered. The texts are copied.
void register_op(const OpRow& row);
void unregister_op(std::string_view aten);

// Throws Error(kUnsupported) that lists every missing operator with count, first module and source.
[[nodiscard]] Model lower_graph(const fairlead::Graph& graph, const LowerOptions& options);

}  // namespace fairlead::onnx
