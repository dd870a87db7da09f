// Finds which parts of files the parameters of a model are.
#include "fairlead/weights/placed_weights.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

constexpr std::int64_t kAlignment = 64;
// A tensor of more parts than this, and smaller ones (rows of two matrices side by side), is
// converted: a reference each would take more than the bytes.
constexpr std::size_t kMostParts = 4096;
constexpr std::int64_t kSmallestPart = 4096;
constexpr std::size_t kFewParts = 16;

std::int64_t bytes_of(const StoredPart& part) {
  return std::accumulate(part.dims.begin(), part.dims.end(),
                         static_cast<std::int64_t>(dtype_size(part.dtype)), std::multiplies<>());
}

}  // namespace

PlacedWeights::PlacedWeights(std::shared_ptr<const WeightFolder> folder)
    : folder_(std::move(folder)), known_(folder_->names().size() + 1) {}

PlacedWeights::Place PlacedWeights::add(const StoredBlocks& given, Dtype dtype) {
  if (given.count() == 0) return {};
  const Place other{Way::kOther, 0, 0, 0};
  const std::optional<StoredBlocks> blocks = given.in_order(kMostParts);
  if (!blocks) return other;
  std::vector<StoredPart> parts;
  std::int64_t all = 0;
  for (std::size_t k = 0; k < blocks->count(); ++k) {
    parts.push_back(blocks->part(*folder_, k));
    const auto size = static_cast<std::int64_t>(dtype_size(dtype));
    if (parts.back().decoded != nullptr || parts.back().dtype != dtype || !blocks->is_dense(k) ||
        parts.back().offset % size != 0) {
      return other;
    }
    all += bytes_of(parts.back());
  }
  const auto count = static_cast<std::int64_t>(parts.size());
  if (parts.size() > kFewParts && all / count < kSmallestPart) return other;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    used_.insert(parts[k].file);
    known_[parts[k].file].push_back({static_cast<std::uint32_t>(blocks->tensor(k)), dtype,
                                     parts[k].offset, bytes_of(parts[k]), 0});
  }
  sorted_ = false;
  if (parts.size() == 1) return {Way::kMapped, parts[0].file, parts[0].offset, all};
  const std::int64_t at = reserved_bytes_;
  const std::size_t first = pieces_.size();
  for (const StoredPart& part : parts) {
    pieces_.push_back({part.file, part.offset, bytes_of(part)});
  }
  joined_.push_back({at, first, pieces_.size()});
  reserved_bytes_ += (all + kAlignment - 1) / kAlignment * kAlignment;
  return {Way::kJoined, 0, at, all};
}

void PlacedWeights::add_converted(const StoredBlocks& blocks, Dtype dtype, std::int64_t begin,
                                  std::int64_t bytes, std::uint64_t hash) {
  known_.back().push_back(
      {static_cast<std::uint32_t>(blocks.tensor(0)), dtype, begin, bytes, hash});
  sorted_ = false;
}

void PlacedWeights::reserve() {
  if (reserved_bytes_ > 0) reserved_ = std::make_unique<ReservedMemory>(reserved_bytes_);
}

void PlacedWeights::fill(const Joined& joined) const {
  FAIRLEAD_CHECK(reserved_ != nullptr, "nothing is reserved");
  auto at = static_cast<std::size_t>(joined.at);
  for (std::size_t k = joined.first; k < joined.end; ++k) {
    const auto bytes = static_cast<std::size_t>(pieces_[k].bytes);
    folder_->file(pieces_[k].file).read(pieces_[k].offset, reserved_->bytes().subspan(at, bytes));
    at += bytes;
  }
}

void PlacedWeights::fill() const {
  for (const Joined& each : joined_) fill(each);
  if (reserved_) reserved_->set_filled(true);
}

void PlacedWeights::fill(std::int64_t at) const {
  const auto found = std::ranges::lower_bound(joined_, at, {}, &Joined::at);
  FAIRLEAD_CHECK(found != joined_.end() && found->at == at, "no tensor begins there");
  fill(*found);
}

bool PlacedWeights::is_joined(std::int64_t at) const {
  const auto found = std::ranges::lower_bound(joined_, at, {}, &Joined::at);
  return found != joined_.end() && found->at == at;
}

void PlacedWeights::forget() const {
  if (reserved_) reserved_->forget();
}

FileRegions PlacedWeights::regions(const WeightFile* converted, const std::string& name) const {
  struct Row {
    const std::byte* begin;
    FilePart part;
  };
  std::vector<Row> rows;
  rows.reserve(folder_->names().size() + pieces_.size());
  for (std::size_t k = 0; k < folder_->names().size(); ++k) {
    const std::span<const std::byte> bytes = folder_->file(k).bytes();
    rows.push_back(
        {bytes.data(), {folder_->names()[k], 0, static_cast<std::int64_t>(bytes.size())}});
  }
  for (const Joined& each : joined_) {
    const std::byte* at = reserved_->bytes().data() + each.at;
    for (std::size_t k = each.first; k < each.end; ++k) {
      rows.push_back(
          {at, {folder_->names()[pieces_[k].file], pieces_[k].offset, pieces_[k].bytes}});
      at += pieces_[k].bytes;
    }
  }
  if (converted != nullptr) {
    const std::span<const std::byte> bytes = converted->bytes();
    rows.push_back({bytes.data(), {name, 0, static_cast<std::int64_t>(bytes.size())}});
  }
  std::ranges::sort(rows, {}, &Row::begin);
  FileRegions made;
  for (const Row& row : rows) made.add(row.begin, row.part);
  return made;
}

std::optional<PlacedWeights::Known> PlacedWeights::find(std::optional<std::size_t> file,
                                                        std::int64_t offset,
                                                        std::int64_t bytes) const {
  if (!sorted_) {
    const auto place = [](const Known& k) { return std::pair(k.offset, -k.bytes); };
    for (std::vector<Known>& rows : known_) std::ranges::sort(rows, {}, place);
    sorted_ = true;
  }
  const std::vector<Known>& rows = known_.at(file.value_or(known_.size() - 1));
  // Of several that begin there the smallest comes last; a part of one may be known as well.
  constexpr int kMostBefore = 64;
  auto found = std::ranges::upper_bound(rows, offset, {}, &Known::offset);
  for (int k = 0; k < kMostBefore && found != rows.begin(); ++k) {
    --found;
    if (found->offset + found->bytes >= offset + bytes) return *found;
  }
  return std::nullopt;
}

}  // namespace fairlead
