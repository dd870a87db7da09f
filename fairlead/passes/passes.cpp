// The list of passes.
#include "fairlead/passes/passes.h"

#include "fairlead/base/only_errors.h"
#include "fairlead/passes/dead_code.h"
#include "fairlead/passes/expert_matrices.h"
#include "fairlead/passes/fuse_rms_norm.h"
#include "fairlead/passes/fuse_rotary.h"
#include "fairlead/passes/group_heads.h"
#include "fairlead/passes/merge_slices.h"

namespace fairlead {
namespace {

bool optimized_onnx(const Target& target) {
  return target.kind == TargetKind::kOnnx && target.optimize;
}

// Attention and rotary embeddings are operators of the standard from opset 23 on. Fusions for a
// runtime look at the same structures themselves.
bool standard_attention(const Target& target) {
  return optimized_onnx(target) && !target.fuse && target.opset >= 23;
}

std::size_t fuse_standard_rotary(Graph& graph) {
  FusionLog unread;
  return fuse_rotary(graph, unread);
}

const Pass kRemoveDeadCode = {"remove_dead_code", "every node is needed by an output",
                              remove_dead_code};

}  // namespace

std::span<const Pass> passes() {
  // What nothing needs goes in any case, and first: it may hold operators that a target has no
  // form for.
  static const Pass kPasses[] = {
      kRemoveDeadCode,
      {"fuse_rms_norm", "x * rsqrt(mean(x^2) + eps) is one operator", fuse_rms_norm,
       optimized_onnx},
      {"merge_slices", "slices that tile a dimension are one split", merge_slices, optimized_onnx},
      {"fuse_standard_rotary", "x * cos + rotated x * sin is one operator", fuse_standard_rotary,
       standard_attention},
      {"group_heads", "attention repeats no heads of keys and values", group_heads,
       standard_attention},
  };
  return kPasses;
}

FusionLog run_passes(Graph& graph, const Target& target, std::span<const Pass> own) {
  FusionLog log(target);
  only_errors("passes", "the graph", [&] {
    std::size_t changes = 0;
    const auto run = [&](std::span<const Pass> list) {
      for (const Pass& pass : list) {
        if (pass.wanted == nullptr || pass.wanted(target)) changes += pass.run(graph);
      }
    };
    run(passes());
    if (target.fuse && optimized_onnx(target)) {
      remove_dead_code(graph);  // what is read by nobody is no use of what it reads
      const int version = target.runtime.version;
      for (const Fusion& fusion : fusions()) {
        if (version == 0 || version >= fusion.since) {
          changes += fusion.run(graph, log);
        } else {
          log.refused(fusion.name, "ONNX Runtime 1." + std::to_string(version) + " is too old, 1." +
                                       std::to_string(fusion.since) + " has it");
        }
      }
    }
    // After fusions, which know experts by their own form.
    if (optimized_onnx(target)) changes += expert_matrices(graph);
    run(own);
    if (changes > 0) remove_dead_code(graph);
  });
  check(graph);
  return log;
}

}  // namespace fairlead
