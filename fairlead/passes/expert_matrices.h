// Matrices of experts as they are multiplied.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fairlead/graph/graph.h"

namespace fairlead {

// So many experts can each have a product of their own in a file.
inline constexpr std::int64_t kFewExperts = 16;

// A weight [experts, out, in] that a grouped product reads transposed, and nobody else, becomes a
// constant [experts, in, out] of the same bytes: so each expert's matrix can be a constant of its own.
std::size_t expert_matrices(Graph& graph);

}  // namespace fairlead
