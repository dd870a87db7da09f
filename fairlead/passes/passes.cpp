// The list of passes.
#include "fairlead/passes/passes.h"

#include "fairlead/base/only_errors.h"
#include "fairlead/passes/dead_code.h"
#include "fairlead/passes/fuse_rms_norm.h"
#include "fairlead/passes/merge_slices.h"

namespace fairlead {
namespace {

constexpr Pass kPasses[] = {
    {"remove_dead_code", "every node is needed by an output", remove_dead_code},
    {"fuse_rms_norm", "x * rsqrt(mean(x^2) + eps) is one operator", fuse_rms_norm},
    {"merge_slices", "slices that tile a dimension are one split", merge_slices},
    {"remove_dead_code", "every node is needed by an output", remove_dead_code},
};

}  // namespace

std::span<const Pass> passes() { return kPasses; }

void run_passes(Graph& graph) {
  only_errors("passes", "the graph", [&] {
    for (const Pass& pass : kPasses) pass.run(graph);
  });
  check(graph);
}

}  // namespace fairlead
