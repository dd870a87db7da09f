// Fuzz target: no bytes may crash the reader of .pt2 archives, nor what changes, lowers and writes
// the program it reads. Nothing but Error is thrown, and none that blames us.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "fairlead/base/error.h"
#include "fairlead/onnx/lowering.h"
#include "fairlead/onnx/writer.h"
#include "fairlead/passes/passes.h"
#include "fairlead/pt2/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = "/tmp/fairlead-fuzz-" + std::to_string(::getpid()) + ".onnx";
  try {
    fairlead::pt2::Imported imported =
        fairlead::pt2::read_pt2(std::as_bytes(std::span(data, size)), "fuzz");
    fairlead::Graph& graph = imported.program.graph;
    fairlead::run_passes(graph);
    (void)to_text(graph);
    (void)fairlead::pt2::contract(imported);
    const fairlead::onnx::Model model = fairlead::onnx::lower_graph(graph, {});
    (void)fairlead::onnx::write_model(model, path, fairlead::onnx::ExternalData::kNever);
  } catch (const fairlead::Error& error) {
    if (error.code() == fairlead::ErrorCode::kInternal) {
      std::fprintf(stderr, "%s\n", error.what());
      std::abort();
    }
  }
  return 0;
}
