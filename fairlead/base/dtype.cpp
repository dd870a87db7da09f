// Look-ups in the table of element types.
#include "fairlead/base/dtype.h"

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

struct Row {
  Dtype dtype;
  std::string_view name;
  std::size_t bytes;
  DtypeKind kind;
};

constexpr Row kRows[] = {
#define X(member, name, code, bytes, kind) {Dtype::member, name, bytes, DtypeKind::kind},
    FAIRLEAD_DTYPES(X)
#undef X
};

const Row& row(Dtype dtype) {
  for (const Row& r : kRows) {
    if (r.dtype == dtype) return r;
  }
  FAIRLEAD_CHECK(false, "unknown dtype code " + std::to_string(onnx_code(dtype)));
}

}  // namespace

std::string_view dtype_name(Dtype dtype) { return row(dtype).name; }
std::size_t dtype_size(Dtype dtype) { return row(dtype).bytes; }
DtypeKind dtype_kind(Dtype dtype) { return row(dtype).kind; }

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (const Row& r : kRows) {
    if (r.name == name) return r.dtype;
  }
  return std::nullopt;
}

}  // namespace fairlead
