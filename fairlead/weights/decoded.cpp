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

std::vector<std::byte> read_rows(const ByteRows& rows, const ReadRows& read) {
  std::vector<std::byte> made(static_cast<std::size_t>(rows.width * rows.count));
  if (!made.empty()) read(rows, made);
  return made;
}

TableTensor::TableTensor(CodeBlocks blocks, std::vector<std::vector<std::byte>> held)
    : held_(std::move(held)), blocks_(std::move(blocks)) {
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
  across_ = divided_up(b.skipped_columns + b.columns, b.block_columns);
  const std::int64_t scales = divided_up(b.skipped_rows + b.rows, b.block_rows) * across_;
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
    const std::int64_t across = (column + b.skipped_columns) / b.block_columns;
    const float scale = b.scales.at((row + b.skipped_rows) / b.block_rows * across_ + across);
    const std::int64_t end =
        std::min(b.columns, (across + 1) * b.block_columns - b.skipped_columns);
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

// Whole bytes: where a row has half of one, rows are taken as they are, two at a time.
Rectangle TableTensor::around(const Rectangle& wanted) const {
  const std::int64_t in_byte = 8 / blocks_.bits;
  const bool halves = columns() % in_byte != 0;
  const std::int64_t row = halves ? wanted.row / in_byte * in_byte : wanted.row;
  const std::int64_t row_end = wanted.row + wanted.rows;
  const std::int64_t rows_end =
      halves ? std::min(rows(), divided_up(row_end, in_byte) * in_byte) : row_end;
  const std::int64_t column = halves ? 0 : wanted.column / in_byte * in_byte;
  const std::int64_t column_end =
      halves ? columns() : divided_up(wanted.column + wanted.columns, in_byte) * in_byte;
  return {row, rows_end - row, column, column_end - column};
}

std::unique_ptr<DecodedTensor> TableTensor::taken_out(const Rectangle& wanted,
                                                      const ReadRows& read) const {
  const CodeBlocks& b = blocks_;
  const std::int64_t in_byte = 8 / b.bits;
  CodeBlocks made = b;
  made.rows = wanted.rows;
  made.columns = wanted.columns;
  const std::int64_t row = wanted.row + b.skipped_rows, column = wanted.column + b.skipped_columns;
  const std::int64_t high = row / b.block_rows, wide = column / b.block_columns;
  made.skipped_rows = row % b.block_rows;
  made.skipped_columns = column % b.block_columns;
  const auto size = static_cast<std::int64_t>(dtype_size(b.scales.dtype));
  std::vector<std::vector<std::byte>> held;
  if (wanted.columns == b.columns) {
    const std::int64_t bytes = wanted.rows * b.columns / in_byte;
    held.push_back(read_rows({b.codes, wanted.row * b.columns / in_byte, bytes, bytes, 1}, read));
  } else {
    held.push_back(read_rows({b.codes, (wanted.row * b.columns + wanted.column) / in_byte,
                              b.columns / in_byte, wanted.columns / in_byte, wanted.rows},
                             read));
  }
  held.push_back(read_rows({b.scales.data, (high * across_ + wide) * size, across_ * size,
                            (divided_up(column + wanted.columns, b.block_columns) - wide) * size,
                            divided_up(row + wanted.rows, b.block_rows) - high},
                           read));
  made.codes = held[0];
  made.scales.data = held[1];
  return std::make_unique<TableTensor>(std::move(made), std::move(held));
}

}  // namespace fairlead
