// The calls of a check in order.
#include "fairlead/experiment/check_plan.h"

#include <algorithm>

#include "fairlead/experiment/lab.h"
#include "fairlead/experiment/tiny.h"

namespace fairlead {
namespace {

constexpr int kSettings = 3;       // next to what ran
constexpr int kPartSettings = 2;   // of a further program, beside its example
constexpr double kLongest = 30.0;  // seconds, after which far sizes and other values are left out
constexpr std::int64_t kLongestSize = 4096;  // of a declared maximum that is run
// Times the example: of the first symbol, which most often is the batch, and of the others.
constexpr std::int64_t kFarFirst = 3, kFar = 5;
// Times apart: sizes that are swapped. A batch as large as an image is wide is nothing that anyone
// asks for.
constexpr std::int64_t kClose = 8;
constexpr std::int64_t kRound = 8;  // kernels and models that pad take other ways at multiples

constexpr Effort kTiny{8, 3, 24, 1 << 15};  // runs cost next to nothing
constexpr Effort kSmall{8, 3, 8, 1 << 15};
constexpr Effort kMedium{2, 2, 2, 1 << 14};  // a forward pass of some hundredths of a second
constexpr Effort kKnown{1, 2, 1, 1 << 14};   // the same, where sizes hold no surprise
// Weights are read at memory speed: three passes, with the one that was recorded.
constexpr Effort kLarge{0, 1, 0, 0};
constexpr Effort kOnce{0, 1, 0, 0, false};
constexpr std::int64_t kMediumBytes = 16 << 20, kLargeBytes = 200 << 20;
constexpr std::int64_t kHeavyExample = 1 << 17;
constexpr std::int64_t kMediumOperators = 600;
constexpr std::int64_t kMediumInputs = 300, kLargeInputs = 2000;  // each is made, and bound by name
// Of one symbol, where a run costs nothing.
constexpr std::int64_t kBeside = 24, kEvery = 72;
constexpr std::int64_t kAlone[] = {37, 2, 100, 13, 64, 257, 1024, 1025, 6};

}  // namespace

bool is_small(const Cost& cost) {
  return cost.weight_bytes <= kMediumBytes && cost.operators <= kMediumOperators &&
         cost.inputs <= kMediumInputs;
}

Effort effort_for(const Cost& cost, bool part) {
  const bool large = cost.weight_bytes > kLargeBytes || cost.inputs > kLargeInputs;
  const bool small = is_small(cost);
  const bool tiny = small && is_tiny(cost.operators);
  Effort found = large ? kLarge : tiny ? kTiny : small ? kSmall : cost.known ? kKnown : kMedium;
  if (part) {
    found.values = std::min(found.values, 1);
    found.near = std::min(found.near, kPartSettings);
    found.far = small ? found.far / 2 : std::min(found.far, 1);
    // One that begins at a size that nobody may ever ask for (an hour of sound) is looked at once.
    if (cost.elements > kHeavyExample) found = kOnce;
  }
  return found;
}

CheckPlan::CheckPlan(const ProbeResult& probed, CheckRequest request)
    : probed_(probed), request_(std::move(request)) {
  if (probed_.symbols.empty()) request_.effort.example = true;
  if (request_.effort.example) add_calls();
  // At least one call beside the example is compared, with other values where sizes are fixed.
  if (probed_.symbols.empty()) request_.effort.values = std::max(request_.effort.values, 1);
  for (int number = 0; number < request_.effort.values; ++number) {
    Check check;
    check.kind = Check::Kind::kValues;
    check.number = number;
    waiting_.push_back(std::move(check));
  }
  if (probed_.symbols.empty()) return;
  int seed = 1;
  const auto add = [&](const std::vector<std::int64_t>& values, bool far) {
    add_sizes(values, seed, far);
    seed += 1000;
  };
  auto near = unseen_settings(probed_, 2 * kSettings);
  // Alone, sizes of 1 would say little.
  if (request_.effort.near == 1 && near.size() > 1) std::swap(near[0], near[1]);
  for (const auto& values : near) add(values, false);
  base_ = request_.example;
  if (base_.empty() && !probed_.runs.empty()) base_ = probed_.runs[0].values;
  const bool far = request_.effort.far > 0;
  if (!base_.empty() && (far || !request_.also.empty())) {
    most_elements_ = std::max(request_.effort.elements, 2 * elements(sizes_at(probed_, base_)));
  }
  if (!base_.empty() && far) {
    for (const auto& values : far_candidates()) add(values, true);
    if (request_.closely && request_.effort.far >= kSmall.far) {
      for (const auto& values : beside()) add(values, true);
    }
  }
  for (const auto& values : request_.also) add(values, true);
  if (request_.made_at.empty()) return;
  seed = 5000;
  for (const auto& values : unseen_settings(probed_, 2 * kSettings)) {
    std::vector<std::int64_t> tied;
    for (const std::int64_t made : request_.made_at) {
      const auto first = std::find(request_.made_at.begin(), request_.made_at.end(), made);
      tied.push_back(values[static_cast<std::size_t>(first - request_.made_at.begin())]);
    }
    if (tied != values) add_sizes(tied, seed, false);
    ++seed;
  }
}

void CheckPlan::add_calls() {
  for (int number = 0; number < request_.calls; ++number) {
    Check check;
    check.number = number;
    waiting_.push_back(std::move(check));
  }
}

void CheckPlan::add_sizes(const std::vector<std::int64_t>& values, int seed, bool far) {
  Check check;
  check.kind = Check::Kind::kSizes;
  check.values = values;
  check.seed = seed;
  check.far = far;
  waiting_.push_back(std::move(check));
}

bool CheckPlan::is_too_large(const std::vector<std::int64_t>& values) const {
  return elements(sizes_at(probed_, values)) > most_elements_;
}

// As many as there is effort for: within the bounds of every symbol, none twice, none with too many
// elements.
std::vector<std::vector<std::int64_t>> CheckPlan::far_candidates() const {
  const std::size_t count = base_.size();
  std::vector<Setting> wanted(2);
  for (std::size_t k = 0; k < count; ++k) {
    wanted[0].push_back(base_[k] * (k > 0 ? kFar : kFarFirst));
    wanted[1].push_back(kRound * ((base_[k] + kRound - 1) / kRound + static_cast<std::int64_t>(k)));
  }
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t other = k + 1; other < count; ++other) {
      const auto [least, most] = std::minmax(base_[k], base_[other]);
      if (least == most || most > kClose * least) continue;
      wanted.push_back(base_);
      std::swap(wanted.back()[k], wanted.back()[other]);
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    if (probed_.symbols[k].max <= kLongestSize) {
      wanted.push_back(changed(base_, k, probed_.symbols[k].max));
    }
  }
  for (const std::int64_t size : kAlone) {
    for (std::size_t k = 0; k < count; ++k) wanted.push_back(changed(base_, k, size));
  }
  Setting rising, falling;
  for (std::size_t k = 0; k < count; ++k) {
    rising.push_back(2 + static_cast<std::int64_t>(k));
    falling.push_back(9 - static_cast<std::int64_t>(std::min<std::size_t>(k, 7)));
  }
  wanted.push_back(std::move(rising));
  wanted.push_back(std::move(falling));
  std::vector<Setting> found;
  for (Setting& values : wanted) {
    if (found.size() == static_cast<std::size_t>(request_.effort.far)) break;
    for (std::size_t k = 0; k < count; ++k) {
      const ProbedSymbol& symbol = probed_.symbols[k];
      const auto limit = request_.largest.find(symbol.name);
      values[k] = std::max({values[k], symbol.min, std::int64_t{1}});
      values[k] = std::min(values[k], symbol.max);
      if (limit != request_.largest.end()) values[k] = std::min(values[k], limit->second);
    }
    const bool seen =
        values == base_ || std::find(found.begin(), found.end(), values) != found.end();
    if (!seen && !is_too_large(values)) found.push_back(values);
  }
  return found;
}

// Every size of each symbol next to that of the example, and every small one.
std::vector<std::vector<std::int64_t>> CheckPlan::beside() const {
  std::vector<Setting> found;
  for (std::size_t k = 0; k < base_.size(); ++k) {
    const ProbedSymbol& symbol = probed_.symbols[k];
    const std::int64_t furthest = std::max(kBeside, kEvery - base_[k]);
    for (std::int64_t step = 1; step <= furthest; ++step) {
      for (const std::int64_t size : {base_[k] + step, base_[k] - step}) {
        if (size < std::max<std::int64_t>(1, symbol.min) || size > symbol.max) continue;
        Setting values = changed(base_, k, size);
        if (!is_too_large(values)) found.push_back(std::move(values));
      }
    }
  }
  return found;
}

std::optional<Check> CheckPlan::next(double seconds) {
  for (;;) {
    if (waiting_.empty() && !request_.effort.example && near_ == 0) {
      request_.effort.example = true;
      add_calls();
    }
    if (waiting_.empty()) return std::nullopt;
    Check check = std::move(waiting_.front());
    waiting_.pop_front();
    const bool near = check.kind == Check::Kind::kSizes && !check.far;
    if (near && near_ >= request_.effort.near) continue;
    const bool more = check.far || check.kind == Check::Kind::kValues;
    if (more && seconds > kLongest) continue;
    return check;
  }
}

void CheckPlan::told(const Check& check, Verdict verdict, int parts_of_values) {
  const bool compared =
      verdict == Verdict::kRight || verdict == Verdict::kExcused || verdict == Verdict::kDiffers;
  if (check.kind == Check::Kind::kSizes && !check.far && compared) ++near_;
  if (verdict != Verdict::kRefused) return;
  std::vector<Check> parts;
  if (check.kind == Check::Kind::kValues && check.part < 0) {
    for (int part = 0; part < parts_of_values; ++part) {
      parts.push_back(check);
      parts.back().part = part;
    }
  } else if (check.far && !request_.example.empty()) {
    // One symbol at a time, where all together are refused.
    std::vector<std::size_t> moved;
    for (std::size_t k = 0; k < base_.size(); ++k) {
      if (check.values[k] != base_[k]) moved.push_back(k);
    }
    if (moved.size() < 2) return;
    for (const std::size_t k : moved) {
      Check part = check;
      part.values = changed(base_, k, check.values[k]);
      part.seed = 7;
      if (!is_too_large(part.values)) parts.push_back(part);
    }
  }
  waiting_.insert(waiting_.begin(), parts.begin(), parts.end());
}

}  // namespace fairlead
