// The list of fusions.
#include "fairlead/passes/fusion.h"

#include <algorithm>

#include "fairlead/passes/fuse_activations.h"
#include "fairlead/passes/fuse_experts.h"
#include "fairlead/passes/fuse_group_query_attention.h"
#include "fairlead/passes/fuse_multi_head_attention.h"
#include "fairlead/passes/fuse_norms.h"
#include "fairlead/passes/fuse_rotary.h"
#include "fairlead/passes/pack_projections.h"
#include "fairlead/passes/view_indexing.h"

namespace fairlead {

FusionRow& FusionLog::row(std::string_view kind) {
  const auto it = std::find_if(rows_.begin(), rows_.end(),
                               [&](const FusionRow& each) { return each.kind == kind; });
  return it != rows_.end() ? *it : rows_.emplace_back(FusionRow{std::string(kind), 0, {}});
}

void FusionLog::require(std::string_view kind, const Requirement& required) {
  const auto known =
      std::find_if(requirements_.begin(), requirements_.end(), [&](const FusionRequirement& each) {
        return each.kind == kind && each.required.holds == required.holds;
      });
  if (known == requirements_.end()) requirements_.push_back({std::string(kind), required});
}

std::vector<std::string> FusionLog::refused_at(const ExprPool& pool,
                                               std::span<const std::int64_t> sizes) const {
  std::vector<std::string> kinds;
  for (const FusionRequirement& each : requirements_) {
    if (pool.evaluate(each.required.holds, sizes) == 0) kinds.push_back(each.kind);
  }
  return kinds;
}

std::span<const Fusion> fusions() {
  static constexpr Fusion kFusions[] = {
      {"view_indexing", "indexing that takes everything in order is a view", view_indexing, 17},
      {"fuse_experts", "experts that a router chooses are one operator", fuse_experts, 24},
      {"fuse_norms", "a sum that is normalised is one operator", fuse_norms, 17},
      {"fuse_activations", "gelu in its forms is one operator", fuse_activations, 17},
      {"fuse_rotary", "x * cos + rotated x * sin is one operator", fuse_rotary, 17},
      {"fuse_group_query_attention", "causal attention over a cache is one operator",
       fuse_group_query_attention, 22},
      {"fuse_multi_head_attention", "attention is one operator", fuse_multi_head_attention, 20},
      {"pack_projections", "projections of one attention are one product", pack_projections, 22},
  };
  return kFusions;
}

}  // namespace fairlead
