// Choosing sizes that tell integers apart.
#pragma once

#include <cstdint>
#include <set>

#include "fairlead/probe/probe.h"

namespace fairlead {

[[nodiscard]] bool is_prime(std::int64_t n);
// The smallest prime above n that is not taken.
[[nodiscard]] std::int64_t prime_above(std::int64_t n, const std::set<std::int64_t>& taken);
// The largest prime below n that is not taken, else n - 1, else 0: never 0 or 1 as a size.
[[nodiscard]] std::int64_t prime_below(std::int64_t n, const std::set<std::int64_t>& taken);

// Elements of all inputs together: what a run costs grows with them.
[[nodiscard]] std::int64_t volume(const Sizes& sizes);
// Below it a run costs what its operators cost, whatever their sizes.
inline constexpr std::int64_t kSmallVolume = 1 << 14;

}  // namespace fairlead
