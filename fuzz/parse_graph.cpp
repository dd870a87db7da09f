// libFuzzer target: no text may crash the reader of graphs; what it reads, it writes and reads
// again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fairlead/base/error.h"
#include "fairlead/graph/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const fairlead::Graph graph =
        fairlead::parse_graph({reinterpret_cast<const char*>(data), size});
    const std::string text = to_text(graph);
    if (to_text(fairlead::parse_graph(text)) != text) std::abort();
  } catch (const fairlead::Error& error) {
    if (error.code() != fairlead::ErrorCode::kParse) std::abort();
  }
  return 0;
}
