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

// aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)
//
// The same bytes read as another type. A Cast keeps them between integers of one size, where it
// wraps, and from bool; ONNX has nothing for the others.
void lower_view_dtype(Lowering& b) {
  const Dtype from = b.dtype(0), to = b.out_dtype();
  const bool wraps = dtype_size(from) == dtype_size(to) && is_integer(to) &&
                     (is_integer(from) || from == Dtype::kBool);
  if (from != to && !wraps) {
    b.unsupported("ONNX cannot read the bytes of " + std::string(dtype_name(from)) + " as " +
                  std::string(dtype_name(to)));
  }
  b.result(b.in(0));
}

constexpr OpRow kRows[] = {
    {"aten._to_copy.default", lower_cast, "Cast", ""},
    {"aten.copy.default", lower_copy, "Cast, Expand", ""},
    {"aten.to.device", lower_cast, "Cast", ""},
    {"aten.to.dtype", lower_cast, "Cast", ""},
    {"aten.to.dtype_layout", lower_cast, "Cast", ""},
    {"aten.to.other", lower_cast, "Cast", ""},
    {"aten.to.prim_Device", lower_cast, "Cast", ""},
    {"aten.to.prim_dtype", lower_cast, "Cast", ""},
    {"aten.to.prim_other", lower_cast, "Cast", ""},
    {"aten.type_as.default", lower_cast, "Cast", ""},
    {"aten.view.dtype", lower_view_dtype, "Cast",
     "only between integers of one size, and from bool"},
};

}  // namespace

std::span<const OpRow> convert_ops() { return kRows; }

}  // namespace fairlead::onnx
