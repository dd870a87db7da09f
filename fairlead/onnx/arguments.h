// What a lowering reads: the node at hand, its arguments by their places in the schema, its
// results.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/graph/graph.h"

namespace fairlead::onnx {

using fairlead::Shape;
using Ints = CheckedList<std::int64_t>;

class Arguments {
 public:
  explicit Arguments(const fairlead::Graph& graph) : graph_(graph) {}

  [[nodiscard]] const fairlead::Node& node() const { return *node_; }
  [[nodiscard]] const fairlead::Graph& graph() const { return graph_; }
  [[nodiscard]] bool has(std::size_t i) const;  // given and not None
  [[nodiscard]] bool is_tensor(std::size_t i) const;
  [[nodiscard]] bool is_complex_arg(std::size_t i) const;
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
  // A number of the node as a place in a table of this size; unsupported where it lies outside.
  [[nodiscard]] std::size_t place(std::size_t i, std::size_t size) const;
  // PyTorch's type promotion over tensor and number arguments.
  [[nodiscard]] Dtype promoted(std::initializer_list<std::size_t> arguments) const;

  [[nodiscard]] std::size_t result_count() const { return node_->outputs.size(); }
  [[nodiscard]] Dtype out_dtype(std::size_t k = 0) const;
  [[nodiscard]] const Shape& out_shape(std::size_t k = 0) const;
  [[nodiscard]] int out_rank(std::size_t k = 0) const {
    return static_cast<int>(out_shape(k).size());
  }

  [[nodiscard]] ExprPool& pool() { return *graph_.pool; }
  [[nodiscard]] Expr expr(std::int64_t value) { return graph_.pool->constant(value); }

  // Stops with Error(kUnsupported): "[lower] aten.x.y: why (in module at source)."
  [[noreturn]] void unsupported(const std::string& why) const;
  // The same for a number that ONNX has as an attribute and that follows free sizes: the detail is
  // of kind "must be constant" and its values name them, so that they can be fixed: "the stride",
  // n//2.
  [[noreturn]] void must_be_constant(const std::string& what, Expr e) const;

 protected:
  [[nodiscard]] const Arg& arg(std::size_t i) const;
  // An element type as the lowering sees it, which may be at work on one part of complex numbers.
  [[nodiscard]] Dtype seen(Dtype dtype) const { return part_ >= 0 ? part_dtype(dtype) : dtype; }

  const fairlead::Graph& graph_;
  const fairlead::Node* node_ = nullptr;
  int part_ = -1;  // while a lowering runs by parts

 private:
  [[nodiscard]] std::int64_t within(std::int64_t axis, int rank) const;
  [[noreturn]] void refuse(std::string_view kind, const std::string& why,
                           std::vector<std::string> values) const;
};

}  // namespace fairlead::onnx
