// Storing calls: equal structures once, sizes one after the other.
#include "fairlead/observe/calls.h"

#include <algorithm>
#include <limits>

#include "fairlead/base/error.h"

namespace fairlead {

void Calls::add_tensor(Dtype dtype, std::span<const std::int64_t> shape,
                       std::span<const std::int64_t> strides, std::string_view device) {
  if (shape.size() > 64) {
    throw Error(ErrorCode::kInvalidInput, "[observe] Expected at most 64 dimensions, got " +
                                              std::to_string(shape.size()) + ".");
  }
  FAIRLEAD_CHECK(dims_.size() + 2 * shape.size() <= std::numeric_limits<std::uint32_t>::max(),
                 "sizes of all calls");
  TensorFact fact{.dtype = dtype,
                  .rank = static_cast<std::uint8_t>(shape.size()),
                  .contiguous = true,
                  .device = 0,
                  .dims = static_cast<std::uint32_t>(dims_.size())};
  dims_.insert(dims_.end(), shape.begin(), shape.end());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0 && !strides.empty();) {
    if (shape[i] > 1 && strides[i] != step) fact.contiguous = false;
    step *= std::max<std::int64_t>(shape[i], 1);
  }
  if (!fact.contiguous) dims_.insert(dims_.end(), strides.begin(), strides.end());
  const auto known = std::find(devices_.begin(), devices_.end(), device);
  fact.device = static_cast<std::uint16_t>(known - devices_.begin());
  if (known == devices_.end()) devices_.emplace_back(device);
  facts_.push_back(fact);
}

std::uint32_t Calls::add_call(Tree tree) {
  const std::size_t given = facts_.size() - pending_;
  if (tree.tensor_count() != given) {
    facts_.resize(pending_);
    throw Error(ErrorCode::kInvalidInput,
                "[observe] Expected " + std::to_string(tree.tensor_count()) +
                    " tensors for a call, got " + std::to_string(given) + ".");
  }
  const std::size_t hash = tree.hash();
  const auto [first, last] = by_hash_.equal_range(hash);
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return trees_[entry.second] == tree; });
  Call call{.structure = structure_count(), .first = pending_};
  if (found != last) {
    call.structure = found->second;
  } else {
    by_hash_.emplace(hash, call.structure);
    trees_.push_back(std::move(tree));
  }
  calls_.push_back(call);
  pending_ = static_cast<std::uint32_t>(facts_.size());
  return size() - 1;
}

void Calls::discard(std::uint32_t call) {
  FAIRLEAD_CHECK(call < calls_.size(),
                 "call " + std::to_string(call) + " of " + std::to_string(calls_.size()));
  calls_.erase(calls_.begin() + call);
}

std::span<const TensorFact> Calls::tensors(std::uint32_t call) const {
  return std::span(facts_).subspan(calls_[call].first,
                                   trees_[calls_[call].structure].tensor_count());
}

std::vector<std::int64_t> Calls::strides(const TensorFact& fact) const {
  std::vector<std::int64_t> result(fact.rank, 1);
  if (!fact.contiguous) {
    const auto kept = std::span(dims_).subspan(fact.dims + fact.rank, fact.rank);
    return {kept.begin(), kept.end()};
  }
  for (std::size_t i = fact.rank; i-- > 1;) {
    result[i - 1] = result[i] * std::max<std::int64_t>(dims_[fact.dims + i], 1);
  }
  return result;
}

}  // namespace fairlead
