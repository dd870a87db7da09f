// A number that was computed from others, as an expression of theirs.
#pragma once

#include "fairlead/symbol/expr.h"
#include "fairlead/trace/carried.h"

namespace fairlead {

// Null where there is no expression for it. Throws Error where it has no value: a division by 0.
[[nodiscard]] Expr computed(ExprPool& p, const Carry& node, Expr a, Expr b);

}  // namespace fairlead
