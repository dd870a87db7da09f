// Which sizes to try: primes near the observed size, apart from each other and from the model's constants.
#include <algorithm>

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

std::vector<std::vector<std::int64_t>> unseen_settings(const ProbeResult& result, std::size_t count) {
  std::vector<std::vector<std::int64_t>> settings;
  if (result.symbols.empty()) return settings;
  std::vector<std::int64_t> ones;
  for (const ProbedSymbol& s : result.symbols) ones.push_back(std::max<std::int64_t>(1, s.min));
  settings.push_back(ones);
  std::set<std::int64_t> taken;
  for (std::size_t k = 1; k < count; ++k) {
    std::vector<std::int64_t> values;
    for (const ProbedSymbol& s : result.symbols) {
      std::set<std::int64_t> seen(s.tried.begin(), s.tried.end());
      seen.insert(taken.begin(), taken.end());
      // Between or just beside the sizes that ran, so that limits the model has are not crossed.
      const std::int64_t largest = s.tried.empty() ? 2 : s.tried.back();
      std::int64_t value = 0;
      for (std::int64_t v = largest; v >= 2 && value == 0; --v) {
        if (!seen.contains(v)) value = v;
      }
      if (value == 0 || (k % 2 == 1 && s.max > largest)) value = largest + 1;
      while (seen.contains(value) && value < s.max) ++value;
      value = std::clamp(value, std::max<std::int64_t>(1, s.min), s.max);
      taken.insert(value);
      values.push_back(value);
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
