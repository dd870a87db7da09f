// What the fuzz targets share: the way of a graph to a file, and which errors blame us.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "fairlead/base/error.h"
#include "fairlead/onnx/lowering.h"
#include "fairlead/onnx/reader.h"
#include "fairlead/onnx/writer.h"
#include "fairlead/passes/passes.h"
#include "fairlead/report/file_report.h"

namespace fairlead::fuzz {

// Changes, lowers and writes a graph, and reads the file again.
inline void write_and_read(Graph& graph) {
  static const std::string path = std::filesystem::temp_directory_path() /
                                  ("fairlead-fuzz-" + std::to_string(::getpid()) + ".onnx");
  run_passes(graph);
  (void)to_text(graph);
  const onnx::Model model = onnx::lower_graph(graph, {});
  const onnx::StagedModel staged = onnx::write_model(model, path, onnx::ExternalData::kNever);
  try {
    (void)report::report_of(onnx::read_model_summary(staged.path()), path);
  } catch (const Error& error) {  // what we write, we read
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
}

// Nothing but Error is thrown, and none that says that Fairlead is at fault.
template <class Function>
int no_fault(Function function) {
  try {
    function();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) {
      std::fprintf(stderr, "%s\n", error.what());
      std::abort();
    }
  }
  return 0;
}

}  // namespace fairlead::fuzz
