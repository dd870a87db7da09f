// An ONNX operator's name as a template argument: lower_unary<"Abs">.
#pragma once

#include <cstddef>

namespace fairlead::onnx {

struct OpName {
  char text[32] = {};
  consteval OpName(const char* s) {  // NOLINT: implicit, so that a literal can be the argument
    for (std::size_t k = 0; s[k] != 0; ++k) text[k] = s[k];
  }
};

}  // namespace fairlead::onnx
