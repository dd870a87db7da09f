// libFuzzer target: no bytes may crash the reader of ONNX files; it either reads or says kParse.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "fairlead/base/error.h"
#include "fairlead/onnx/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    (void)fairlead::onnx::parse_model_summary(std::as_bytes(std::span(data, size)));
  } catch (const fairlead::Error& error) {
    if (error.code() != fairlead::ErrorCode::kParse) std::abort();
  }
  return 0;
}
