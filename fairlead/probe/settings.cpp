// Which sizes to try: primes near the observed size, apart from each other and from the model's
// constants.
#include <algorithm>
#include <functional>
#include <numeric>

#include "fairlead/base/error.h"
#include "fairlead/probe/probe.h"
#include "fairlead/probe/sizes.h"

namespace fairlead {

bool is_prime(std::int64_t n) {
  if (n < 2) return false;
  for (std::int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

std::int64_t prime_above(std::int64_t n, const std::set<std::int64_t>& taken) {
  for (std::int64_t p = std::max<std::int64_t>(n + 1, 2);; ++p) {
    if (is_prime(p) && !taken.contains(p)) return p;
  }
}

std::int64_t prime_below(std::int64_t n, const std::set<std::int64_t>& taken) {
  for (std::int64_t p = n - 1; p >= 2; --p) {
    if (is_prime(p) && !taken.contains(p)) return p;
  }
  return n > 2 && !taken.contains(n - 1) ? n - 1 : 0;
}

std::int64_t volume(const Sizes& sizes) {
  std::int64_t total = 0;
  for (const auto& leaf : sizes) {
    total += std::accumulate(leaf.begin(), leaf.end(), std::int64_t{1}, std::multiplies<>());
  }
  return total;
}

namespace {

constexpr std::int64_t kLarge = 32;  // sizes from here on are not of a batch or of a few tokens

// The smallest size that no run and no earlier setting used; 0 where all below the largest that ran
// are taken. A model that ran at large sizes only is not asked for tiny ones.
std::int64_t unseen_below(const ProbedSymbol& symbol, const std::set<std::int64_t>& avoid) {
  if (symbol.tried.empty()) return 0;
  const std::int64_t smallest = symbol.tried.front();
  const std::int64_t least = smallest < kLarge ? 2 : smallest - smallest / 4;
  for (std::int64_t v = std::max(least, symbol.min); v <= symbol.tried.back(); ++v) {
    if (!avoid.contains(v) && v <= symbol.max) return v;
  }
  return 0;
}

std::int64_t unseen_above(const ProbedSymbol& symbol, const std::set<std::int64_t>& avoid) {
  const std::int64_t largest = symbol.tried.empty() ? 2 : symbol.tried.back();
  for (std::int64_t v = largest + 1; v <= std::min(largest + 64, symbol.max); ++v) {
    if (!avoid.contains(v) && v >= symbol.min) return v;
  }
  return 0;
}

std::set<std::int64_t> both(std::set<std::int64_t> a, const std::set<std::int64_t>& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// The next size for a symbol: alternately above the largest that ran and below it, so that limits
// the model has are not crossed by far.
std::int64_t unseen(const ProbedSymbol& symbol, const std::set<std::int64_t>& avoid, bool above) {
  std::int64_t found = above ? unseen_above(symbol, avoid) : unseen_below(symbol, avoid);
  if (found == 0) found = above ? unseen_below(symbol, avoid) : unseen_above(symbol, avoid);
  if (found != 0) return found;
  const std::int64_t largest = symbol.tried.empty() ? 2 : symbol.tried.back();
  return std::clamp(largest, std::max<std::int64_t>(1, symbol.min), symbol.max);
}

// Makes a setting that costs more than the example one that costs little: its batch gets small,
// then, where it is still several times the example, one symbol after the other. One stays large,
// another in each setting.
void lighten(const ProbeResult& result, const std::vector<std::set<std::int64_t>>& seen,
             std::size_t turn, std::vector<std::int64_t>& values) {
  const std::size_t rest = values.size() - 1;
  if (rest == 0 || result.runs.empty()) return;
  const auto cost = [&] { return volume(sizes_at(result, values)); };
  const std::int64_t example = volume(sizes_at(result, result.runs[0].values));
  const std::int64_t most = std::max(4 * example, kSmallVolume);
  for (std::size_t n = 0; n < rest; ++n) {
    const std::int64_t now = cost();
    if (now <= (n == 0 ? std::max(example, kSmallVolume) : most)) return;
    const std::size_t i = n == 0 ? 0 : 1 + (n - 1 + turn) % rest;
    const std::int64_t before = values[i];
    const ProbedSymbol& symbol = result.symbols[i];
    values[i] = unseen_below(symbol, both(seen[i], {values.begin(), values.end()}));
    if (values[i] == 0 || cost() > most) values[i] = symbol.tried.front();
    if (8 * cost() > 7 * now) values[i] = before;  // not worth it: a mask beside an image
  }
}

}  // namespace

void refuse_largest(std::string_view name, std::int64_t least, std::int64_t most) {
  const std::string cause = "Expected a largest size of " + std::string(name) + " of at least " +
                            std::to_string(least) + ", at which the model ran, got " +
                            std::to_string(most);
  throw Error(ErrorCode::kInvalidInput,
              "[export] " + cause + ". Fix the dimension where it is always smaller.", {}, cause);
}

bool limit_symbol(ProbeResult& result, std::string_view name, std::int64_t most) {
  for (ProbedSymbol& symbol : result.symbols) {
    if (symbol.name != name) continue;
    const std::int64_t least = *std::max_element(symbol.tried.begin(), symbol.tried.end());
    if (most < least) refuse_largest(name, least, most);
    symbol.max = std::min(symbol.max, most);
    return true;
  }
  return false;
}

void bound_symbol(ProbeResult& result, std::size_t symbol, std::int64_t least, std::int64_t most) {
  ProbedSymbol& bounded = result.symbols.at(symbol);
  FAIRLEAD_CHECK(least <= bounded.tried.front() && most >= bounded.tried.back(),
                 "a run is outside of the bounds of " + bounded.name);
  bounded.min = std::max(bounded.min, least);
  bounded.max = std::min(bounded.max, most);
}

std::vector<std::vector<std::int64_t>> unseen_settings(const ProbeResult& result,
                                                       std::size_t count) {
  std::vector<std::vector<std::int64_t>> settings;
  if (result.symbols.empty()) return settings;
  std::vector<std::int64_t> ones;
  std::vector<std::set<std::int64_t>> seen;
  for (const ProbedSymbol& s : result.symbols) {
    ones.push_back(std::max<std::int64_t>(1, s.min));
    seen.emplace_back(s.tried.begin(), s.tried.end()).insert(ones.back());
  }
  settings.push_back(ones);
  for (std::size_t k = 1; k < count; ++k) {
    std::vector<std::int64_t> values;
    const bool above = k % 2 == 1;
    for (std::size_t i = 0; i < result.symbols.size(); ++i) {
      const std::set<std::int64_t> avoid = both(seen[i], {values.begin(), values.end()});
      values.push_back(unseen(result.symbols[i], avoid, above));
    }
    if (above) lighten(result, seen, k / 2, values);
    for (std::size_t i = 0; i < values.size(); ++i) seen[i].insert(values[i]);
    settings.push_back(values);
  }
  return settings;
}

std::vector<std::vector<std::int64_t>> far_settings(const ProbeResult& result, std::size_t each) {
  std::vector<std::vector<std::int64_t>> settings;
  if (result.runs.empty()) return settings;
  const std::vector<std::int64_t>& base = result.runs[0].values;
  std::vector<std::set<std::int64_t>> seen;
  for (const ProbedSymbol& symbol : result.symbols) {
    seen.emplace_back(symbol.tried.begin(), symbol.tried.end());
  }
  // Every symbol in turn: whoever stops early has looked at all of them. Twice the base and three
  // fifths of it are written as 0 and -1.
  std::vector<std::size_t> count(seen.size(), 0);
  for (const std::int64_t named : {100, 1024, 1, 64, 257, 0, -1, 2, 8, 16, 128}) {
    for (std::size_t k = 0; k < result.symbols.size(); ++k) {
      const ProbedSymbol& symbol = result.symbols[k];
      const std::int64_t size = named == 0 ? 2 * base[k] : named < 0 ? base[k] * 3 / 5 : named;
      if (size < std::max<std::int64_t>(1, symbol.min) || size > symbol.max) continue;
      if (count[k] == each || !seen[k].insert(size).second) continue;
      ++count[k];
      settings.push_back(base);
      settings.back()[k] = size;
    }
  }
  return settings;
}

Sizes sizes_at(const ProbeResult& result, const std::vector<std::int64_t>& values) {
  Sizes sizes;
  sizes.reserve(result.shapes.size());
  for (std::size_t leaf = 0; leaf < result.shapes.size(); ++leaf) {
    const auto& shape = result.shapes[leaf];
    if (leaf > 0 && shape == result.shapes[leaf - 1]) {  // thousands of inputs are mostly alike
      sizes.push_back(std::vector<std::int64_t>(sizes.back()));
      continue;
    }
    std::vector<std::int64_t> dims;
    dims.reserve(shape.size());
    for (const Expr e : shape) dims.push_back(result.pool->evaluate(e, values));
    sizes.push_back(std::move(dims));
  }
  return sizes;
}

}  // namespace fairlead
