// Conversions between element types, and copies into tensors of another type.
#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

// aten::_to_copy(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor: `result` casts
void lower_cast(Lowering& b) { b.result(b.in(0)); }

// aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor
void lower_copy(Lowering& b) {
  b.result(b.expand(b.in(1, b.out_dtype()), b.shape(1), b.out_shape()));
}

constexpr OpRow kRows[] = {
    {"aten._to_copy.default", lower_cast, "Cast", ""},
    {"aten.copy.default", lower_copy, "Cast, Expand", ""},
    {"aten.to.dtype", lower_cast, "Cast", ""},
};

}  // namespace

std::span<const OpRow> convert_ops() { return kRows; }

}  // namespace fairlead::onnx
