// The families of operators, one file each in onnx/ops; families.cpp lists them.
#pragma once

#include <span>
#include <vector>

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

[[nodiscard]] std::vector<std::span<const OpRow>> families();

// X(function): every family's table, in the order of the file names.
#define FAIRLEAD_FAMILIES(X) \
  X(attention_ops)           \
  X(compare_ops)             \
  X(convert_ops)             \
  X(create_ops)              \
  X(index_ops)               \
  X(linear_ops)              \
  X(math_ops)                \
  X(norm_ops)                \
  X(reduce_ops)              \
  X(unary_ops)               \
  X(view_ops)

#define X(function) [[nodiscard]] std::span<const OpRow> function();
FAIRLEAD_FAMILIES(X)
#undef X

}  // namespace fairlead::onnx
