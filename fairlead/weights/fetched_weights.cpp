// Fetches weights piece by piece, and gives their memory back.
#include "fairlead/weights/fetched_weights.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

constexpr std::int64_t kAlignment = 4096;  // a tensor has pages of its own, which can be given back
constexpr std::int64_t kPiece = 32 << 20;  // bytes

std::int64_t room(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::int64_t room(const std::vector<std::int64_t>& sizes) {
  std::int64_t all = 0;
  for (const std::int64_t size : sizes) all += room(size);
  return all;
}

}  // namespace

FetchedWeights::FetchedWeights(const std::vector<std::int64_t>& sizes, Fetch fetch)
    : fetch_(std::move(fetch)), memory_(room(sizes)) {
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    FAIRLEAD_CHECK(size > 0, "a tensor without bytes");
    tensors_.push_back({at, size});
    at += room(size);
  }
}

const FetchedWeights::Tensor* FetchedWeights::find(const std::byte* at) const {
  const std::byte* const first = memory_.bytes().data();
  if (at < first || at >= first + memory_.bytes().size()) return nullptr;
  const std::int64_t offset = at - first;
  const auto next = std::ranges::upper_bound(tensors_, offset, {}, &Tensor::at);
  if (next == tensors_.begin()) return nullptr;
  const Tensor& found = *std::prev(next);
  return offset < found.at + found.bytes ? &found : nullptr;
}

void FetchedWeights::fetch(const Tensor& tensor, std::int64_t from, std::int64_t bytes) {
  fetch_(static_cast<std::size_t>(&tensor - tensors_.data()), from,
         memory_.bytes().subspan(static_cast<std::size_t>(tensor.at + from),
                                 static_cast<std::size_t>(bytes)));
}

void FetchedWeights::release(const Tensor& tensor, std::int64_t from, std::int64_t bytes) {
  if (std::ranges::none_of(tensors_, &Tensor::held)) return memory_.forget();
  const bool last = from + bytes == tensor.bytes;
  const std::int64_t end = last ? room(tensor.bytes) : from + bytes;
  memory_.forget(static_cast<std::size_t>(tensor.at + from), static_cast<std::size_t>(end - from));
}

bool FetchedWeights::touched() const {
  return std::ranges::none_of(tensors_, &Tensor::held) && memory_.touched();
}

void FetchedWeights::fill() {
  for (std::size_t k = 0; k < tensors_.size(); ++k) fill(k);
  memory_.set_filled(true);
}

void FetchedWeights::fill(std::size_t number) {
  Tensor& tensor = tensors_.at(number);
  if (tensor.held) return;
  for (std::int64_t from = 0; from < tensor.bytes; from += kPiece) {
    fetch(tensor, from, std::min(kPiece, tensor.bytes - from));
  }
  tensor.held = true;
}

void FetchedWeights::forget() {
  for (Tensor& tensor : tensors_) tensor.held = false;
  memory_.set_filled(false);
  memory_.forget();
}

void FetchedWeights::visit(const std::byte* begin, std::int64_t bytes,
                           const std::function<void(std::span<const std::byte>)>& use) {
  const Tensor* const tensor = find(begin);
  FAIRLEAD_CHECK(tensor != nullptr, "memory of no tensor that is fetched");
  const std::int64_t first = begin - memory_.bytes().data() - tensor->at;
  FAIRLEAD_CHECK(bytes >= 0 && first + bytes <= tensor->bytes, "more than the tensor has");
  if (tensor->held) return use({begin, static_cast<std::size_t>(bytes)});
  for (std::int64_t from = 0; from < bytes; from += kPiece) {
    const std::int64_t some = std::min(kPiece, bytes - from);
    fetch(*tensor, first + from, some);
    use({begin + from, static_cast<std::size_t>(some)});
    release(*tensor, first + from, some);
  }
}

void FetchedWeights::visit_whole(const std::byte* at, const std::function<void()>& use) {
  const Tensor* const tensor = find(at);
  FAIRLEAD_CHECK(tensor != nullptr, "memory of no tensor that is fetched");
  if (tensor->held) return use();
  fetch(*tensor, 0, tensor->bytes);
  use();
  release(*tensor, 0, tensor->bytes);
}

}  // namespace fairlead
