// Choosing sizes that tell integers apart.
#pragma once

#include <cstdint>
#include <set>

namespace fairlead {

[[nodiscard]] bool is_prime(std::int64_t n);
// The smallest prime above n that is not taken.
[[nodiscard]] std::int64_t prime_above(std::int64_t n, const std::set<std::int64_t>& taken);
// The largest prime below n that is not taken, else n - 1, else 0: never 0 or 1 as a size.
[[nodiscard]] std::int64_t prime_below(std::int64_t n, const std::set<std::int64_t>& taken);

}  // namespace fairlead
