// Which sizes to try: primes near the observed size, apart from each other and from the model's
// constants.
#include <algorithm>

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

namespace {

// The next size for a symbol that no run and no earlier setting used: alternately above the largest
// that ran and below it, so that limits the model has are not crossed by far.
std::int64_t unseen(const ProbedSymbol& symbol, std::set<std::int64_t>& seen,
                    const std::set<std::int64_t>& in_setting, bool above) {
  const std::int64_t largest = symbol.tried.empty() ? 2 : symbol.tried.back();
  const auto usable = [&](std::int64_t v) {
    return !seen.contains(v) && !in_setting.contains(v) && v >= symbol.min && v <= symbol.max;
  };
  std::int64_t found = 0;
  if (!above || symbol.max <= largest) {
    for (std::int64_t v = 2; v <= largest && found == 0; ++v) {
      if (usable(v)) found = v;
    }
  }
  for (std::int64_t v = largest + 1; v <= largest + 64 && found == 0; ++v) {
    if (usable(v)) found = v;
  }
  if (found == 0) found = std::clamp(largest, std::max<std::int64_t>(1, symbol.min), symbol.max);
  seen.insert(found);
  return found;
}

}  // namespace

bool limit_symbol(ProbeResult& result, std::string_view name, std::int64_t most) {
  for (ProbedSymbol& symbol : result.symbols) {
    if (symbol.name != name) continue;
    const std::int64_t least = *std::max_element(symbol.tried.begin(), symbol.tried.end());
    if (most < least) {
      throw Error(ErrorCode::kInvalidInput,
                  "[export] Expected a largest size of " + symbol.name + " of at least " +
                      std::to_string(least) + ", at which the model ran, got " +
                      std::to_string(most) + ". Fix the dimension where it is always smaller.");
    }
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
    std::set<std::int64_t> in_setting;
    for (std::size_t i = 0; i < result.symbols.size(); ++i) {
      values.push_back(unseen(result.symbols[i], seen[i], in_setting, k % 2 == 1));
      in_setting.insert(values.back());
    }
    settings.push_back(values);
  }
  return settings;
}

Sizes sizes_at(const ProbeResult& result, const std::vector<std::int64_t>& values) {
  Sizes sizes;
  for (const auto& shape : result.shapes) {
    std::vector<std::int64_t> dims;
    for (const Expr e : shape) dims.push_back(result.pool->evaluate(e, values));
    sizes.push_back(std::move(dims));
  }
  return sizes;
}

}  // namespace fairlead
