// The passes over a program before it is lowered, as a list.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "fairlead/graph/graph.h"

namespace fairlead {

struct Pass {
  std::string_view name;
  std::string_view ensures;          // what holds afterwards
  std::size_t (*run)(Graph& graph);  // the number of changes
};

// In the order they run. Every pass takes a checked graph and leaves a checked one.
[[nodiscard]] std::span<const Pass> passes();

void run_passes(Graph& graph);

}  // namespace fairlead
