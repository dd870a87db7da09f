// The graph as a Python function over torch operators: a straight line, one operator per statement,
// with sizes as expressions of the sizes of its inputs.
//
//   def forward(inputs, held):
//       [i0] = inputs
//       [c0] = held
//       batch = i0.size(0)
//       v2 = op0(i0, c0, None)
//       v3 = op1(v2, [batch*4, 16])
//       return [v3]
//
// `op0` is the first of `operators_of`, bound by whoever executes the text; so is `torch`.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "fairlead/graph/graph.h"

namespace fairlead {

// What a statement has to know of an operator's schema.
struct TorchOperator {
  struct Param {
    std::string name;
    std::string type;  // "Tensor", "Optional[Device]", ...
    bool keyword_only = false;
    bool has_default = false;
  };
  std::vector<Param> params;
  bool many = false;  // it returns a tuple or a list, also of one
};
using TorchOperators = std::unordered_map<std::string, TorchOperator>;

struct TorchSource {
  std::string text;
  std::vector<std::size_t> held;  // indices into Graph::constants, in the order of `held`
};

// The operators that the text of this graph calls, each once, in the order of their names in it.
[[nodiscard]] std::vector<std::string> operators_of(const Graph& graph);

// Outputs beyond `Graph::output_names` are what `targets` (inputs or constants) are left with: the
// function writes them there. Throws Error(kUnsupported) where torch cannot express a statement.
[[nodiscard]] TorchSource torch_source(const Graph& graph, const TorchOperators& operators,
                                       const std::vector<ValueId>& targets);

}  // namespace fairlead
