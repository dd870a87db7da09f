// libFuzzer target: no bytes may crash the reader of .pt2 archives, nor what lowers the program it
// reads.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "fairlead/base/error.h"
#include "fairlead/passes/passes.h"
#include "fairlead/pt2/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    fairlead::pt2::Imported imported =
        fairlead::pt2::read_pt2(std::as_bytes(std::span(data, size)), "fuzz");
    fairlead::run_passes(imported.program.graph);
  } catch (const fairlead::Error& error) {
    if (error.code() == fairlead::ErrorCode::kInternal) std::abort();
  }
  return 0;
}
