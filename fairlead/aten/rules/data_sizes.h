// Which result dimension of an operator its data decides.
#pragma once

#include <optional>

#include "fairlead/graph/graph.h"

namespace fairlead {

struct DataSize {
  int axis = 0;
  ValueId key = kNoValue;  // operators with the same key have the same size there
};

// Of result number `result`; nullopt: its sizes follow from sizes and integers.
[[nodiscard]] std::optional<DataSize> data_size(const Graph& graph, const Node& node,
                                                std::size_t result);

}  // namespace fairlead
