// What a run took from outside of its operators: tensors and numbers that no operator made.
#pragma once

#include <string>
#include <vector>

#include "fairlead/trace/run.h"

namespace fairlead {

struct FromOutside {
  std::size_t op = 0;  // the first operator that takes it
  bool is_float =
      false;           // a tensor of floats: no expression of sizes and integers read explains it
  std::string what;    // "a tensor float32[3, 5]", "the number 0.5 (0.25 with other values)"
  std::string place;   // "aten.mul.Tensor in encoder at model.py:12"
  std::string source;  // "model.py:12"
};

// Of two runs of one program at the same sizes and with other values: what differs although no
// operator made it, in the order of the operators. It follows the inputs unseen (NumPy, a list of
// numbers, another thread, a kernel of its own). What an operator read (.item()) is seen, and so
// are numbers equal to one; sizes that an operator made from data are not looked at.
[[nodiscard]] std::vector<FromOutside> follows_from_outside(const Vocabulary& vocabulary,
                                                            const Run& first, const Run& second);

// Whether a run takes tensors that are neither inputs, nor the model's, nor made by operators, or
// reads values (an operator that makes no tensor): without, nothing that it computes can follow the
// inputs unseen.
[[nodiscard]] bool takes_from_outside(const Run& run);

}  // namespace fairlead
