// What linear systems and factors share: batches of matrices, and loops over their rows.
#pragma once

#include <functional>

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

// [.., n, m] -> [batch, n, m], and the other way.
[[nodiscard]] Val as_batch(Lowering& b, Val x, const Shape& shape);
[[nodiscard]] Val unbatched(Lowering& b, Val x, const Shape& shape);

// What stands at one place of an axis, which goes.
[[nodiscard]] Val at(Lowering& b, Val x, Val place, std::int64_t axis);

// A Loop of at most `steps` steps, a 0-d int64; the step gets its number, 0-d, and what is carried.
// `goes_on` tells by what is carried next whether there is another one.
using Step = std::function<Inputs(Val, const Inputs&)>;
using GoesOn = std::function<Val(const Inputs&)>;
[[nodiscard]] Inputs loop(Lowering& b, Val steps, const Inputs& carried, const Step& step,
                          const GoesOn& goes_on = {});

// No fault was found: what cannot be solved divides by zero instead.
void no_info(Lowering& b, std::size_t k);

// Refuses an operator of which these results are used.
void not_used(Lowering& b, std::size_t first, std::size_t last);

}  // namespace fairlead::onnx
