// The passes over a program before it is lowered or written, as a list by target.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "fairlead/graph/graph.h"
#include "fairlead/passes/fusion.h"
#include "fairlead/passes/target.h"

namespace fairlead {

struct Pass {
  std::string_view name;
  std::string_view ensures;                        // what holds afterwards
  std::function<std::size_t(Graph& graph)> run;    // the number of changes
  bool (*wanted)(const Target& target) = nullptr;  // null: by every target
};

// In the order they run. Every pass takes a checked graph and leaves a checked one.
[[nodiscard]] std::span<const Pass> passes();

// Those that the target wants, then its fusions; `own` run after them and before the last dead code
// goes. Gives an account of the fusions.
FusionLog run_passes(Graph& graph, const Target& target = {}, std::span<const Pass> own = {});

}  // namespace fairlead
