// Shapes for tensors that a call does not have; the rules are in infer.h.
#include <algorithm>

#include "fairlead/base/error.h"
#include "fairlead/observe/infer.h"

namespace fairlead {
namespace {

// Sizes of the groups in one call: read from its dims, then completed through sums.
std::vector<std::int64_t> group_sizes(const Inference& inference,
                                      const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> found(inference.groups.size(), kMissing);
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    const std::int32_t group = inference.dims[dim].group;
    if (group >= 0 && sizes[dim] != kMissing) found[static_cast<std::size_t>(group)] = sizes[dim];
  }
  for (bool again = true; again;) {
    again = false;
    for (const DimSum& sum : inference.sums) {
      std::int64_t &total = found[sum.total], &first = found[sum.first],
                   &second = found[sum.second];
      const int unknown = (total == kMissing) + (first == kMissing) + (second == kMissing);
      if (unknown != 1) continue;
      if (total == kMissing) {
        total = first + second;
      } else {
        (first == kMissing ? first : second) =
            std::max<std::int64_t>(0, total - (first == kMissing ? second : first));
      }
      again = true;
    }
  }
  return found;
}

// Rule 3: the shape here of the tensors that had this slot's very shape in the donor call, if they
// still agree.
std::optional<std::vector<std::int64_t>> twin_here(const Inference& inference,
                                                   const std::vector<std::int64_t>& here,
                                                   const std::vector<std::int64_t>& donor,
                                                   std::uint32_t slot) {
  const Slot& own = inference.slots[slot];
  std::optional<std::vector<std::int64_t>> found;
  for (std::uint32_t other = 0; other < inference.slots.size(); ++other) {
    const Slot& at = inference.slots[other];
    if (other == slot || own.rank == 0 || at.rank != own.rank || here[at.dims] == kMissing)
      continue;
    if (!std::equal(donor.begin() + own.dims, donor.begin() + own.dims + own.rank,
                    donor.begin() + at.dims))
      continue;
    std::vector<std::int64_t> shape(here.begin() + at.dims, here.begin() + at.dims + at.rank);
    if (found && *found != shape) return std::nullopt;
    found = std::move(shape);
  }
  return found;
}

// Rule 4: the size of axis 0 that the other arguments have here, if it was theirs in the donor call
// too.
std::int64_t batch_here(const Inference& inference, const std::vector<std::int64_t>& here,
                        const std::vector<std::int64_t>& donor, std::uint32_t slot) {
  std::int64_t found = kMissing;
  const std::int64_t own = donor[inference.slots[slot].dims];
  for (std::uint32_t other = 0; other < inference.slots.size(); ++other) {
    const Slot& at = inference.slots[other];
    if (other == slot || at.rank == 0 || here[at.dims] == kMissing || donor[at.dims] == kMissing)
      continue;
    if (donor[at.dims] != own) continue;
    if (found != kMissing && found != here[at.dims])
      return kMissing;  // they disagree: nothing to follow
    found = here[at.dims];
  }
  return found;
}

}  // namespace

std::vector<std::optional<std::vector<std::int64_t>>> fill(const Calls& calls,
                                                           const Inference& inference,
                                                           const std::vector<std::int64_t>& sizes) {
  FAIRLEAD_CHECK(sizes.size() == inference.dims.size(), std::to_string(sizes.size()) + " sizes");
  const std::vector<std::int64_t> groups = group_sizes(inference, sizes);
  std::vector<std::optional<std::vector<std::int64_t>>> result(inference.slots.size());
  std::uint32_t donor_call = UINT32_MAX;
  std::vector<std::int64_t> donor;
  for (std::uint32_t s = 0; s < inference.slots.size(); ++s) {
    const Slot& slot = inference.slots[s];
    if (slot.rank > 0 && sizes[slot.dims] != kMissing) continue;
    if (slot.last_call != donor_call) {
      donor_call = slot.last_call;
      donor = sizes_of(calls, inference, donor_call);
    }
    std::vector<std::int64_t> shape(donor.begin() + slot.dims,
                                    donor.begin() + slot.dims + slot.rank);
    std::vector<bool> known(slot.rank, false);
    for (std::uint32_t axis = 0; axis < slot.rank; ++axis) {
      const std::int32_t group = inference.dims[slot.dims + axis].group;
      if (group < 0 || groups[static_cast<std::size_t>(group)] == kMissing) continue;
      shape[axis] = groups[static_cast<std::size_t>(group)];
      known[axis] = true;
    }
    if (const auto twin = twin_here(inference, sizes, donor, s); twin && shape[0] != 0) {
      for (std::uint32_t axis = 0; axis < slot.rank; ++axis) {
        if (!known[axis]) shape[axis] = (*twin)[axis];
        known[axis] = true;
      }
    }
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    if (slot.rank > 0 && !known[0] && shape[0] != 0) {
      const std::int64_t batch = batch_here(inference, sizes, donor, s);
      if (batch != kMissing) {
        shape[0] = batch;
        known[0] = true;
      }
    }
    for (std::uint32_t axis = slot.rank; axis-- > 0 && !empty;) {
      if (!inference.dims[slot.dims + axis].varies || known[axis]) continue;
      shape[axis] = 0;
      break;
    }
    result[s] = std::move(shape);
  }
  return result;
}

}  // namespace fairlead
