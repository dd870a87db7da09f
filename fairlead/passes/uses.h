// Who makes a value and how often it is read.
#pragma once

#include <cstdint>
#include <vector>

#include "fairlead/graph/graph.h"

namespace fairlead {

struct Uses {
  explicit Uses(const Graph& graph);

  std::vector<std::int32_t> producer;  // node by value; -1 for inputs and constants
  std::vector<std::int32_t> count;     // reads by arguments and outputs
};

}  // namespace fairlead
