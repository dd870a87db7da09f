// Steps of infer() that live in files of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "fairlead/observe/infer.h"

namespace fairlead {

// Fills Inference::groups and ObservedDim::group. `hashes`: one per dim, equal where the vectors of
// sizes are.
void find_groups(const Calls& calls, const std::vector<std::uint64_t>& hashes, Inference& result);

// Fills Inference::sums.
void find_sums(Inference& result);

}  // namespace fairlead
