// Fuzz target: no bytes may crash the reader of .pt2 archives, nor what changes, lowers and writes
// the program it reads. Nothing but Error is thrown, and none that blames us.
#include <cstddef>
#include <cstdint>
#include <span>

#include "fairlead/pt2/import.h"
#include "fuzz/fuzz_impl.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fairlead::fuzz::no_fault([&] {
    fairlead::pt2::Imported imported =
        fairlead::pt2::read_pt2(std::as_bytes(std::span(data, size)), "fuzz");
    (void)fairlead::pt2::contract(imported);
    fairlead::fuzz::write_and_read(imported.program.graph);
  });
}
