// Programs whose runs cost next to nothing: of those more is asked, tried and checked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fairlead {

// Recorded operators of one.
[[nodiscard]] constexpr bool is_tiny(std::int64_t operators) { return operators <= 60; }
// Nodes of its solved graph, which has fewer.
[[nodiscard]] constexpr bool is_tiny_graph(std::size_t nodes) { return nodes <= 40; }

}  // namespace fairlead
