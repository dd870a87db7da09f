// Converts weights piece by piece, several pieces at once.
#include "fairlead/weights/convert.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <thread>

#include "fairlead/base/error.h"
#include "fairlead/base/half.h"
#include "fairlead/weights/part_reader.h"

namespace fairlead {
namespace {

constexpr std::int64_t kPieceElements = 1 << 20;
constexpr std::int64_t kPiecesElements = 8 << 20;  // of all threads, however many there are
constexpr std::int64_t kSmallestPiece = 1 << 16;
constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kPage = 4096;  // ONNX Runtime maps large tensors
constexpr std::int64_t kLarge = 64 << 10;

using Bytes = std::vector<std::byte>;

// How the numbers of a type are kept, and what they are.
struct Half {
  using Kept = std::uint16_t;
  static float value(Kept k) { return float16_to_float(k); }
  static Kept kept(double v) { return half_from_float(static_cast<float>(v)); }
};
struct Bfloat {
  using Kept = std::uint16_t;
  static float value(Kept k) { return bfloat16_to_float(k); }
  static Kept kept(double v) { return bfloat16_from_float(static_cast<float>(v)); }
};
struct Single {
  using Kept = float;
  static float value(Kept k) { return k; }
  static Kept kept(double v) { return static_cast<float>(v); }
};
struct Double {
  using Kept = double;
  static double value(Kept k) { return k; }
  static Kept kept(double v) { return v; }
};

template <typename Use>
void with_type(Dtype dtype, const Use& use) {
  if (dtype == Dtype::kFloat16) return use(Half());
  if (dtype == Dtype::kBfloat16) return use(Bfloat());
  if (dtype == Dtype::kFloat32) return use(Single());
  use(Double());
}

bool is_converted(Dtype dtype) {
  return dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16 || dtype == Dtype::kFloat32 ||
         dtype == Dtype::kFloat64;
}

bool can_become(Dtype from, Dtype to) {
  return from == to || (is_converted(from) && is_converted(to));
}

// As PyTorch's Tensor.to: through float32, to the nearest, to even in the middle.
void convert_elements(Dtype from, const std::byte* data, Dtype to, std::byte* made,
                      std::size_t count) {
  if (from == to) {
    std::memcpy(made, data, count * dtype_size(from));
    return;
  }
  with_type(from, [&](auto source) {
    with_type(to, [&](auto target) {
      for (std::size_t k = 0; k < count; ++k) {
        typename decltype(source)::Kept read;
        std::memcpy(&read, data + k * sizeof(read), sizeof(read));
        const auto written = target.kept(source.value(read));
        std::memcpy(made + k * sizeof(written), &written, sizeof(written));
      }
    });
  });
}

std::int64_t elements(const StoredPart& part) {
  return std::accumulate(part.dims.begin(), part.dims.end(), std::int64_t{1}, std::multiplies<>());
}

// No element lies outside of its file.
void check_part(const WeightFolder& folder, const StoredPart& part) {
  FAIRLEAD_CHECK(part.dims.size() == part.strides.size(), "a part without one of its strides");
  std::int64_t last = 0;
  for (std::size_t k = 0; k < part.dims.size(); ++k) {
    FAIRLEAD_CHECK(part.dims[k] > 0 && part.strides[k] >= 0, "a part without elements");
    last += (part.dims[k] - 1) * part.strides[k];
  }
  const auto size = static_cast<std::int64_t>(dtype_size(part.dtype));
  const std::int64_t end = part.decoded != nullptr
                               ? part.decoded->count() * size
                               : static_cast<std::int64_t>(folder.file(part.file).bytes().size());
  FAIRLEAD_CHECK(part.offset >= 0 && part.offset + (last + 1) * size <= end,
                 "a part beyond the end of its file");
}

}  // namespace

ConvertedFile::ConvertedFile(const WeightFolder& folder, const std::string& path,
                             const std::string& shown_as, unsigned threads)
    : folder_(folder), file_(path, shown_as), threads_(std::max(threads, 1U)) {
  file_.hash_into(&hash_);
}

ConvertedFile::Added ConvertedFile::add(Dtype dtype, const StoredBlocks& blocks) {
  const auto in_order = blocks.in_order(std::numeric_limits<std::size_t>::max());
  std::vector<StoredPart> parts;
  for (std::size_t k = 0; k < in_order->count(); ++k) {
    parts.push_back(in_order->part(folder_, k));
    if (can_become(parts.back().dtype, dtype)) continue;
    throw Error(ErrorCode::kInvalidInput, "[export] Expected '" +
                                              folder_.tensors()[in_order->tensor(k)].stored.name +
                                              "' in floats, as the model has it, got " +
                                              std::string(dtype_name(parts.back().dtype)) +
                                              " to be made " + std::string(dtype_name(dtype)) +
                                              ". Save the checkpoint with the types of its model.");
  }
  return add(dtype, parts);
}

ConvertedFile::Added ConvertedFile::add(Dtype dtype, const std::vector<StoredPart>& parts) {
  std::int64_t bytes = 0;
  for (const StoredPart& part : parts) {
    check_part(folder_, part);
    FAIRLEAD_CHECK(can_become(part.dtype, dtype), "elements of types that are not converted");
    bytes += elements(part) * static_cast<std::int64_t>(dtype_size(dtype));
  }
  const std::int64_t step = bytes >= kLarge ? kPage : kAlignment;
  file_.pad_to((file_.position() + step - 1) / step * step);
  const std::int64_t begin = file_.position();
  ContentHash hash;
  for (const StoredPart& part : parts) convert(part, dtype, hash);
  return {begin, bytes, hash.value()};
}

// As many pieces at once as there are threads; they are written in their order.
void ConvertedFile::convert(const StoredPart& part, Dtype dtype, ContentHash& hash) {
  PartReader reader(folder_, part, threads_);
  const std::int64_t most = std::clamp(kPiecesElements / static_cast<std::int64_t>(threads_),
                                       kSmallestPiece, kPieceElements);
  std::vector<Bytes> read(threads_), made(threads_);
  std::vector<std::exception_ptr> failed(threads_);
  const auto piece = [&](std::size_t k, std::int64_t from, std::int64_t some) {
    try {
      reader.gather(from, some, read[k]);
      made[k].resize(static_cast<std::size_t>(some) * dtype_size(dtype));
      convert_elements(part.dtype, read[k].data(), dtype, made[k].data(),
                       static_cast<std::size_t>(some));
    } catch (...) {
      failed[k] = std::current_exception();
    }
  };
  for (std::int64_t from = 0; from < reader.count();) {
    const std::int64_t ready = reader.prepare(from);
    while (from < ready) {
      std::vector<std::thread> running;
      std::size_t used = 0;
      for (; used < threads_ && from < ready; ++used) {
        const std::int64_t some = std::min(most, ready - from);
        if (from + some == ready || used + 1 == threads_) {
          piece(used, from, some);
        } else {
          running.emplace_back(piece, used, from, some);
        }
        from += some;
      }
      for (std::thread& each : running) each.join();
      for (std::size_t k = 0; k < used; ++k) {
        if (failed[k]) std::rethrow_exception(failed[k]);
        hash.update(made[k]);
        file_.write(made[k]);
      }
    }
  }
}

std::vector<std::byte> read_part(const WeightFolder& folder, const StoredPart& part) {
  check_part(folder, part);
  PartReader reader(folder, part, 1);
  Bytes all, some;
  for (std::int64_t from = 0; from < reader.count();) {
    const std::int64_t ready = reader.prepare(from);
    reader.gather(from, ready - from, some);
    if (from == 0 && ready == reader.count()) return some;
    all.insert(all.end(), some.begin(), some.end());
    from = ready;
  }
  return all;
}

std::string ConvertedFile::close() {
  file_.close();
  return hash_.hex();
}

}  // namespace fairlead
