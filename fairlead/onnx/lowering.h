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
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fairlead/graph/bounds.h"
#include "fairlead/onnx/sizes.h"

namespace fairlead::onnx {

class Lowering;
using LowerFn = void (*)(Lowering&);

struct OpRow {
  std::string_view aten;  // "aten.select.int"
  LowerFn lower;
  std::string_view form;    // what it becomes, for the generated page: "Gather"
  std::string_view limits;  // what it cannot do, in words; empty: nothing
};

inline constexpr int kSmallestOpset = 18;

struct LowerOptions {
  int opset = 20;
  RuntimeProfile runtime;
  bool order_of_equals = false;    // sorts put equal elements as PyTorch's kernels do
  std::vector<SizeBounds> bounds;  // the file refuses sizes outside of them
  // Whether a weight's bytes are stored already, in their own order, in a file beside the model's:
  // then it is not stored transposed. None: no.
  std::function<bool(const std::byte*)> stored;
};

// What a lowering has in its hands. It reads arguments (arguments.h), emits nodes (emission.h) and
// writes sizes (sizes.h); what is here knows both graphs.
class Lowering : public Sizes {
 public:
  Lowering(const fairlead::Graph& graph, const LowerOptions& options);

  [[nodiscard]] int opset() const { return options_.opset; }
  // Whether a sort is to put equal elements as PyTorch's kernels do; otherwise the file is told to
  // have one that does not.
  [[nodiscard]] bool wants_order_of_equals();
  [[nodiscard]] Val in(std::size_t i);  // tensor argument; absent for None
  // Tensor or number, cast to `dtype`; a number becomes a scalar constant or a computed scalar.
  [[nodiscard]] Val in(std::size_t i, Dtype dtype);
  [[nodiscard]] Inputs ins(std::size_t i);  // list of tensors; absent entries for None
  [[nodiscard]] Val value(ValueId id) override;
  // x @ weight^T for a constant weight is a transposed initializer, streamed, never copied.
  Val transposed_weight(std::size_t i);
  // The nodes of a body of the node at hand, emitted here on these inputs; its results.
  [[nodiscard]] Inputs inline_body(const Body& body, const Inputs& inputs);

  [[nodiscard]] bool result_used(std::size_t k) const;
  // Whether a logarithm is taken of what is computed of the result element by element: then how
  // close it is to 0 or 1 counts.
  [[nodiscard]] bool result_in_logarithm() const;
  // Whether the integers of result k reach an output as numbers, and not only as places from which
  // floats are taken.
  [[nodiscard]] bool result_shown(std::size_t k) const;
  void result(Val v) { result(0, v); }
  void result(std::size_t k, Val v);  // cast to the observed dtype where it differs

  // Complex numbers are a pair of real tensors, joined (last dimension 2) only where a node asks
  // for it: what `in` gives is joined; these give the parts, in their own dtype.
  [[nodiscard]] Val part(std::size_t i, int k);  // 0: real, 1: imaginary
  [[nodiscard]] Val part_of(ValueId id, int k);
  void result_parts(std::size_t k, Val re, Val im);
  // Runs a lowering on the real parts and then on the imaginary parts of every complex value.
  void run_by_parts(LowerFn lower);

  // For lower_graph.
  void check_bounds();
  void check_values(bool at_end);  // after every node, and after the last
  void run(const fairlead::Node& node, LowerFn lower);
  Model finish();

 private:
  void check_bounds(const SizeBounds& bounds);
  void check_steps();
  [[nodiscard]] Val behind(Val v, std::size_t rank, Val zero);
  void stop_where(const Val& beyond, const std::string& words, const std::vector<Expr>& sizes);
  static void check_bytes(const Constant& c);
  void count_weight_uses();
  void find_logarithms();
  void find_shown();
  void prune();

  LowerOptions options_;
  std::vector<Val> values_;                                // by ValueId
  std::vector<bool> used_;                                 // by ValueId
  std::vector<bool> in_logarithm_;                         // by ValueId
  std::vector<bool> shown_;                                // by ValueId
  std::vector<bool> values_checked_;                       // by requirement
  std::vector<Val> value_checks_;                          // 0 each, where it holds
  std::unordered_map<ValueId, std::array<Val, 2>> parts_;  // of complex values
  std::unordered_map<const std::byte*, bool> plain_use_;   // constants read other than as x @ w^T
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
