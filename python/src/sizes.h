// Expressions of sizes as Python sees them: each in a pool that nobody adds to any more.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "fairlead/symbol/copy.h"
#include "shared_rows.h"

namespace fairlead::python {

struct SizeExpr {
  std::shared_ptr<const ExprPool> pool;
  Expr e;
};

// Rows of expressions of a pool that may grow still.
inline nanobind::list size_rows(const ExprPool& from, const std::vector<std::vector<Expr>>& rows) {
  const auto pool = std::make_shared<ExprPool>();
  ExprCopier copy(*pool, from);
  return shared_rows(rows, [&](Expr e) { return nanobind::cast(SizeExpr{pool, copy(e)}); });
}

// And back, into another pool; symbols that it lacks are added in the order of the first pool.
inline std::vector<std::vector<Expr>> sizes_in(ExprPool& to,
                                               const std::vector<std::vector<SizeExpr>>& rows) {
  std::vector<std::vector<Expr>> made;
  std::shared_ptr<const ExprPool> from;
  std::unique_ptr<ExprCopier> copy;
  for (const std::vector<SizeExpr>& row : rows) {
    made.emplace_back();
    for (const SizeExpr& size : row) {
      if (size.pool != from) {
        from = size.pool;
        copy = std::make_unique<ExprCopier>(to, *from);
      }
      made.back().push_back((*copy)(size.e));
    }
  }
  return made;
}

}  // namespace fairlead::python
