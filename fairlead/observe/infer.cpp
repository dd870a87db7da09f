// Aligning the structures, gathering sizes, and telling what varies.
#include "fairlead/observe/infer.h"

#include <algorithm>
#include <limits>

#include "fairlead/base/error.h"
#include "fairlead/observe/infer_impl.h"
#include "fairlead/tree/merge.h"

namespace fairlead {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidInput, message);
}

std::string in_call(const std::string& what, std::uint32_t call) {
  return what + " in call " + std::to_string(call);
}

std::string plural(std::size_t more) {
  return more > 0 ? " (and " + std::to_string(more) + " more places)" : "";
}

// The first call of each structure that is still in use; calls may have been discarded.
std::vector<std::int64_t> first_calls(const Calls& calls) {
  std::vector<std::int64_t> first(calls.structure_count(), -1);
  for (std::uint32_t i = calls.size(); i-- > 0;) first[calls.structure(i)] = i;
  return first;
}

[[noreturn]] void refuse_mismatch(const std::vector<Mismatch>& all, std::uint32_t left,
                                  std::uint32_t right) {
  const auto constant =
      std::find_if(all.begin(), all.end(), [](const Mismatch& m) { return m.constants; });
  if (constant != all.end()) {
    refuse("[infer] Two calls were made with different constant values for " + constant->path +
           ": " + in_call(constant->left, left) + ", " + in_call(constant->right, right) +
           plural(all.size() - 1) +
           ". Observe them apart, make the value a tensor, or leave it out with remove_inputs.");
  }
  const Mismatch& first = all.front();
  refuse("[infer] Expected calls of one structure, got for " + first.path + ": " +
         in_call(first.left, left) + ", " + in_call(first.right, right) + plural(all.size() - 1) +
         ".");
}

// One tree for all structures. The one with the most tensors comes first: its order of keys counts.
void align_structures(const Calls& calls, const std::vector<std::int64_t>& first,
                      Inference& result) {
  std::vector<std::uint32_t> used;
  for (std::uint32_t s = 0; s < calls.structure_count(); ++s) {
    if (first[s] >= 0) used.push_back(s);
  }
  std::stable_sort(used.begin(), used.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto x = calls.tree(a).tensor_count(), y = calls.tree(b).tensor_count();
    return x != y ? x > y : first[a] < first[b];
  });
  result.slot_of.assign(calls.structure_count(), {});
  TreeBuilder nothing;
  nothing.dict({});
  result.tree = nothing.finish();
  std::uint32_t reference = static_cast<std::uint32_t>(first[used.front()]);
  for (const std::uint32_t structure : used) {
    const bool fresh = structure == used.front();
    Merge merged =
        merge(fresh ? calls.tree(structure) : result.tree, calls.tree(structure), calls.order());
    if (!merged.mismatches.empty()) {
      // The left side came from some earlier structure; name the one that really differs.
      for (const std::uint32_t other : used) {
        if (other == structure) break;
        const Merge pair = merge(calls.tree(other), calls.tree(structure), calls.order());
        if (!pair.mismatches.empty()) {
          refuse_mismatch(pair.mismatches, static_cast<std::uint32_t>(first[other]),
                          static_cast<std::uint32_t>(first[structure]));
        }
      }
      refuse_mismatch(merged.mismatches, reference, static_cast<std::uint32_t>(first[structure]));
    }
    for (auto& slots : result.slot_of) {
      for (std::int32_t& slot : slots) slot = merged.left[static_cast<std::size_t>(slot)];
    }
    result.slot_of[structure] = std::move(merged.right);
    result.tree = std::move(merged.tree);
  }
}

void make_slots(Inference& result) {
  const auto paths = tensor_paths(result.tree);
  result.slots.resize(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) result.slots[i].path = paths[i];
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

void check_tensor(const Calls& calls, const Inference& result, const Slot& slot,
                  const TensorFact& fact, std::uint32_t call) {
  if (fact.rank == slot.rank && fact.dtype == slot.dtype) return;
  for (std::size_t i = 0; i < calls.tensors(slot.first_call).size(); ++i) {
    const auto& slots = result.slot_of[calls.structure(slot.first_call)];
    if (&result.slots[static_cast<std::size_t>(slots[i])] != &slot) continue;
    const TensorFact& before = calls.tensors(slot.first_call)[i];
    if (fact.rank != slot.rank) {
      refuse("[infer] Expected one number of dimensions for " + slot.path + ", got " +
             in_call(shape_text(calls.shape(before)), slot.first_call) + " and " +
             in_call(shape_text(calls.shape(fact)), call) + ".");
    }
    refuse("[infer] Expected one dtype for " + slot.path + ", got " +
           in_call(std::string(dtype_name(before.dtype)), slot.first_call) + " and " +
           in_call(std::string(dtype_name(fact.dtype)), call) + ".");
  }
}

// One pass over all sizes: which calls have a slot, and which dims vary. A hash per dim stands for
// its vector of sizes.
void gather(const Calls& calls, Inference& result, std::vector<std::uint64_t>& hashes) {
  for (std::uint32_t call = 0; call < calls.size(); ++call) {
    const auto& slots = result.slot_of[calls.structure(call)];
    const auto facts = calls.tensors(call);
    for (std::size_t i = 0; i < facts.size(); ++i) {
      Slot& slot = result.slots[static_cast<std::size_t>(slots[i])];
      if (slot.present++ == 0) {
        slot.rank = facts[i].rank;
        slot.dtype = facts[i].dtype;
        slot.first_call = call;
      }
      slot.last_call = call;
    }
  }
  for (std::uint32_t s = 0; s < result.slots.size(); ++s) {
    result.slots[s].dims = static_cast<std::uint32_t>(result.dims.size());
    for (std::uint32_t axis = 0; axis < result.slots[s].rank; ++axis)
      result.dims.push_back({.slot = s, .axis = axis});
  }
  std::vector<std::int64_t> seen(result.dims.size(), kMissing);
  hashes.assign(result.dims.size(), 0);
  std::size_t most = 0;
  for (std::uint32_t call = 0; call < calls.size(); ++call) {
    const auto& slots = result.slot_of[calls.structure(call)];
    const auto facts = calls.tensors(call);
    if (facts.size() > most) {
      most = facts.size();
      result.fullest = call;
    }
    for (std::size_t i = 0; i < facts.size(); ++i) {
      const Slot& slot = result.slots[static_cast<std::size_t>(slots[i])];
      check_tensor(calls, result, slot, facts[i], call);
      const auto shape = calls.shape(facts[i]);
      for (std::uint32_t axis = 0; axis < slot.rank; ++axis) {
        const std::uint32_t dim = slot.dims + axis;
        if (seen[dim] == kMissing) seen[dim] = shape[axis];
        if (seen[dim] != shape[axis]) result.dims[dim].varies = true;
        std::uint64_t mixed =
            (hashes[dim] ^ static_cast<std::uint64_t>(shape[axis])) * 0x9e3779b97f4a7c15ULL;
        mixed ^= call;  // the same sizes in other calls are another vector
        hashes[dim] = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9ULL;
      }
    }
  }
}

}  // namespace

Inference infer(const Calls& calls) {
  if (calls.size() == 0)
    refuse("[infer] No inputs were captured. Run the model inside the observer's block first.");
  Inference result;
  align_structures(calls, first_calls(calls), result);
  make_slots(result);
  std::vector<std::uint64_t> hashes;
  gather(calls, result, hashes);
  find_groups(calls, hashes, result);
  find_sums(result);
  return result;
}

std::vector<std::int64_t> sizes_of(const Calls& calls, const Inference& inference,
                                   std::uint32_t call) {
  std::vector<std::int64_t> sizes(inference.dims.size(), kMissing);
  const auto& slots = inference.slot_of[calls.structure(call)];
  const auto facts = calls.tensors(call);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const auto shape = calls.shape(facts[i]);
    std::copy(shape.begin(), shape.end(),
              sizes.begin() + inference.slots[static_cast<std::size_t>(slots[i])].dims);
  }
  return sizes;
}

std::vector<std::int32_t> align(const Inference& inference, const Tree& tree) {
  Merge merged = merge(inference.tree, tree);
  if (!merged.mismatches.empty()) {
    const Mismatch& first = merged.mismatches.front();
    refuse("[infer_arguments] Expected the structure of the observed calls, got for " + first.path +
           ": " + first.left + " in the calls, " + first.right + " in the arguments" +
           plural(merged.mismatches.size() - 1) + ".");
  }
  // Slots of the merged tree back to slots of the inference; a tensor without one was in no call.
  std::vector<std::int32_t> slot(merged.tree.tensor_count(), -1);
  for (std::size_t i = 0; i < merged.left.size(); ++i) {
    slot[static_cast<std::size_t>(merged.left[i])] = static_cast<std::int32_t>(i);
  }
  std::vector<std::int32_t> result;
  const auto paths = tensor_paths(tree);
  for (std::size_t i = 0; i < merged.right.size(); ++i) {
    result.push_back(slot[static_cast<std::size_t>(merged.right[i])]);
    if (result.back() < 0)
      refuse("[infer_arguments] Expected tensors that a call had, got " + paths[i] + ".");
  }
  return result;
}

}  // namespace fairlead
