// The families of operators, one file each in onnx/ops; families.cpp lists them.
#pragma once

#include <span>
#include <vector>

#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

[[nodiscard]] std::vector<std::span<const OpRow>> families();

// Lowers a node that takes or gives complex numbers; `plain` is its row for real ones.
void lower_complex(Lowering& b, LowerFn plain);

// X(function): every family's table, in the order of the file names.
#define FAIRLEAD_FAMILIES(X) \
  X(activation_ops)          \
  X(adaptive_ops)            \
  X(attention_ops)           \
  X(compare_ops)             \
  X(complex_ops)             \
  X(control_ops)             \
  X(conv_ops)                \
  X(convert_ops)             \
  X(count_ops)               \
  X(create_ops)              \
  X(embedding_bag_ops)       \
  X(factor_ops)              \
  X(fused_attention_ops)     \
  X(fused_ops)               \
  X(grouped_ops)             \
  X(index_ops)               \
  X(layout_ops)              \
  X(linalg_ops)              \
  X(linear_ops)              \
  X(loss_ops)                \
  X(math_ops)                \
  X(norm_ops)                \
  X(packed_ops)              \
  X(pad_ops)                 \
  X(pool_ops)                \
  X(product_ops)             \
  X(quantize_ops)            \
  X(random_ops)              \
  X(recurrent_ops)           \
  X(reduce_ops)              \
  X(resize_ops)              \
  X(sample_ops)              \
  X(scatter_ops)             \
  X(sort_ops)                \
  X(taper_ops)               \
  X(unary_ops)               \
  X(vector_norm_ops)         \
  X(view_ops)                \
  X(vision_ops)              \
  X(window_ops)

#define X(function) [[nodiscard]] std::span<const OpRow> function();
FAIRLEAD_FAMILIES(X)
#undef X

}  // namespace fairlead::onnx
