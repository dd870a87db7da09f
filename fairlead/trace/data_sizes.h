// Which result dimension of an operator its data decides.
#pragma once

#include <optional>

#include "fairlead/graph/graph.h"

namespace fairlead {

struct DataSize {
  int axis = 0;            // of every result that has the dimension
  ValueId key = kNoValue;  // operators with the same key have the same size there
};

// nullopt: every size of the results follows from sizes and integers.
[[nodiscard]] std::optional<DataSize> data_size(const Graph& graph, const Node& node);

}  // namespace fairlead
