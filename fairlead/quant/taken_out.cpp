// Takes rectangles out of stored matrices: what they are made of is copied, and is a matrix of the
// same format. Columns begin and end with a block, rows with a word, where words have several.
#include <algorithm>

#include "fairlead/base/error.h"
#include "fairlead/quant/stored.h"

namespace fairlead::quant {
namespace {

using Bytes = std::vector<std::byte>;

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Groups {
  std::int64_t first = 0, count = 0;
};

Groups groups_of(const StoredMatrix& m, const Rectangle& r) {
  const std::int64_t first = (r.column + m.skipped) / m.group;
  return {first, up(r.column + m.skipped + r.columns, m.group) - first};
}

std::int64_t scale_size(const StoredMatrix& m) {
  return static_cast<std::int64_t>(dtype_size(m.scales.dtype));
}

// Tensors [groups, rows] and [rows, groups] of elements of so many bits.
Bytes by_column(const StoredMatrix& m, std::span<const std::byte> of, const Rectangle& r,
                std::int64_t bits, const ReadRows& read) {
  const Groups g = groups_of(m, r);
  return read_rows(
      {of, (g.first * m.rows + r.row) * bits / 8, m.rows * bits / 8, r.rows * bits / 8, g.count},
      read);
}

Bytes by_row(const StoredMatrix& m, std::span<const std::byte> of, std::int64_t row,
             std::int64_t rows, const Rectangle& r, std::int64_t bytes, const ReadRows& read) {
  const Groups g = groups_of(m, r);
  return read_rows(
      {of, (row * m.groups + g.first) * bytes, m.groups * bytes, g.count * bytes, rows}, read);
}

// As bytes, each with one integer.
Bytes halves(const StoredMatrix& m, const Rectangle& r, const ReadRows& read) {
  const Groups g = groups_of(m, r);
  const std::int64_t half = m.format->bits == 8 ? m.rows * m.groups : m.rows * m.groups / 2;
  Bytes made;
  made.reserve(static_cast<std::size_t>(r.rows * g.count * m.group));
  for (std::int64_t row = r.row; row < r.row + r.rows; ++row) {
    const std::int64_t end = row * m.groups + g.first + g.count;
    for (std::int64_t at = row * m.groups + g.first; at < end;) {
      const bool high = at < half;
      const std::int64_t some = (high ? std::min(end, half) : end) - at;
      const std::int64_t first = (high ? at : at - half) * m.group, bytes = some * m.group;
      for (const std::byte each : read_rows({m.data, first, bytes, bytes, 1}, read)) {
        made.push_back(m.format->bits == 8 ? each : high ? each >> 4 : each & std::byte{15});
      }
      at += some;
    }
  }
  return made;
}

}  // namespace

Rectangle DecodedMatrix::around(const Rectangle& wanted) const {
  const StoredMatrix& m = matrix_;
  const bool whole = m.format->layout == Layout::kWhole;
  const std::int64_t high = 32 / m.format->bits, wide = whole ? m.columns : m.block;
  const std::int64_t row = wanted.row / high * high, column = wanted.column / wide * wide;
  return {row, std::min(m.rows, up(wanted.row + wanted.rows, high) * high) - row, column,
          up(wanted.column + wanted.columns, wide) * wide - column};
}

std::unique_ptr<DecodedTensor> DecodedMatrix::taken_out(const Rectangle& r,
                                                        const ReadRows& read) const {
  const StoredMatrix& m = matrix_;
  const std::int64_t bits = m.format->bits, in_word = 32 / bits, size = scale_size(m);
  StoredMatrix made = m;
  made.rows = r.rows;
  made.columns = r.columns;
  made.groups = groups_of(m, r).count;
  made.skipped = (r.column + m.skipped) % m.group;
  Bytes data, scales, zeros;
  switch (m.format->layout) {
    case Layout::kWordsAcross:
      data = read_rows({m.data, (r.column / in_word * m.rows + r.row) * 4, m.rows * 4, r.rows * 4,
                        r.columns / in_word},
                       read);
      break;
    case Layout::kAcross:
      data = read_rows({m.data, (r.column * m.rows + r.row) * bits / 8, m.rows * bits / 8,
                        r.rows * bits / 8, r.columns},
                       read);
      break;
    case Layout::kRows:
      data = read_rows({m.data, (r.row * m.columns + r.column) * bits / 8, m.columns * bits / 8,
                        r.columns * bits / 8, r.rows},
                       read);
      break;
    case Layout::kHalves:
      data = halves(m, r, read);
      made.format = &*std::ranges::find(group_formats(), "HQQ 8 bits", &StoredFormat::name);
      break;
    case Layout::kWhole: {
      const std::int64_t bytes = static_cast<std::int64_t>(m.data.size()) / m.rows * r.rows;
      data = read_rows({m.data, bytes / r.rows * r.row, bytes, bytes, 1}, read);
      break;
    }
  }
  switch (m.format->layout) {
    case Layout::kWordsAcross:
    case Layout::kAcross:
      scales = by_column(m, m.scales.data, r, size * 8, read);
      zeros = by_column(m, m.zeros, r, bits, read);
      break;
    case Layout::kRows:
      scales = by_row(m, m.scales.data, r.row, r.rows, r, size, read);
      if (!m.zeros.empty()) {
        zeros = by_row(m, m.zeros, r.row / in_word, up(r.rows, in_word), r, 4, read);
      }
      break;
    case Layout::kHalves:
      scales = by_row(m, m.scales.data, r.row, r.rows, r, size, read);
      zeros = by_row(m, m.zeros, r.row, r.rows, r, size, read);
      break;
    case Layout::kWhole:
      break;
  }
  made.data = data;
  made.scales.data = scales;
  made.zeros = zeros;
  std::vector<Bytes> held;
  held.push_back(std::move(data));
  held.push_back(std::move(scales));
  held.push_back(std::move(zeros));
  return std::make_unique<DecodedMatrix>(std::move(made), std::move(held));
}

}  // namespace fairlead::quant
