// Arguments that a program leaves out.
#pragma once

#include <string_view>

#include "fairlead/graph/graph.h"

namespace fairlead::pt2 {

// "[0 0]" -> a list of two zeros
[[nodiscard]] Arg default_arg(std::string_view text, ExprPool& pool);

}  // namespace fairlead::pt2
