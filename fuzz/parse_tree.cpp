// Fuzz target: no text may crash what reads the trees of a program's inputs and outputs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/pt2/treespec.h"
#include "fuzz/fuzz_impl.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fairlead::fuzz::no_fault([&] { (void)fairlead::pt2::tree_classes(text); });
  return fairlead::fuzz::no_fault([&] {
    const std::vector<std::string> inputs = fairlead::pt2::input_names(text, {"x", "kwargs"});
    const std::vector<std::string> paths = fairlead::pt2::output_paths(text);
    if (fairlead::pt2::output_names(paths, inputs).size() != paths.size()) std::abort();
  });
}
