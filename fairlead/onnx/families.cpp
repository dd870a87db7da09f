// The list of families.
#include "fairlead/onnx/families.h"

namespace fairlead::onnx {

std::vector<std::span<const OpRow>> families() {
  return {
#define X(function) function(),
      FAIRLEAD_FAMILIES(X)
#undef X
  };
}

}  // namespace fairlead::onnx
