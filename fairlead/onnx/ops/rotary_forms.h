// Tables of rotary embeddings as operators of ONNX Runtime look them up.
#pragma once

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

struct RotaryTables {
  Val cos, sin;   // [rows, size / 2]
  Val positions;  // int64 [batch, sequence]: the rows of each token
};

// The model's own cos and sin, with a row for each token, so that any positions are right: of
// arguments `cos` and `sin` [batch or 1, sequence, size] whose halves are equal; where these are
// None, of argument `angles` [batch or 1, sequence, size / 2]. With `more` rows behind them
// that no token has: some operators ask for as many as there are tokens with the cache.
[[nodiscard]] RotaryTables rotary_tables(Lowering& b, std::size_t cos, std::size_t sin,
                                         std::size_t angles, Expr batch, Expr more);

// The same as [batch, sequence, size / 2], without positions.
[[nodiscard]] RotaryTables rotary_rows(Lowering& b, std::size_t cos, std::size_t sin,
                                       std::size_t angles, Expr batch);

}  // namespace fairlead::onnx
