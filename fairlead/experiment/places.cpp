// Symbols of a probing, and the dimensions that they are.
#include <algorithm>
#include <functional>
#include <numeric>

#include "fairlead/experiment/lab.h"

namespace fairlead {
namespace {

// Times what an expression is a symbol; 0 where it is something else.
std::int64_t unit_of(Expr e, std::size_t symbol) {
  const auto is_it = [&](Expr s) {
    return s->kind == ExprKind::kSymbol && static_cast<std::size_t>(s->value) == symbol;
  };
  if (is_it(e)) return 1;
  return e->kind == ExprKind::kMul && e->args.size() == 1 && is_it(e->args[0]) ? e->value : 0;
}

}  // namespace

std::vector<std::pair<Place, std::int64_t>> units_of(const ProbeResult& probed,
                                                     std::size_t symbol) {
  std::vector<std::pair<Place, std::int64_t>> found;
  for (std::size_t leaf = 0; leaf < probed.shapes.size(); ++leaf) {
    for (std::size_t axis = 0; axis < probed.shapes[leaf].size(); ++axis) {
      const std::int64_t unit = unit_of(probed.shapes[leaf][axis], symbol);
      if (unit > 0) found.emplace_back(Place{leaf, axis}, unit);
    }
  }
  return found;
}

std::vector<Place> places_of(const ProbeResult& probed, std::size_t symbol) {
  std::vector<Place> found;
  for (const auto& [place, unit] : units_of(probed, symbol)) found.push_back(place);
  return found;
}

Setting changed(Setting setting, std::size_t k, std::int64_t size) {
  setting.at(k) = size;
  return setting;
}

std::optional<Setting> setting_of(const ProbeResult& probed, const Sizes& sizes) {
  Setting setting;
  for (std::size_t k = 0; k < probed.symbols.size(); ++k) {
    const auto units = units_of(probed, k);
    if (units.empty()) return std::nullopt;
    const auto& [place, unit] = units[0];
    const std::int64_t size = sizes.at(place.leaf).at(place.axis) / unit;
    if (size == 0) return std::nullopt;
    setting.push_back(size);
  }
  if (sizes_at(probed, setting) != sizes) return std::nullopt;
  return setting;
}

std::vector<std::size_t> ones_in(const ProbeResult& probed, const Sizes& sizes) {
  std::vector<std::size_t> found;
  const std::optional<Setting> setting = setting_of(probed, sizes);
  for (std::size_t k = 0; setting && k < setting->size(); ++k) {
    if ((*setting)[k] == 1) found.push_back(k);
  }
  return found;
}

bool is_constant(const ProbeResult& probed, const Place& place) {
  return probed.shapes.at(place.leaf).at(place.axis)->kind == ExprKind::kConst;
}

std::string text_at(const ProbeResult& probed, const Place& place) {
  return probed.pool->to_string(probed.shapes.at(place.leaf).at(place.axis));
}

std::string in_words(const ProbeResult& probed, const Setting& setting) {
  std::string words;
  for (std::size_t k = 0; k < setting.size() && k < probed.symbols.size(); ++k) {
    words += (k == 0 ? "" : ", ") + probed.symbols[k].name + " = " + std::to_string(setting[k]);
  }
  return words;
}

std::int64_t elements(const Sizes& sizes) {
  std::int64_t total = 0;
  for (const auto& leaf : sizes) {
    total += std::accumulate(leaf.begin(), leaf.end(), std::int64_t{1}, std::multiplies<>());
  }
  return total;
}

Evidence branches(const Ran& ran) {
  Evidence found;
  found.why = Why::kBranches;
  found.before = ran.before;
  found.now = ran.now;
  return found;
}

}  // namespace fairlead
