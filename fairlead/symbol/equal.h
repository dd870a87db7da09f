// Whether two sizes are the same number for all sizes, though they are written otherwise.
#pragma once

#include "fairlead/symbol/expr.h"

namespace fairlead {

// False where it is not known.
[[nodiscard]] bool equal(ExprPool& pool, Expr a, Expr b);

}  // namespace fairlead
