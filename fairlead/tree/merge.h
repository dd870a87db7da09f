// One tree that holds what two trees hold, aligned by key, with every contradiction and its path.
//
// Rules:
// 1. None, and a container without tensors and constants, are "missing": the other side is taken.
// 2. Dicts, records and custom classes are aligned by key; keys of one side only are kept (union).
// 3. Tuples and lists of the same length are aligned by position; other lengths are a mismatch.
// 4. Constants have to be of one kind and equal: 1 is not True, and a constant beside nothing is a
// mismatch.
// 5. A tensor fits a tensor only; classes fit by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fairlead/tree/tree.h"

namespace fairlead {

struct Mismatch {
  std::string path;  // "past_key_values.0.key"; empty for the root
  std::string left;  // what each side has: "3", "list of 2", "tensor"
  std::string right;
  bool constants = false;  // both are constants, or one is and the other side has none
};

struct Merge {
  Tree tree;
  std::vector<std::int32_t> left;  // tensor of the left tree -> tensor of the merged one
  std::vector<std::int32_t> right;
  std::vector<Mismatch> mismatches;  // where there are any, the left side was taken
};

// `root_order`: keys of a root dict come in this order, then the others as they are met.
[[nodiscard]] Merge merge(const Tree& left, const Tree& right,
                          const std::vector<std::string>& root_order = {});

}  // namespace fairlead
