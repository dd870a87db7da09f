// Fuzz target: no text may crash the reader of graphs, nor what lowers and writes what it reads;
// what it reads, it writes and reads again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fairlead/graph/graph.h"
#include "fuzz/fuzz_impl.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fairlead::fuzz::no_fault([&] {
    fairlead::Graph graph = fairlead::parse_graph({reinterpret_cast<const char*>(data), size});
    const std::string text = to_text(graph);
    if (to_text(fairlead::parse_graph(text)) != text) std::abort();
    fairlead::fuzz::write_and_read(graph);
  });
}
