// Folded constants that are views of weights: weight.t(), weight[:n].
#include <algorithm>

#include "fairlead/source/torch_source_impl.h"

namespace fairlead {
namespace {

std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t within = 1;
  for (std::size_t k = dims.size(); k-- > 0;) {
    strides[k] = within;
    within *= dims[k];
  }
  return strides;
}

std::vector<std::int64_t> strides_of(const Constant& constant) {
  return constant.strides.empty() ? dense_strides(constant.dims) : constant.strides;
}

// The dimension of `base` that each dimension of `view` is; empty where it is no permutation.
std::vector<std::int64_t> permutation(const Constant& base, const Constant& view) {
  const std::vector<std::int64_t> from = strides_of(base), to = strides_of(view);
  std::vector<std::int64_t> perm;
  std::vector<bool> taken(from.size(), false);
  if (from.size() != to.size()) return perm;
  for (std::size_t k = 0; k < to.size(); ++k) {
    for (std::size_t d = 0; d < from.size(); ++d) {
      if (taken[d] || from[d] != to[k] || base.dims[d] != view.dims[k]) continue;
      taken[d] = true;
      perm.push_back(static_cast<std::int64_t>(d));
      break;
    }
    if (perm.size() != k + 1) return {};
  }
  return perm;
}

}  // namespace

std::map<std::size_t, ConstantView> views_of_named(const Graph& graph) {
  struct Range {
    const std::byte* begin;
    const std::byte* end;
    std::size_t constant;
  };
  const auto element = [&](const Constant& c) {
    return static_cast<std::int64_t>(dtype_size(graph.values[c.value].dtype));
  };
  std::vector<Range> named;
  for (std::size_t k = 0; k < graph.constants.size(); ++k) {
    const Constant& c = graph.constants[k];
    if (graph.values[c.value].name.empty() || strides_of(c) != dense_strides(c.dims)) continue;
    std::int64_t count = 1;
    for (const std::int64_t d : c.dims) count *= d;
    if (count > 0) named.push_back({c.data, c.data + count * element(c), k});
  }
  std::sort(named.begin(), named.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::map<std::size_t, ConstantView> views;
  for (std::size_t k = 0; k < graph.constants.size(); ++k) {
    const Constant& c = graph.constants[k];
    if (!graph.values[c.value].name.empty() || c.dims.empty()) continue;
    auto it = std::upper_bound(named.begin(), named.end(), c.data,
                               [](const std::byte* at, const Range& r) { return at < r.begin; });
    if (it == named.begin() || c.data >= (--it)->end) continue;
    const Constant& base = graph.constants[it->constant];
    if (graph.values[base.value].dtype != graph.values[c.value].dtype) continue;
    ConstantView view;
    view.base = it->constant;
    if (c.data == base.data) view.perm = permutation(base, c);
    if (view.perm.empty()) {
      // Whole rows: the same sizes but for the first, and dense.
      const std::vector<std::int64_t> strides = dense_strides(base.dims);
      const std::int64_t offset = (c.data - base.data) / element(c);
      if (c.dims.size() != base.dims.size() || strides_of(c) != dense_strides(c.dims) ||
          !std::equal(c.dims.begin() + 1, c.dims.end(), base.dims.begin() + 1) ||
          offset % strides[0] != 0) {
        continue;
      }
      view.start = offset / strides[0];
    }
    views.emplace(k, std::move(view));
  }
  return views;
}

}  // namespace fairlead
