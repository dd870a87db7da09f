// Cuts, joins and turns rectangles of stored tensors.
#include "fairlead/weights/stored_blocks.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

using Dims = StoredBlocks::Dims;

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// Strides of elements that lie side by side.
void put_dense(std::span<const std::int64_t> sizes, std::int64_t* strides) {
  std::int64_t step = 1;
  for (std::size_t k = sizes.size(); k-- > 0;) {
    strides[k] = step;
    step *= std::max<std::int64_t>(sizes[k], 1);
  }
}

// The strides by which elements are counted as `dims`, where they are as `sizes` by `strides`: dims
// that follow each other without a gap are one, and may be divided otherwise.
std::optional<Dims> strides_as(std::span<const std::int64_t> sizes,
                               std::span<const std::int64_t> strides, const Dims& dims) {
  Dims found(dims.size(), 1);
  if (sizes.empty()) return found;
  std::size_t left = dims.size();
  std::int64_t step = strides.back(), had = 1, counted = 1;
  for (std::size_t k = sizes.size(); k-- > 0;) {
    had *= sizes[k];
    if (k > 0 && (sizes[k - 1] == 1 || strides[k - 1] == had * step)) continue;
    while (left > 0 && (counted < had || dims[left - 1] == 1)) {
      --left;
      found[left] = counted * step;
      counted *= dims[left];
    }
    if (counted != had) return std::nullopt;
    if (k > 0) step = strides[k - 1];
    had = counted = 1;
  }
  return left == 0 ? std::optional(std::move(found)) : std::nullopt;
}

}  // namespace

std::int64_t* StoredBlocks::add(Head head) {
  heads_.push_back(head);
  numbers_.resize(numbers_.size() + 3 * rank());
  return numbers_.data() + numbers_.size() - 3 * rank();
}

// The blocks with other numbers: `change` gets those of a block, and writes the new ones.
template <typename Change>
StoredBlocks StoredBlocks::changed(Dims dims, const Change& change) const {
  StoredBlocks made(std::move(dims));
  made.heads_ = heads_;
  made.numbers_.resize(count() * 3 * made.rank());
  for (std::size_t block = 0; block < count(); ++block) {
    for (std::size_t row = 0; row < 3; ++row) {
      change(row, numbers(block) + row * rank(),
             made.numbers_.data() + (3 * block + row) * made.rank());
    }
  }
  return made;
}

StoredBlocks StoredBlocks::of(const WeightFolder& folder, std::size_t number) {
  const StoredTensor& stored = folder.tensors().at(number).stored;
  FAIRLEAD_CHECK(stored.dtype, "a tensor of a type that tensors here do not have");
  StoredBlocks made(stored.dims);
  if (stored.bytes == 0) return made;
  std::int64_t* const at = made.add({static_cast<std::uint32_t>(number), 0});
  std::ranges::copy(stored.dims, at + made.rank());
  put_dense(stored.dims, at + 2 * made.rank());
  return made;
}

StoredBlocks StoredBlocks::joined(std::span<const StoredBlocks* const> tensors, std::size_t axis) {
  FAIRLEAD_CHECK(!tensors.empty() && axis < tensors.front()->rank(), "tensors without that axis");
  StoredBlocks made(tensors.front()->dims());
  std::int64_t& at = made.dims_[axis] = 0;
  std::size_t blocks = 0;
  for (const StoredBlocks* const each : tensors) blocks += each->count();
  made.heads_.reserve(blocks);
  made.numbers_.reserve(blocks * 3 * made.rank());
  for (const StoredBlocks* const each : tensors) {
    FAIRLEAD_CHECK(each->rank() == made.rank(), "tensors of different ranks");
    for (std::size_t k = 0; k < each->count(); ++k) {
      std::int64_t* const row = made.add(each->heads_[k]);
      std::copy_n(each->numbers(k), 3 * made.rank(), row);
      row[axis] += at;
    }
    at += each->dims_[axis];
  }
  return made;
}

Dims StoredBlocks::start(std::size_t block) const {
  FAIRLEAD_CHECK(block < count(), "a block that is not there");
  return {numbers(block), numbers(block) + rank()};
}

StoredPart StoredBlocks::part(const WeightFolder& folder, std::size_t block) const {
  FAIRLEAD_CHECK(block < count(), "a block that is not there");
  const WeightFolder::Tensor& tensor = folder.tensors().at(heads_[block].tensor);
  const std::int64_t* const sizes = numbers(block) + rank();
  const Dtype dtype = tensor.stored.dtype.value();
  return {tensor.file,
          tensor.stored.begin + heads_[block].first * static_cast<std::int64_t>(dtype_size(dtype)),
          dtype,
          {sizes, sizes + rank()},
          {sizes + rank(), sizes + 2 * rank()},
          tensor.decoded.get()};
}

bool StoredBlocks::is_dense(std::size_t block) const {
  const std::int64_t* const sizes = numbers(block) + rank();
  const std::int64_t* const strides = sizes + rank();
  std::int64_t step = 1;
  for (std::size_t k = rank(); k-- > 0;) {
    if (sizes[k] != 1 && strides[k] != step) return false;
    step *= sizes[k];
  }
  return true;
}

StoredBlocks StoredBlocks::cut(std::size_t axis, std::int64_t low, std::int64_t high) const {
  FAIRLEAD_CHECK(axis < rank() && low >= 0 && high <= dims_[axis], "a cut beyond the tensor");
  StoredBlocks made(dims_);
  made.dims_[axis] = std::max<std::int64_t>(0, high - low);
  for (std::size_t k = 0; k < count(); ++k) {
    const std::int64_t* const given = numbers(k);
    const std::int64_t begin = given[axis], end = begin + given[rank() + axis];
    const std::int64_t from = std::max(begin, low), to = std::min(end, high);
    if (from >= to) continue;
    Head head = heads_[k];
    head.first += (from - begin) * given[2 * rank() + axis];
    std::int64_t* const row = made.add(head);
    std::copy_n(given, 3 * rank(), row);
    row[axis] = from - low;
    row[rank() + axis] = to - from;
  }
  return made;
}

StoredBlocks StoredBlocks::without(std::size_t axis) const {
  FAIRLEAD_CHECK(axis < rank() && dims_[axis] == 1, "an axis of other than one element");
  Dims dims = dims_;
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return changed(std::move(dims), [&](std::size_t, const std::int64_t* from, std::int64_t* to) {
    std::copy(from + axis + 1, from + rank(), std::copy(from, from + axis, to));
  });
}

StoredBlocks StoredBlocks::with(std::size_t axis) const {
  FAIRLEAD_CHECK(axis <= rank(), "an axis behind the last");
  Dims dims = dims_;
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return changed(std::move(dims), [&](std::size_t row, const std::int64_t* from, std::int64_t* to) {
    to = std::copy(from, from + axis, to);
    *to++ = row == 0 ? 0 : 1;
    std::copy(from + axis, from + rank(), to);
  });
}

StoredBlocks StoredBlocks::permuted(std::span<const std::size_t> order) const {
  FAIRLEAD_CHECK(order.size() == rank(), "another number of axes");
  Dims dims;
  for (const std::size_t axis : order) dims.push_back(dims_.at(axis));
  return changed(std::move(dims), [&](std::size_t, const std::int64_t* from, std::int64_t* to) {
    for (const std::size_t axis : order) *to++ = from[axis];
  });
}

std::optional<StoredBlocks> StoredBlocks::viewed(const Dims& dims) const {
  FAIRLEAD_CHECK(product(dims) == product(dims_), "another number of elements");
  if (dims == dims_) return *this;
  StoredBlocks made(dims);
  if (count() == 0) return made;
  if (count() > 1) return std::nullopt;
  const std::int64_t* const sizes = numbers(0) + rank();
  const std::optional<Dims> strides = strides_as({sizes, rank()}, {sizes + rank(), rank()}, dims);
  if (!strides) return std::nullopt;
  std::int64_t* const row = made.add(heads_[0]);
  std::ranges::copy(dims, row + dims.size());
  std::ranges::copy(*strides, row + 2 * dims.size());
  return made;
}

// 1. Along an axis at which blocks part, piece by piece between their edges.
// 2. Where they do not part there, they part along a later axis: one index after the other.
void StoredBlocks::add_in_order(StoredBlocks& made, std::size_t axis, std::size_t most) const {
  if (made.count() > most) return;
  if (count() <= 1 || axis == rank()) {
    for (std::size_t k = 0; k < count(); ++k) {
      std::copy_n(numbers(k), 3 * rank(), made.add(heads_[k]));
    }
    return;
  }
  Dims edges;
  for (std::size_t k = 0; k < count(); ++k) {
    edges.push_back(numbers(k)[axis]);
    edges.push_back(numbers(k)[axis] + numbers(k)[rank() + axis]);
  }
  std::ranges::sort(edges);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  const bool each = edges.size() == 2;
  std::vector<std::size_t> waiting(count());
  std::iota(waiting.begin(), waiting.end(), std::size_t{0});
  std::ranges::stable_sort(waiting, {}, [&](std::size_t k) { return numbers(k)[axis]; });
  std::vector<std::size_t> here;
  auto next = waiting.begin();
  const std::int64_t last = edges.back();
  std::size_t edge = 0;
  for (std::int64_t low = edges.front(); low < last && made.count() <= most;) {
    const std::int64_t high = each ? low + 1 : edges[++edge];
    for (; next != waiting.end() && numbers(*next)[axis] <= low; ++next) here.push_back(*next);
    std::erase_if(
        here, [&](std::size_t k) { return numbers(k)[axis] + numbers(k)[rank() + axis] <= low; });
    StoredBlocks inside(dims_);
    for (const std::size_t k : here) {
      Head head = heads_[k];
      head.first += (low - numbers(k)[axis]) * numbers(k)[2 * rank() + axis];
      std::int64_t* const cut = inside.add(head);
      std::copy_n(numbers(k), 3 * rank(), cut);
      cut[axis] = 0;
      cut[rank() + axis] = high - low;
    }
    inside.add_in_order(made, high - low == 1 ? axis + 1 : axis, most);
    low = high;
  }
}

std::optional<StoredBlocks> StoredBlocks::in_order(std::size_t most) const {
  StoredBlocks made(dims_);
  add_in_order(made, 0, most);
  return made.count() <= most ? std::optional(std::move(made)) : std::nullopt;
}

}  // namespace fairlead
