// Sizes that a program is for.
#pragma once

#include <cstdint>
#include <string>

namespace fairlead {

// Outside of these the model executes another program.
struct SizeBounds {
  std::string symbol;
  std::int64_t min = 1;
  std::int64_t max = INT64_MAX;
};

}  // namespace fairlead
