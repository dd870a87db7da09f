// The comparison loops. Elements are taken in chunks: loaded (converted where they are
// low-precision floats), then compared by one of
//   1. finite floats: lanes of maxima and sums, which compilers vectorise;
//   2. floats of a chunk with a NaN, an infinity or a difference that overflows: one by one;
//   3. integers: one by one in exact arithmetic.
#include "fairlead/verify/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/verify/low_precision.h"

namespace fairlead {
namespace {

constexpr std::size_t kChunk = 1024;
constexpr std::size_t kLanes = 16;

// Finds the scale of the values that are expected.
class Scale {
 public:
  template <typename T>
  void add(const T* values, std::size_t count) {
    T lanes[kLanes] = {};
    const std::size_t whole = count / kLanes * kLanes;
    for (std::size_t i = 0; i < whole; i += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        const T size = std::fabs(values[i + l]);
        lanes[l] = size > lanes[l] ? size : lanes[l];
      }
    }
    for (std::size_t i = whole; i < count; ++i) {
      const T size = std::fabs(values[i]);
      lanes[0] = size > lanes[0] ? size : lanes[0];
    }
    const auto largest = static_cast<double>(*std::max_element(lanes, lanes + kLanes));
    if (largest < kLeastFill) {
      has_other_ = has_other_ || count > 0;
      other_ = std::max(other_, largest);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {  // one by one: few outputs have such values
      const auto value = static_cast<double>(values[i]);
      if (!std::isfinite(value)) continue;
      const bool fills = value <= -kLeastFill;
      has_other_ = has_other_ || !fills;
      double& of = fills ? fills_[std::ilogb(value)] : other_;
      of = std::max(of, std::fabs(value));
    }
  }

  [[nodiscard]] double find(double smallest) {
    while (!fills_.empty()) {
      const auto top = std::prev(fills_.end());
      const bool alone = top == fills_.begin();
      const double rest = std::max(other_, alone ? 0 : std::prev(top)->second);
      if ((alone && !has_other_) || rest * kFillRatio >= std::ldexp(1.0, top->first)) {
        return std::max(rest, top->second);
      }
      smallest = 1;  // of what a mask leaves nothing may be known but zeros
      fills_.erase(top);
    }
    return std::max(other_, smallest);
  }

 private:
  static constexpr double kLeastFill = 1000;
  static constexpr double kFillRatio = 32;
  double other_ = 0;             // the largest that fills no mask
  bool has_other_ = false;       // there is one, be it zero
  std::map<int, double> fills_;  // what may fill one: the largest of each power of two
};

class Comparer {
 public:
  Comparer(std::span<const double> thresholds, double scale) : thresholds_(thresholds) {
    result_.over.assign(thresholds.size(), 0);
    result_.scale = scale;
  }

  template <typename T>
  void add_floats(const T* expected, const T* got, std::size_t count) {
    if (!add_finite(expected, got, count)) {
      for (std::size_t i = 0; i < count; ++i) add_float(expected[i], got[i], i);
    }
    done_ += static_cast<std::int64_t>(count);
  }

  template <typename T>
  void add_integers(const T* expected, const T* got, std::size_t count) {
    if (std::memcmp(expected, got, count * sizeof(T)) != 0) {
      for (std::size_t i = 0; i < count; ++i) {
        if (expected[i] == got[i]) continue;
        // The distance of two integers always fits the unsigned type of their size.
        using Unsigned = std::make_unsigned_t<T>;
        const auto high = static_cast<Unsigned>(std::max(expected[i], got[i]));
        const auto low = static_cast<Unsigned>(std::min(expected[i], got[i]));
        ++result_.differing;
        add_difference(static_cast<double>(static_cast<Unsigned>(high - low)),
                       std::fabs(static_cast<double>(expected[i])), i);
      }
    }
    done_ += static_cast<std::int64_t>(count);
  }

  [[nodiscard]] Comparison finish(std::int64_t parts) {
    result_.count = done_ / parts;
    result_.worst_index = first_mismatch_ >= 0 ? first_mismatch_ : worst_;
    if (result_.worst_index >= 0) result_.worst_index /= parts;
    return std::move(result_);
  }

 private:
  // False, and nothing added, where a difference is not finite.
  template <typename T>
  bool add_finite(const T* expected, const T* got, std::size_t count) {
    T difference[kChunk];
    const T scale = static_cast<T>(result_.scale);
    T abs[kLanes] = {}, scaled[kLanes] = {}, rel[kLanes] = {}, total[kLanes] = {};
    const std::size_t whole = count / kLanes * kLanes;
    for (std::size_t i = 0; i < whole; i += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        const T size = std::fabs(expected[i + l]);
        const T d = std::fabs(got[i + l] - expected[i + l]);
        const T s = d / (size > scale ? size : scale);
        const T r = d / (size + T(1e-3));
        difference[i + l] = d;
        total[l] += d;  // at most kChunk / kLanes terms, so the rounding does not add up
        abs[l] = d > abs[l] ? d : abs[l];
        scaled[l] = s > scaled[l] ? s : scaled[l];
        rel[l] = r > rel[l] ? r : rel[l];
      }
    }
    for (std::size_t i = whole; i < count; ++i) {
      const T size = std::fabs(expected[i]);
      difference[i] = std::fabs(got[i] - expected[i]);
      total[0] += difference[i];
      abs[0] = std::max(abs[0], difference[i]);
      scaled[0] = std::max(scaled[0], difference[i] / std::max(size, scale));
      rel[0] = std::max(rel[0], difference[i] / (size + T(1e-3)));
    }
    // The sums show what the maxima hide: comparing with NaN is always false.
    double sum = 0;
    for (std::size_t l = 0; l < kLanes; ++l) sum += static_cast<double>(total[l]);
    if (!std::isfinite(sum)) return false;

    const T largest = *std::max_element(abs, abs + kLanes);
    if (largest == T(0)) return true;
    result_.sum_abs += sum;
    take_max(result_.max_scaled, *std::max_element(scaled, scaled + kLanes));
    take_max(result_.max_rel, *std::max_element(rel, rel + kLanes));
    if (static_cast<double>(largest) > result_.max_abs) {
      result_.max_abs = static_cast<double>(largest);
      worst_ = done_ + (std::find(difference, difference + count, largest) - difference);
    }
    for (std::size_t k = 0; k < thresholds_.size(); ++k) {
      if (!(static_cast<double>(largest) > thresholds_[k])) continue;
      std::int64_t over = 0;
      for (std::size_t i = 0; i < count; ++i) {
        over += static_cast<double>(difference[i]) > thresholds_[k] ? 1 : 0;
      }
      result_.over[k] += over;
    }
    return true;
  }

  template <typename T>
  void add_float(T expected, T got, std::size_t index) {
    if (expected == got || (std::isnan(expected) && std::isnan(got))) return;
    const bool nan = std::isnan(expected) || std::isnan(got);
    if (nan || std::isinf(expected) || std::isinf(got)) {
      ++(nan ? result_.nan_mismatch : result_.inf_mismatch);
      if (first_mismatch_ < 0) first_mismatch_ = done_ + static_cast<std::int64_t>(index);
      for (std::int64_t& over : result_.over) ++over;
      return;
    }
    const double reference = static_cast<double>(expected);
    add_difference(std::fabs(static_cast<double>(got) - reference), std::fabs(reference), index);
  }

  void add_difference(double difference, double size, std::size_t index) {
    result_.sum_abs += difference;
    take_max(result_.max_scaled, difference / std::max(size, result_.scale));
    take_max(result_.max_rel, difference / (size + 1e-3));
    if (difference > result_.max_abs) {
      result_.max_abs = difference;
      worst_ = done_ + static_cast<std::int64_t>(index);
    }
    for (std::size_t k = 0; k < thresholds_.size(); ++k) {
      if (difference > thresholds_[k]) ++result_.over[k];
    }
  }

  template <typename T>
  static void take_max(double& largest, T value) {
    largest = std::max(largest, static_cast<double>(value));
  }

  std::span<const double> thresholds_;
  Comparison result_;
  std::int64_t done_ = 0;
  std::int64_t worst_ = -1;
  std::int64_t first_mismatch_ = -1;
};

// Chunks of `Stored` elements, each made a `T` by `convert`, to `add`.
template <typename Stored, typename T, typename Convert, typename Add>
void in_chunks(std::span<const std::byte> expected, std::span<const std::byte> got, Convert convert,
               Add add) {
  Stored stored[kChunk];
  T left[kChunk], right[kChunk];
  const std::size_t total = expected.size() / sizeof(Stored);
  for (std::size_t start = 0; start < total; start += kChunk) {
    const std::size_t count = std::min(kChunk, total - start);
    std::memcpy(stored, expected.data() + start * sizeof(Stored), count * sizeof(Stored));
    for (std::size_t i = 0; i < count; ++i) left[i] = convert(stored[i]);
    std::memcpy(stored, got.data() + start * sizeof(Stored), count * sizeof(Stored));
    for (std::size_t i = 0; i < count; ++i) right[i] = convert(stored[i]);
    add(left, right, count);
  }
}

// Chunks of elements of `dtype`, as floats or as integers.
template <typename Floats, typename Integers>
void for_chunks(Dtype dtype, std::span<const std::byte> expected, std::span<const std::byte> got,
                Floats floats, Integers integers) {
  const auto same = [](auto value) { return value; };
  const auto float8 = [&](Dtype type) {
    const std::span<const float, 256> table = float8_values(type);
    in_chunks<std::uint8_t, float>(
        expected, got, [table](std::uint8_t code) { return table[code]; }, floats);
  };
  const auto plain_floats = [&]<typename T>(T) { in_chunks<T, T>(expected, got, same, floats); };
  const auto plain_ints = [&]<typename T>(T) { in_chunks<T, T>(expected, got, same, integers); };
  const auto is_set = [](std::uint8_t value) { return static_cast<std::uint8_t>(value != 0); };

  switch (dtype) {
    case Dtype::kFloat32:
    case Dtype::kComplex64:
      plain_floats(float{});
      break;
    case Dtype::kFloat64:
    case Dtype::kComplex128:
      plain_floats(double{});
      break;
    case Dtype::kFloat16:
      in_chunks<std::uint16_t, float>(expected, got, float16_to_float, floats);
      break;
    case Dtype::kBfloat16:
      in_chunks<std::uint16_t, float>(expected, got, bfloat16_to_float, floats);
      break;
    case Dtype::kFloat8E4m3fn:
    case Dtype::kFloat8E4m3fnuz:
    case Dtype::kFloat8E5m2:
    case Dtype::kFloat8E5m2fnuz:
      float8(dtype);
      break;
    case Dtype::kUint8:
      plain_ints(std::uint8_t{});
      break;
    case Dtype::kInt8:
      plain_ints(std::int8_t{});
      break;
    case Dtype::kUint16:
      plain_ints(std::uint16_t{});
      break;
    case Dtype::kInt16:
      plain_ints(std::int16_t{});
      break;
    case Dtype::kUint32:
      plain_ints(std::uint32_t{});
      break;
    case Dtype::kInt32:
      plain_ints(std::int32_t{});
      break;
    case Dtype::kUint64:
      plain_ints(std::uint64_t{});
      break;
    case Dtype::kInt64:
      plain_ints(std::int64_t{});
      break;
    case Dtype::kBool:
      in_chunks<std::uint8_t, std::uint8_t>(expected, got, is_set, integers);
      break;
  }
}

void check_sizes(Dtype dtype, std::span<const std::byte> expected, std::span<const std::byte> got) {
  if (expected.size() == got.size() && expected.size() % dtype_size(dtype) == 0) return;
  throw Error(ErrorCode::kInvalidInput,
              "[compare_buffers] Expected two buffers of the same whole number of " +
                  std::string(dtype_name(dtype)) + " elements, got " +
                  std::to_string(expected.size()) + " and " + std::to_string(got.size()) +
                  " bytes.");
}

// Calls `found` with the position of every element that differs, and by how much.
template <typename Found>
void for_differing(Dtype dtype, std::span<const std::byte> expected, std::span<const std::byte> got,
                   Found found) {
  std::int64_t done = 0;
  const auto add = [&](const auto* a, const auto* b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
      if (a[i] == b[i] || (std::isnan(x) && std::isnan(y))) continue;
      const double apart = std::fabs(x - y);
      found(done + static_cast<std::int64_t>(i),
            std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
    }
    done += static_cast<std::int64_t>(count);
  };
  for_chunks(dtype, expected, got, add, add);
}

}  // namespace

TiedElements tied_elements(Dtype dtype, std::span<const std::byte> expected,
                           std::span<const std::byte> got,
                           std::span<const std::span<const std::byte>> others, double limit,
                           std::int64_t most) {
  check_sizes(dtype, expected, got);
  const std::size_t parts = is_complex(dtype) ? 2 : 1;
  TiedElements result;
  result.count = static_cast<std::int64_t>(expected.size() / dtype_size(dtype) * parts);
  std::unordered_map<std::int64_t, std::pair<double, double>> elements;  // the file's, eager's own
  for_differing(dtype, expected, got, [&](std::int64_t position, double apart) {
    if (!(apart > limit)) return;
    if (++result.apart <= most) elements[position] = {apart, 0};
  });
  if (result.apart > most) return result;
  for (const std::span<const std::byte> other : others) {
    check_sizes(dtype, expected, other);
    for_differing(dtype, expected, other, [&](std::int64_t position, double apart) {
      const auto found = elements.find(position);
      if (found != elements.end()) found->second.second = std::max(found->second.second, apart);
    });
  }
  for (const auto& [position, apart] : elements) {
    const auto [file, own] = apart;
    result.moved = std::max(result.moved, own);
    const bool known = own > 0 && std::isfinite(file);
    result.ratio =
        std::max(result.ratio, known ? file / own : std::numeric_limits<double>::infinity());
  }
  return result;
}

Comparison compare_buffers(Dtype dtype, std::span<const std::byte> expected,
                           std::span<const std::byte> got, std::span<const double> thresholds) {
  check_sizes(dtype, expected, got);
  Scale scale;
  const bool exact = !is_float(dtype) && !is_complex(dtype);
  if (!exact) {
    for_chunks(
        dtype, expected, expected,
        [&](const auto* values, const auto*, std::size_t n) { scale.add(values, n); },
        [](const auto*, const auto*, std::size_t) {});
  }
  Comparer comparer(thresholds, exact ? 1 : scale.find(std::numeric_limits<float>::min()));
  for_chunks(
      dtype, expected, got,
      [&](const auto* a, const auto* b, std::size_t n) { comparer.add_floats(a, b, n); },
      [&](const auto* a, const auto* b, std::size_t n) { comparer.add_integers(a, b, n); });
  return comparer.finish(is_complex(dtype) ? 2 : 1);
}

}  // namespace fairlead
