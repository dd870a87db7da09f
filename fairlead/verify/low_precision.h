// Values of the 8-bit floats, as float32; those of the 16-bit ones are in base/half.h. All of them
// are exact.
#pragma once

#include <span>

#include "fairlead/base/dtype.h"
#include "fairlead/base/half.h"

namespace fairlead {

// By code; throws Error(kInternal) for a type that is not one of the four float8.
[[nodiscard]] std::span<const float, 256> float8_values(Dtype dtype);

}  // namespace fairlead
