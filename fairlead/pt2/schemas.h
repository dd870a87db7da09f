// What PyTorch's schemas say about operators: parameters with defaults, what is written, what is a
// view.
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fairlead/graph/graph.h"
#include "fairlead/trace/run.h"

namespace fairlead::pt2 {

// One row of the generated table (aten_schemas.cpp).
struct SchemaRow {
  std::string_view name;        // "aten.add_.Tensor"
  std::string_view functional;  // "aten.add.Tensor" where it writes; empty otherwise
  int writes;                   // position of the argument that is written; -1: none
  Alias alias;
  bool random;
  std::string_view params;  // "self, other, alpha=1"
};

[[nodiscard]] std::span<const SchemaRow> schema_rows();
// nullptr: an operator that is not PyTorch's own, or that has no lowering.
[[nodiscard]] const SchemaRow* find_schema(std::string_view name);

struct Param {
  std::string_view name;
  bool has_default = false;
  std::string_view default_text;  // "None", "1", "[0 0]", "mean"
};

[[nodiscard]] std::vector<Param> params_of(const SchemaRow& row);
// "[0 0]" -> a list of two zeros
[[nodiscard]] Arg default_arg(std::string_view text, ExprPool& pool);

}  // namespace fairlead::pt2
