// What the observed calls say together: one structure, its tensor slots, which dims vary and how
// they relate.
//
// Pipeline: align (all structures into one tree) -> gather (sizes per slot) -> classes (dims that
// move together) -> sums (dims that are the sum of two others) -> fill (shapes for slots a call
// does not have).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/observe/calls.h"
#include "fairlead/tree/tree.h"

namespace fairlead {

inline constexpr std::int64_t kMissing = -1;  // a size in a call that does not have the tensor

// One tensor of the aligned tree.
struct Slot {
  std::string path;  // "past_key_values.0.key"
  Dtype dtype = Dtype::kFloat32;
  std::uint32_t rank = 0;
  std::uint32_t dims = 0;        // number of its first dim; axis a is dim `dims + a`
  std::uint32_t first_call = 0;  // the first and the last call that have it
  std::uint32_t last_call = 0;
  std::uint32_t present = 0;  // calls that have it
};

struct ObservedDim {
  std::uint32_t slot = 0;
  std::uint32_t axis = 0;
  bool varies = false;      // two calls have different sizes
  std::int32_t group = -1;  // its class, where it varies
};

// Dims that agree in every call that has both, in two different sizes at least.
struct DimGroup {
  std::vector<std::uint32_t> dims;
  std::vector<std::int64_t> sizes;  // per call; kMissing where no member is present
};

// sizes[total] == sizes[first] + sizes[second] in every call that has all three, in two different
// ways at least.
struct DimSum {
  std::uint32_t total = 0, first = 0, second = 0;  // groups
};

struct Inference {
  Tree tree;  // all calls aligned; the tensor number is the slot
  std::vector<Slot> slots;
  std::vector<ObservedDim> dims;
  std::vector<DimGroup> groups;
  std::vector<DimSum> sums;
  std::vector<std::vector<std::int32_t>> slot_of;  // per structure: tensor of the structure -> slot
  std::uint32_t fullest = 0;                       // the first call with the most tensors
};

// Error kInvalidInput, one sentence: no calls, structures that differ, constants that differ, ranks
// or dtypes that differ, each with path, calls and values.
[[nodiscard]] Inference infer(const Calls& calls);

// Sizes of every dim in one call; kMissing where the call does not have the slot.
[[nodiscard]] std::vector<std::int64_t> sizes_of(const Calls& calls, const Inference& inference,
                                                 std::uint32_t call);

// A shape for every slot that a call lacks (nullopt for those it has, save tensors without dims,
// whose shape is always the same). `sizes`: its own sizes by dim.
// 1. Start from the last call that has the slot.
// 2. An axis whose group, or whose place in a sum, has a size in this call gets that size.
// 3. Tensors that had this very shape in the call it was taken from, and agree here, give the rest.
// 4. Axis 0 follows the other arguments' axis 0 where those agreed with it in the call it was taken
// from.
// 5. If the slot is not empty yet and has an axis that varies, the last such axis without a size
// becomes 0.
[[nodiscard]] std::vector<std::optional<std::vector<std::int64_t>>> fill(
    const Calls& calls, const Inference& inference, const std::vector<std::int64_t>& sizes);

// The slots of a tree that was not stored (a user's own arguments), aligned like the calls.
// Error kInvalidInput where it does not fit, or has a tensor that no call had.
[[nodiscard]] std::vector<std::int32_t> align(const Inference& inference, const Tree& tree);

}  // namespace fairlead
