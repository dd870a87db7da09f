// Looks codes up and scales them.
#include "fairlead/weights/decoded.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/base/half.h"

namespace fairlead {
namespace {

constexpr int kExponentBias = 127;

template <typename Kept>
Kept kept_at(std::span<const std::byte> data, std::int64_t k) {
  Kept found;
  std::memcpy(&found, data.data() + static_cast<std::size_t>(k) * sizeof(found), sizeof(found));
  return found;
}

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

void check(bool holds, const std::string& what, std::int64_t wanted, std::size_t got) {
  if (holds) return;
  throw Error(ErrorCode::kInvalidInput, "[export] Expected " + std::to_string(wanted) + " " + what +
                                            ", got " + std::to_string(got) +
                                            ". Check that the files are complete.");
}

}  // namespace

std::int64_t CodeScales::count() const {
  return static_cast<std::int64_t>(data.size() / dtype_size(dtype));
}

float CodeScales::at(std::int64_t k) const {
  switch (dtype) {
    case Dtype::kFloat32:
      return kept_at<float>(data, k);
    case Dtype::kFloat16:
      return float16_to_float(kept_at<std::uint16_t>(data, k));
    case Dtype::kBfloat16:
      return bfloat16_to_float(kept_at<std::uint16_t>(data, k));
    default:
      return std::ldexp(1.0f,
                        std::to_integer<int>(data[static_cast<std::size_t>(k)]) - kExponentBias);
  }
}

TableTensor::TableTensor(CodeBlocks blocks) : blocks_(std::move(blocks)) {
  const CodeBlocks& b = blocks_;
  FAIRLEAD_CHECK((b.bits == 4 || b.bits == 8) && b.table.size() == std::size_t{1} << b.bits,
                 "a table of another size than its codes ask for");
  FAIRLEAD_CHECK(b.block_rows > 0 && b.block_columns > 0 && b.rows >= 0 && b.columns >= 0,
                 "blocks without elements");
  std::int64_t elements = 0;
  const auto bytes = static_cast<std::int64_t>(b.codes.size());
  const bool fits = !__builtin_mul_overflow(b.rows, b.columns, &elements) &&
                    elements / (8 / b.bits) == bytes && elements % (8 / b.bits) == 0;
  check(fits, "bytes of codes", elements / (8 / b.bits), b.codes.size());
  across_ = divided_up(b.columns, b.block_columns);
  const std::int64_t scales = divided_up(b.rows, b.block_rows) * across_;
  check(b.scales.count() == scales, "scales", scales, static_cast<std::size_t>(b.scales.count()));
}

void TableTensor::decode(std::int64_t first, std::span<float> out) const {
  FAIRLEAD_CHECK(first >= 0 && static_cast<std::int64_t>(out.size()) <= count() - first,
                 "elements beyond the tensor");
  const CodeBlocks& b = blocks_;
  const float* const table = b.table.data();
  for (std::size_t done = 0; done < out.size();) {
    const std::int64_t at = first + static_cast<std::int64_t>(done);
    const std::int64_t row = at / b.columns, column = at % b.columns;
    const float scale = b.scales.at(row / b.block_rows * across_ + column / b.block_columns);
    const std::int64_t end = std::min(b.columns, (column / b.block_columns + 1) * b.block_columns);
    const auto some = std::min(out.size() - done, static_cast<std::size_t>(end - column));
    for (std::size_t k = 0; k < some; ++k) {
      const auto element = static_cast<std::size_t>(at) + k;
      const auto code =
          b.bits == 8 ? std::to_integer<unsigned>(b.codes[element])
                      : std::to_integer<unsigned>(b.codes[element / 2]) >> (element % 2 * 4) & 15u;
      out[done + k] = table[code] * scale;
    }
    done += some;
  }
}

}  // namespace fairlead
