// The door: a graph from outside (a file, a text, a hand) is checked before anything relies on it.
//
//  1. Every value that is read was made before, where it can be seen, and is made once; in bodies
//     too.
//  2. The arguments of an operator of PyTorch are as many as its schema has and of its kinds; its
//     results are as many as it gives.
//  3. Axes are axes of the tensor that they count, the dims of a permutation are one.
//  4. Sizes are not negative, tensors have at most kMostAxes axes and kMostElements elements,
//     bodies fit their operator.
//
// Operators that are not PyTorch's own are held to 1 and 4 alone. Behind the door code may look up
// by the numbers that a graph has; CheckedList and Lowering check again what the schema cannot say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fairlead/graph/graph.h"

namespace fairlead {

inline constexpr std::size_t kMostAxes = 64;        // of a tensor
inline constexpr std::size_t kMostNesting = 64;     // of bodies in bodies
inline constexpr std::size_t kMostItems = 1 << 20;  // of a list that is an argument
// Of a tensor: their bytes, sums and differences are numbers of 64 bits.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 58;

// Throws Error(kInvalidInput) with the name of the node. `where` names the graph.
void validate(const Graph& graph, std::string_view where);
// The same of one node whose values are known to be there, as rules 2 to 4 say; results are not
// looked at where it has none yet.
void validate_node(const Graph& graph, const Node& node, std::string_view where);

}  // namespace fairlead
