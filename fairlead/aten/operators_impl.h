// Of what the table of operators is put together.
#pragma once

#include "fairlead/aten/operators.h"

namespace fairlead {

// What a schema says.
struct OperatorRow {
  std::string_view name;
  std::string_view functional;
  int writes;
  Alias alias;
  bool random;
  std::string_view params;
  std::string_view kinds;
};
[[nodiscard]] std::span<const OperatorRow> operator_rows();
[[nodiscard]] std::span<const OperatorRow> writing_rows();  // of operators that write

// Operators that no schema of PyTorch's own is there for.
struct OwnOperator {
  std::string_view name;
  Control control = {};
};
[[nodiscard]] std::span<const OwnOperator> own_operators();

// Adds to the rows what annotations.cpp says of them.
void annotate(std::span<Operator> rows);

}  // namespace fairlead
