// Where a slice begins and how long it is, at every size: places are cut to the dimension as
// PyTorch cuts them.
//
//   x[:, -12:]   of n elements: from max(n - 12, 0), min(n, 12) elements
//   x[:, 5:20]   of n elements: from 5, max(min(n, 20) - 5, 0) elements
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fairlead/symbol/expr.h"

namespace fairlead {

// A number that the expression is never less than, given that sizes of inputs are at least 1 and
// counts at least 0; INT64_MIN where nothing is known.
[[nodiscard]] std::int64_t least_value(const ExprPool& pool, Expr e);

struct Span {
  Expr start = nullptr;   // counted from the beginning; null where its sign is not known
  Expr length = nullptr;  // null where a place's sign is not known
};

// aten::slice's [start, end) by `step` > 0 of a dimension of `size` elements; null places are
// left out.
[[nodiscard]] Span slice_span(ExprPool& pool, Expr size, Expr start, Expr end, Expr step);

// Which of the named axes squeeze() leaves out of a tensor so that `left` dimensions remain: those
// of size 1, or, where that is not all, every one of them: sizes that were 1 wherever it ran.
[[nodiscard]] std::vector<std::int64_t> squeezed_axes(std::span<const Expr> shape,
                                                      std::vector<std::int64_t> named,
                                                      std::size_t left);

}  // namespace fairlead
