// Reads parts of files, and decodes what they stand for.
#include "fairlead/weights/part_reader.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>

#include "fairlead/base/error.h"
#include "fairlead/base/parallel.h"

namespace fairlead {
namespace {

constexpr std::int64_t kSlabBytes = 16 << 20;
// Of small numbers that are copied at once, and rows of them: a row of a word each is some
// kilobytes apart from the next column's then, and not a power of two, which one set of a cache
// would have to hold.
constexpr std::int64_t kTakenElements = 16 << 20;
constexpr std::int64_t kMostRows = 1000;
constexpr std::int64_t kFewElements = 1 << 20;

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// Without axes of one element; two that follow each other without a gap are one.
void simplify(StoredPart& part) {
  std::vector<std::int64_t> dims, strides;
  for (std::size_t k = 0; k < part.dims.size(); ++k) {
    FAIRLEAD_CHECK(part.dims[k] == 1 || part.strides[k] > 0, "an element in several places");
    if (part.dims[k] == 1) continue;
    if (!dims.empty() && strides.back() == part.dims[k] * part.strides[k]) {
      dims.back() *= part.dims[k];
      strides.back() = part.strides[k];
    } else {
      dims.push_back(part.dims[k]);
      strides.push_back(part.strides[k]);
    }
  }
  if (dims.empty()) {
    dims = {1};
    strides = {1};
  }
  part.dims = std::move(dims);
  part.strides = std::move(strides);
}

}  // namespace

PartReader::PartReader(const WeightFolder& folder, const StoredPart& part, unsigned threads)
    : folder_(folder), part_(part), threads_(threads) {
  simplify(part_);
  size_ = static_cast<std::int64_t>(dtype_size(part_.dtype));
  count_ = product(part_.dims);
  first_ = part_.decoded != nullptr ? part_.offset / size_ : 0;
  const auto nearest = std::ranges::min_element(part_.strides);
  turned_ = static_cast<std::size_t>(nearest - part_.strides.begin());
  is_turned_ = turned_ + 1 < part_.dims.size();
}

std::int64_t PartReader::place_of(std::int64_t row) const {
  std::int64_t place = first_;
  for (std::size_t k = part_.dims.size() - 1; k-- > 0;) {
    place += row % part_.dims[k] * part_.strides[k];
    row /= part_.dims[k];
  }
  return place;
}

std::int64_t PartReader::prepare(std::int64_t from) {
  FAIRLEAD_CHECK(from >= 0 && from < count_, "elements beyond the part");
  begin_ = from;
  end_ = count_;
  if (is_turned_) {
    prepare_slab(from);
  } else if (part_.decoded != nullptr) {
    prepare_rows(from);
  }
  return end_;
}

// Rule 2: axes before the one of neighbours are fixed, and some places along that one.
void PartReader::prepare_slab(std::int64_t from) {
  const std::span<const std::int64_t> dims = part_.dims, strides = part_.strides;
  const std::int64_t behind = product(dims.subspan(turned_ + 1));
  const std::int64_t low = from / behind % dims[turned_], skipped = from % behind;
  // One place, and a part of what is behind it, where that alone is too much.
  const std::int64_t runs = std::min(behind - skipped, kSlabBytes / size_);
  wide_ = std::clamp<std::int64_t>(kSlabBytes / (behind * size_), 1, dims[turned_] - low);
  FAIRLEAD_CHECK(wide_ == 1 || runs == behind, "a slab that begins in the middle of another");
  end_ = from + wide_ * runs;
  std::int64_t base = first_ + low * strides[turned_], rest = from / behind / dims[turned_];
  for (std::size_t k = turned_; k-- > 0;) {
    base += rest % dims[k] * strides[k];
    rest /= dims[k];
  }
  const auto place = [&](std::int64_t run) {
    std::int64_t found = base, number = skipped + run;
    for (std::size_t k = dims.size(); k-- > turned_ + 1;) {
      found += number % dims[k] * strides[k];
      number /= dims[k];
    }
    return found;
  };
  if (part_.decoded != nullptr) {
    const std::int64_t columns = part_.decoded->columns();
    const std::int64_t span = (wide_ - 1) * strides[turned_] + 1, column = base % columns;
    const bool upright = column + span <= columns &&
                         std::ranges::all_of(strides.subspan(turned_ + 1),
                                             [&](std::int64_t s) { return s % columns == 0; });
    const std::int64_t row = place(0) / columns, end = (place(runs - 1) + span - 1) / columns + 1;
    // Several axes behind may begin anew between them.
    const bool forward = turned_ + 2 == dims.size() || runs == behind;
    const std::int64_t from_row = forward ? row : base / columns;
    const std::int64_t to_row = forward ? end : part_.decoded->rows();
    take_out(upright ? Rectangle{from_row, to_row - from_row, column, span}
                     : Rectangle{from_row, to_row - from_row, 0, columns});
  }
  slab_.resize(static_cast<std::size_t>(wide_ * runs * size_));
  in_threads(threads_, runs, [&](std::int64_t low_run, std::int64_t high_run, std::size_t) {
    for (std::int64_t k = low_run; k < high_run; ++k) {
      read({place(k), wide_, strides[turned_]}, slab_.data() + k * wide_ * size_);
    }
  });
  taken_.reset();
}

// Rule 3, of rows as they are.
void PartReader::prepare_rows(std::int64_t from) {
  const std::int64_t columns = part_.decoded->columns(), wide = part_.dims.back();
  const auto place = [&](std::int64_t element) {
    return place_of(element / wide) + element % wide * part_.strides.back();
  };
  const std::int64_t first = place(from) / columns;
  const std::int64_t most = std::clamp<std::int64_t>(kTakenElements / columns, 1,
                                                     std::max(kMostRows, kFewElements / columns)) *
                            columns;
  const std::int64_t limit = first * columns + most;  // an element that is not read any more
  // Places of rows of the part grow with their numbers, but where an axis begins anew.
  std::int64_t end = from, last = place(from);
  while (end < count_) {
    const std::int64_t next = std::min(count_, (end / wide + 1) * wide);
    const std::int64_t begins = place(end), ends = place(next - 1);
    if (begins < first * columns || begins >= limit) break;
    if (ends < limit) {
      last = std::max(last, ends);
      end = next;
      continue;
    }
    end += (limit - begins + part_.strides.back() - 1) / part_.strides.back();
    last = std::max(last, place(end - 1));
    break;
  }
  FAIRLEAD_CHECK(end > from, "rows that do not go on");
  end_ = end;
  take_out({first, last / columns - first + 1, 0, columns});
}

void PartReader::take_out(const Rectangle& wanted) {
  taken_.reset();
  rectangle_ = part_.decoded->around(wanted);
  taken_ = part_.decoded->taken_out(
      rectangle_,
      [&](const ByteRows& rows, std::span<std::byte> into) { folder_.read(rows, into); });
}

void PartReader::read_decoded(const Run& run, std::byte* into) const {
  const std::int64_t columns = part_.decoded->columns();
  const auto found = [&](std::int64_t place) {
    return (place / columns - rectangle_.row) * rectangle_.columns + place % columns -
           rectangle_.column;
  };
  if (run.step == 1) {  // their memory is that of floats: it was made for them
    return taken_->decode(found(run.place),
                          {reinterpret_cast<float*>(into), static_cast<std::size_t>(run.count)});
  }
  for (std::int64_t k = 0; k < run.count; ++k) {
    taken_->decode(found(run.place + k * run.step), {reinterpret_cast<float*>(into) + k, 1});
  }
}

void PartReader::read(const Run& run, std::byte* into) const {
  if (part_.decoded != nullptr) return read_decoded(run, into);
  const WeightFile& file = folder_.file(part_.file);
  const std::span<std::byte> all{into, static_cast<std::size_t>(run.count * size_)};
  file.read_rows(part_.offset + run.place * size_, run.step * size_, size_, all);
}

void PartReader::gather(std::int64_t from, std::int64_t some, std::vector<std::byte>& into) const {
  FAIRLEAD_CHECK(from >= begin_ && some >= 0 && from + some <= end_, "elements that are not ready");
  into.resize(static_cast<std::size_t>(some * size_));
  if (!is_turned_) {
    const std::int64_t wide = part_.dims.back(), step = part_.strides.back();
    for (std::int64_t done = 0; done < some;) {
      const std::int64_t row = (from + done) / wide, column = (from + done) % wide;
      const std::int64_t count = std::min(wide - column, some - done);
      read({place_of(row) + column * step, count, step}, into.data() + done * size_);
      done += count;
    }
    return;
  }
  const std::int64_t behind = (end_ - begin_) / wide_;
  const auto copy = [&](auto bytes) {  // of an element; a constant, so that it is one instruction
    const std::int64_t first = from - begin_, last = first + some;
    for (std::int64_t k = 0; k < behind; ++k) {  // neighbours are read together
      std::int64_t at = (first + behind - 1 - k) / behind;
      for (; at * behind + k < last; ++at) {
        std::memcpy(into.data() + (at * behind + k - first) * size_,
                    slab_.data() + (k * wide_ + at) * size_, bytes);
      }
    }
  };
  if (size_ == 1) return copy(std::integral_constant<std::size_t, 1>());
  if (size_ == 2) return copy(std::integral_constant<std::size_t, 2>());
  if (size_ == 4) return copy(std::integral_constant<std::size_t, 4>());
  copy(static_cast<std::size_t>(size_));
}

}  // namespace fairlead
