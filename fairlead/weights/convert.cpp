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

namespace fairlead {
namespace {

constexpr std::int64_t kPieceElements = 1 << 20;
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

bool side_by_side(const StoredPart& part) {
  std::int64_t step = 1;
  for (std::size_t k = part.dims.size(); k-- > 0;) {
    if (part.dims[k] != 1 && part.strides[k] != step) return false;
    step *= part.dims[k];
  }
  return true;
}

// Elements of a part that is decoded, in their order. Where it is a matrix that was turned, its rows
// are decoded as they are stored, in runs.
void gather_decoded(const StoredPart& part, std::int64_t from, std::span<float> out) {
  const std::size_t rank = part.dims.size();
  const std::int64_t first = part.offset / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t wide = rank > 0 ? part.dims[rank - 1] : 1;
  const std::int64_t step = rank > 0 ? part.strides[rank - 1] : 1;
  const bool turned = rank > 1 && step != 1 && part.strides[rank - 2] == 1;
  const auto count = static_cast<std::int64_t>(out.size());
  const auto into = [&](std::int64_t begin, std::int64_t size) {
    return out.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
  };
  std::vector<float> run;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t row = (from + done) / wide, column = (from + done) % wide;
    std::int64_t place = first, rest = row;
    for (std::size_t k = rank; k-- > 1;) {
      place += rest % part.dims[k - 1] * part.strides[k - 1];
      rest /= part.dims[k - 1];
    }
    if (turned && column == 0 && count - done >= wide) {
      const std::int64_t high = part.dims[rank - 2];
      const std::int64_t rows = std::min(high - row % high, (count - done) / wide);
      run.resize(static_cast<std::size_t>(rows));
      for (std::int64_t c = 0; c < wide; ++c) {
        part.decoded->decode(place + c * step, run);
        float* to = out.data() + done + c;
        for (const float value : run) {
          *to = value;
          to += wide;
        }
      }
      done += rows * wide;
      continue;
    }
    const std::int64_t some = std::min(wide - column, count - done);
    if (step == 1) {
      part.decoded->decode(place + column, into(done, some));
    } else {
      for (std::int64_t c = 0; c < some; ++c) {
        part.decoded->decode(place + (column + c) * step, into(done + c, 1));
      }
    }
    done += some;
  }
}

// Elements `from` ... `from + count` of the part, side by side.
void gather(const WeightFolder& folder, const StoredPart& part, bool whole, std::int64_t from,
            std::int64_t count, Bytes& into) {
  const auto size = static_cast<std::int64_t>(dtype_size(part.dtype));
  into.resize(static_cast<std::size_t>(count * size));
  if (part.decoded != nullptr) {
    std::vector<float> found(static_cast<std::size_t>(count));
    gather_decoded(part, from, found);
    std::memcpy(into.data(), found.data(), into.size());
    return;
  }
  const WeightFile& file = folder.file(part.file);
  if (whole) return file.read(part.offset + from * size, into);
  std::vector<std::int64_t> at(part.dims.size());
  std::int64_t rest = from;
  for (std::size_t k = part.dims.size(); k-- > 0;) {
    at[k] = rest % part.dims[k];
    rest /= part.dims[k];
  }
  const std::byte* const data = file.bytes().data() + part.offset;
  std::byte* made = into.data();
  for (std::int64_t k = 0; k < count; ++k, made += size) {
    const std::int64_t place =
        std::inner_product(at.begin(), at.end(), part.strides.begin(), std::int64_t{0});
    std::memcpy(made, data + place * size, static_cast<std::size_t>(size));
    for (std::size_t axis = at.size(); axis-- > 0 && ++at[axis] == part.dims[axis];) at[axis] = 0;
  }
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
  for (std::size_t k = 0; k < in_order->count(); ++k) parts.push_back(in_order->part(folder_, k));
  return add(dtype, parts);
}

ConvertedFile::Added ConvertedFile::add(Dtype dtype, const std::vector<StoredPart>& parts) {
  std::int64_t bytes = 0;
  for (const StoredPart& part : parts) {
    check_part(folder_, part);
    if (part.dtype != dtype && (!is_converted(part.dtype) || !is_converted(dtype))) {
      throw Error(ErrorCode::kUnsupported, "[export] Expected weights of floats to convert, got " +
                                               std::string(dtype_name(part.dtype)) + " for " +
                                               std::string(dtype_name(dtype)) +
                                               ". Leave the dtype out.");
    }
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
  const std::int64_t count = elements(part);
  const bool whole = side_by_side(part);
  std::vector<Bytes> read(threads_), made(threads_);
  std::vector<std::exception_ptr> failed(threads_);
  const auto piece = [&](std::size_t k, std::int64_t from) {
    try {
      const std::int64_t some = std::min(kPieceElements, count - from);
      gather(folder_, part, whole, from, some, read[k]);
      made[k].resize(static_cast<std::size_t>(some) * dtype_size(dtype));
      convert_elements(part.dtype, read[k].data(), dtype, made[k].data(),
                       static_cast<std::size_t>(some));
    } catch (...) {
      failed[k] = std::current_exception();
    }
  };
  for (std::int64_t from = 0; from < count;) {
    std::vector<std::thread> running;
    std::size_t used = 0;
    for (; used < threads_ && from < count; ++used, from += kPieceElements) {
      if (from + kPieceElements >= count || used + 1 == threads_) {
        piece(used, from);
      } else {
        running.emplace_back(piece, used, from);
      }
    }
    for (std::thread& each : running) each.join();
    for (std::size_t k = 0; k < used; ++k) {
      if (failed[k]) std::rethrow_exception(failed[k]);
      hash.update(made[k]);
      file_.write(made[k]);
    }
    if (part.decoded != nullptr) {
      for (const std::span<const std::byte> each : part.decoded->sources()) folder_.forget(each);
    } else if (!whole) {
      folder_.file(part.file).forget(
          0, static_cast<std::int64_t>(folder_.file(part.file).bytes().size()));
    }
  }
}

std::vector<std::byte> read_part(const WeightFolder& folder, const StoredPart& part) {
  check_part(folder, part);
  Bytes read;
  gather(folder, part, side_by_side(part), 0, elements(part), read);
  return read;
}

std::string ConvertedFile::close() {
  file_.close();
  return hash_.hex();
}

}  // namespace fairlead
