// Rounding to the nearest, with a search for the scale of each block.
#include "fairlead/quant/blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "fairlead/base/error.h"
#include "fairlead/base/parallel.h"

namespace fairlead::quant {
namespace {

struct Levels {
  float scale = 0;
  float inverse = 0;
  int zero = 0;
};

Levels with_scale(float scale, int zero) { return {scale, scale == 0 ? 0 : 1 / scale, zero}; }

// The nearest level; the lowest for what is no number. Loops over it have no calls and no branches:
// compilers make vectors of them.
int level(float x, const Levels& levels, float most) {
  const float place = x * levels.inverse + (static_cast<float>(levels.zero) + 0.5F);
  return static_cast<int>(std::min(std::max(0.0F, place), most + 0.5F));
}

// Blocks are short: float has room for their sums.
float error_of(const float* x, std::size_t count, const Levels& levels, float most) {
  float sum = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const float back = levels.scale * static_cast<float>(level(x[k], levels, most) - levels.zero);
    sum += (x[k] - back) * (x[k] - back);
  }
  return sum;
}

// The scale with the least squared error for the integers that a scale gives: least squares.
Levels refined(const float* x, std::size_t count, const Levels& levels, float most) {
  float xq = 0, qq = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const auto q = static_cast<float>(level(x[k], levels, most) - levels.zero);
    xq += x[k] * q;
    qq += q * q;
  }
  const float scale = qq == 0 ? 0 : xq / qq;
  return std::isfinite(scale) && scale != 0 ? with_scale(scale, levels.zero) : levels;
}

// The best of these, then of what least squares makes of it.
template <typename At>
Levels searched(const float* x, std::size_t count, float most, int first, int last, const At& at) {
  Levels best = at(0);
  float least = error_of(x, count, best, most);
  const auto keep = [&](const Levels& tried) {
    const float error = error_of(x, count, tried, most);
    if (!(error < least)) return false;
    least = error;
    best = tried;
    return true;
  };
  for (int step = first; step <= last; ++step) {
    if (step != 0) keep(at(step));
  }
  if (keep(refined(x, count, best, most))) keep(refined(x, count, best, most));
  return best;
}

// The number of the largest magnitude is the lowest level, of which there is one more than above.
Levels symmetric_levels(const float* x, std::size_t count, const Format& format) {
  const int half = 1 << (format.bits - 1);
  float largest = 0;
  for (std::size_t k = 0; k < count; ++k) {
    if (std::abs(x[k]) > std::abs(largest)) largest = x[k];
  }
  if (largest == 0) return {0, 0, half};
  const auto at = [&](int step) {
    return with_scale(largest / (0.2F * static_cast<float>(step) - static_cast<float>(half)), half);
  };
  if (!format.search) return at(0);
  return searched(x, count, static_cast<float>(2 * half - 1), -5, 5, at);
}

Levels levels_with_zero(const float* x, std::size_t count, const Format& format) {
  const int most = (1 << format.bits) - 1;
  float low = 0, high = 0;  // zero stays exact
  for (std::size_t k = 0; k < count; ++k) {
    low = std::min(low, x[k]);
    high = std::max(high, x[k]);
  }
  if (low == high) return {0, 0, 1 << (format.bits - 1)};
  const auto at = [&](int step) {
    const float shrink = 1 - 0.04F * static_cast<float>(step);
    const float scale = shrink * (high - low) / static_cast<float>(most);
    const int zero = std::clamp(static_cast<int>(std::lround(-shrink * low / scale)), 0, most);
    return with_scale(scale, zero);
  };
  if (!format.search) return at(0);
  return searched(x, count, static_cast<float>(most), 0, 8, at);
}

class Packer {
 public:
  Packer(const Matrix& matrix, const Format& format, Packed& packed)
      : matrix_(matrix), format_(format), packed_(packed) {}

  // Adds up what it lost, and what there was.
  void rows(std::int64_t from, std::int64_t to, double& lost, double& size) const {
    std::vector<float> row(static_cast<std::size_t>(matrix_.columns));
    for (std::int64_t r = from; r < to; ++r) {
      const float* start = matrix_.data + r * matrix_.row_stride;
      for (std::int64_t c = 0; c < matrix_.columns; ++c) {
        row[static_cast<std::size_t>(c)] = start[c * matrix_.column_stride];
      }
      for (std::int64_t b = 0; b < packed_.blocks; ++b) put_block(row, r, b, lost, size);
    }
  }

 private:
  void put_block(const std::vector<float>& row, std::int64_t r, std::int64_t b, double& lost,
                 double& size) const {
    const std::int64_t first = b * format_.block;
    const auto count =
        static_cast<std::size_t>(std::min<std::int64_t>(format_.block, matrix_.columns - first));
    const float* x = row.data() + first;
    const auto most = static_cast<float>((1 << format_.bits) - 1);
    const Levels levels = format_.symmetric ? symmetric_levels(x, count, format_)
                                            : levels_with_zero(x, count, format_);
    const std::int64_t place = r * packed_.blocks + b;
    std::memcpy(packed_.scales->data() + place * std::int64_t{sizeof(float)}, &levels.scale,
                sizeof(float));
    std::byte* out = packed_.values->data() + place * (format_.block * format_.bits / 8);
    for (std::size_t k = 0; k < static_cast<std::size_t>(format_.block); ++k) {
      const int q = k < count ? level(x[k], levels, most) : levels.zero;
      put(out, k, q);
    }
    if (packed_.zero_points) {
      const std::int64_t row_bytes = (packed_.blocks * format_.bits + 7) / 8;
      put(packed_.zero_points->data() + r * row_bytes, static_cast<std::size_t>(b), levels.zero);
    }
    lost += static_cast<double>(error_of(x, count, levels, most));
    for (std::size_t k = 0; k < count; ++k) {
      size += static_cast<double>(x[k]) * static_cast<double>(x[k]);
    }
  }

  void put(std::byte* out, std::size_t k, int q) const { put_integer(out, k, q, format_.bits); }

  const Matrix& matrix_;
  const Format& format_;
  Packed& packed_;
};

int get(const std::byte* in, std::size_t k, int bits) {
  const int byte = std::to_integer<int>(in[bits == 8 ? k : k / 2]);
  return bits == 8 ? byte : k % 2 == 0 ? byte & 15 : byte >> 4;
}

}  // namespace

void check_format(const Format& format) {
  if (format.bits != 4 && format.bits != 8) {
    throw Error(ErrorCode::kInvalidInput,
                "[quantize] Expected 4 or 8 bits, got " + std::to_string(format.bits) + ".");
  }
  if (format.block < 16 || format.block > 256 ||
      !std::has_single_bit(static_cast<unsigned>(format.block))) {
    throw Error(ErrorCode::kInvalidInput,
                "[quantize] Expected a block of 16, 32, 64, 128 or 256 elements, got " +
                    std::to_string(format.block) + ".");
  }
}

double Packed::relative_error() const {
  return squared_size == 0 ? 0 : std::sqrt(squared_error / squared_size);
}

Packed pack(const Matrix& matrix, const Format& format, unsigned threads) {
  check_format(format);
  Packed packed;
  packed.rows = matrix.rows;
  packed.columns = matrix.columns;
  packed.blocks = (matrix.columns + format.block - 1) / format.block;
  const auto bytes = [](std::int64_t count) {
    return std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(count));
  };
  packed.values = bytes(packed.rows * packed.blocks * format.block * format.bits / 8);
  packed.scales = bytes(packed.rows * packed.blocks * std::int64_t{sizeof(float)});
  if (!format.symmetric) {
    packed.zero_points = bytes(packed.rows * ((packed.blocks * format.bits + 7) / 8));
  }
  const Packer packer(matrix, format, packed);
  std::vector<double> lost(std::max(threads, 1U)), size(lost.size());
  in_threads(threads, packed.rows, [&](std::int64_t from, std::int64_t to, std::size_t share) {
    packer.rows(from, to, lost[share], size[share]);
  });
  for (std::size_t k = 0; k < lost.size(); ++k) {
    packed.squared_error += lost[k];
    packed.squared_size += size[k];
  }
  return packed;
}

std::vector<float> unpack(const Packed& packed, const Format& format) {
  std::vector<float> made(static_cast<std::size_t>(packed.rows * packed.columns));
  const std::int64_t row_bytes = (packed.blocks * format.bits + 7) / 8;
  for (std::int64_t r = 0; r < packed.rows; ++r) {
    for (std::int64_t c = 0; c < packed.columns; ++c) {
      const std::int64_t b = c / format.block, place = r * packed.blocks + b;
      float scale = 0;
      std::memcpy(&scale, packed.scales->data() + place * std::int64_t{sizeof(float)},
                  sizeof(float));
      const int zero = packed.zero_points ? get(packed.zero_points->data() + r * row_bytes,
                                                static_cast<std::size_t>(b), format.bits)
                                          : 1 << (format.bits - 1);
      const std::byte* in = packed.values->data() + place * (format.block * format.bits / 8);
      const int q = get(in, static_cast<std::size_t>(c % format.block), format.bits);
      float offset = 0;
      if (packed.offsets) {
        std::memcpy(&offset, packed.offsets->data() + place * std::int64_t{sizeof(float)},
                    sizeof(float));
      }
      made[static_cast<std::size_t>(r * packed.columns + c)] =
          scale * static_cast<float>(q - zero) + offset;
    }
  }
  return made;
}

}  // namespace fairlead::quant
