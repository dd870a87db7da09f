// Sums of sizes that a file names: it may name more bytes than 64 bits can count.
#pragma once

#include <cstdint>
#include <limits>

namespace fairlead {

inline void add_bytes(std::int64_t& total, std::int64_t more) {
  if (__builtin_add_overflow(total, more, &total)) {
    total = std::numeric_limits<std::int64_t>::max();
  }
}

}  // namespace fairlead
