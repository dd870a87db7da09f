// Fuzz target: no bytes may crash the reader of ONNX files, nor what a report makes of them; it
// either reads or says kParse.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <string>

#include "fairlead/base/error.h"
#include "fairlead/onnx/reader.h"
#include "fairlead/report/file_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const fairlead::onnx::ModelSummary summary =
        fairlead::onnx::parse_model_summary(std::as_bytes(std::span(data, size)));
    fairlead::onnx::check_functions(std::as_bytes(std::span(data, size)));
    (void)fairlead::report::report_of(summary, "fuzz.onnx");
    std::map<std::string, std::int64_t> sizes;
    for (const fairlead::onnx::ValueSummary& input : summary.inputs) {
      if (!input.shape) continue;
      for (const fairlead::onnx::DimSummary& dim : *input.shape) {
        if (!dim.name.empty()) sizes.emplace(dim.name, 3);
      }
    }
    (void)fairlead::report::peak_memory(summary, sizes);
  } catch (const fairlead::Error& error) {
    if (error.code() != fairlead::ErrorCode::kParse) std::abort();
  }
  return 0;
}
