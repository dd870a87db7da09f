// Element types: one table, from which every name, size and code is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fairlead {

enum class DtypeKind : std::uint8_t { kFloat, kInt, kUint, kBool, kComplex };

// X(member, PyTorch name, ONNX TensorProto code, bytes per element, kind)
#define FAIRLEAD_DTYPES(X)                             \
  X(kFloat32, "float32", 1, 4, kFloat)                 \
  X(kUint8, "uint8", 2, 1, kUint)                      \
  X(kInt8, "int8", 3, 1, kInt)                         \
  X(kUint16, "uint16", 4, 2, kUint)                    \
  X(kInt16, "int16", 5, 2, kInt)                       \
  X(kInt32, "int32", 6, 4, kInt)                       \
  X(kInt64, "int64", 7, 8, kInt)                       \
  X(kBool, "bool", 9, 1, kBool)                        \
  X(kFloat16, "float16", 10, 2, kFloat)                \
  X(kFloat64, "float64", 11, 8, kFloat)                \
  X(kUint32, "uint32", 12, 4, kUint)                   \
  X(kUint64, "uint64", 13, 8, kUint)                   \
  X(kComplex64, "complex64", 14, 8, kComplex)          \
  X(kComplex128, "complex128", 15, 16, kComplex)       \
  X(kBfloat16, "bfloat16", 16, 2, kFloat)              \
  X(kFloat8E4m3fn, "float8_e4m3fn", 17, 1, kFloat)     \
  X(kFloat8E4m3fnuz, "float8_e4m3fnuz", 18, 1, kFloat) \
  X(kFloat8E5m2, "float8_e5m2", 19, 1, kFloat)         \
  X(kFloat8E5m2fnuz, "float8_e5m2fnuz", 20, 1, kFloat)

enum class Dtype : std::uint8_t {
#define X(member, name, code, bytes, kind) member = code,
  FAIRLEAD_DTYPES(X)
#undef X
};

[[nodiscard]] std::string_view dtype_name(Dtype dtype);
[[nodiscard]] std::size_t dtype_size(Dtype dtype);
[[nodiscard]] DtypeKind dtype_kind(Dtype dtype);
[[nodiscard]] std::optional<Dtype> parse_dtype(std::string_view name);  // parse_dtype("int64")

[[nodiscard]] inline int onnx_code(Dtype dtype) { return static_cast<int>(dtype); }
[[nodiscard]] inline bool is_float(Dtype d) { return dtype_kind(d) == DtypeKind::kFloat; }
[[nodiscard]] inline bool is_complex(Dtype d) { return dtype_kind(d) == DtypeKind::kComplex; }
// Of the real and imaginary parts; a real type's own.
[[nodiscard]] inline Dtype part_dtype(Dtype d) {
  return d == Dtype::kComplex64 ? Dtype::kFloat32 : d == Dtype::kComplex128 ? Dtype::kFloat64 : d;
}
[[nodiscard]] inline bool is_integer(Dtype d) {
  return dtype_kind(d) == DtypeKind::kInt || dtype_kind(d) == DtypeKind::kUint;
}

}  // namespace fairlead
