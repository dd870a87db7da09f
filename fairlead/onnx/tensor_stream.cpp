// The paths of a streamed tensor:
//   1. contiguous: written from where it lies;
//   2. contiguous rows: row by row;
//   3. transposed (the second last dim is the contiguous one): panels of rows, block by block, so
//      that every cache line that is read is used whole;
//   4. anything else: element by element.
#include "fairlead/onnx/tensor_stream.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "fairlead/base/error.h"

namespace fairlead::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX stores tensors little-endian");

constexpr std::int64_t kPanelBytes = 1ll << 20;
constexpr std::int64_t kMaxPanelBytes = 16ll << 20;
constexpr std::int64_t kCacheLine = 64;
constexpr std::int64_t kGatherElements = 1ll << 14;

struct Element16 {
  std::uint64_t parts[2];
};

// Calls visit(offset in elements) for every index of the leading `count` dims, in row-major order.
template <typename Visit>
void for_each_outer(const Layout& layout, std::size_t count, Visit visit) {
  std::vector<std::int64_t> index(count, 0);
  std::int64_t offset = 0;
  while (true) {
    visit(offset);
    std::size_t d = count;
    while (d > 0) {
      --d;
      offset += layout.strides[d];
      if (++index[d] < layout.dims[d]) break;
      offset -= layout.dims[d] * layout.strides[d];
      index[d] = 0;
      if (d == 0) return;
    }
    if (count == 0) return;
  }
}

// out[r * columns + c] = source[r + c * stride]; memcpy because neither end need be aligned.
template <typename T>
void transpose_panel(const std::byte* source, std::int64_t stride, std::int64_t rows,
                     std::int64_t columns, std::byte* out) {
  constexpr std::int64_t kBlock =
      8;  // few enough lines that power-of-two strides do not evict them
  constexpr std::int64_t kSize = sizeof(T);
  std::int64_t c = 0;
  for (; c + kBlock <= columns; c += kBlock) {
    const std::byte* const from = source + c * stride * kSize;
    for (std::int64_t r = 0; r < rows; ++r) {
      T block[kBlock];
      for (std::int64_t i = 0; i < kBlock; ++i) {
        std::memcpy(&block[i], from + (r + i * stride) * kSize, kSize);
      }
      std::memcpy(out + (r * columns + c) * kSize, block, sizeof(block));
    }
  }
  for (; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(out + (r * columns + c) * kSize, source + (r + c * stride) * kSize, kSize);
    }
  }
}

template <typename T>
void stream_transposed(const Layout& layout, const std::byte* data, OutputFile& file) {
  constexpr std::int64_t kSize = sizeof(T);
  const std::size_t rank = layout.dims.size();
  const std::int64_t rows = layout.dims[rank - 2];
  const std::int64_t columns = layout.dims[rank - 1];
  const std::int64_t stride = layout.strides[rank - 1];
  const std::int64_t fitting = kPanelBytes / (columns * kSize);
  const std::int64_t panel = std::min(rows, std::max(fitting, kCacheLine / kSize));
  for_each_outer(layout, rank - 2, [&](std::int64_t offset) {
    for (std::int64_t r = 0; r < rows; r += panel) {
      const std::int64_t height = std::min(panel, rows - r);
      std::byte* const out = file.claim(static_cast<std::size_t>(height * columns * kSize));
      transpose_panel<T>(data + (offset + r) * kSize, stride, height, columns, out);
    }
  });
}

template <typename T>
void stream_gathered(const Layout& layout, const std::byte* data, OutputFile& file) {
  constexpr std::int64_t kSize = sizeof(T);
  const std::int64_t columns = layout.dims.back();
  const std::int64_t stride = layout.strides.back();
  for_each_outer(layout, layout.dims.size() - 1, [&](std::int64_t offset) {
    for (std::int64_t c = 0; c < columns; c += kGatherElements) {
      const std::int64_t count = std::min(kGatherElements, columns - c);
      std::byte* out = file.claim(static_cast<std::size_t>(count * kSize));
      const std::byte* from = data + (offset + c * stride) * kSize;
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(out + i * kSize, from + i * stride * kSize, kSize);
      }
    }
  });
}

template <typename T>
void stream_strided(const Layout& layout, const std::byte* data, OutputFile& file) {
  constexpr std::int64_t kSize = sizeof(T);
  const std::size_t rank = layout.dims.size();
  if (layout.strides.back() == 1) {
    const std::int64_t row_bytes = layout.dims.back() * kSize;
    for_each_outer(layout, rank - 1, [&](std::int64_t offset) {
      file.write({data + offset * kSize, static_cast<std::size_t>(row_bytes)});
    });
  } else if (rank >= 2 && layout.strides[rank - 2] == 1 &&
             layout.dims[rank - 1] <= kMaxPanelBytes / std::max(kCacheLine, kSize)) {
    stream_transposed<T>(layout, data, file);
  } else {
    stream_gathered<T>(layout, data, file);
  }
}

}  // namespace

const std::byte* first_byte(const TensorData& tensor) {
  return tensor.data == nullptr && tensor.owned ? tensor.owned->data() : tensor.data;
}

std::int64_t stored_bytes(const TensorData& tensor) {
  FAIRLEAD_CHECK(tensor.strides.empty() || tensor.strides.size() == tensor.dims.size(),
                 std::to_string(tensor.strides.size()) + " strides for " +
                     std::to_string(tensor.dims.size()) + " dims");
  std::int64_t bytes = static_cast<std::int64_t>(dtype_size(tensor.dtype));
  bool empty = false;
  for (const std::int64_t dim : tensor.dims) {
    FAIRLEAD_CHECK(dim >= 0, "a tensor of size " + std::to_string(dim));
    if (dim == 0) {
      empty = true;
      continue;
    }
    FAIRLEAD_CHECK(bytes <= std::numeric_limits<std::int64_t>::max() / dim,
                   "a tensor of more than 2^63 bytes");
    bytes *= dim;
  }
  if (empty) return 0;
  if (tensor.four_bits != FourBits::kNo) bytes = (bytes + 1) / 2;
  FAIRLEAD_CHECK(first_byte(tensor) != nullptr, "a tensor without data");
  if (tensor.owned && tensor.strides.empty() && first_byte(tensor) == tensor.owned->data()) {
    FAIRLEAD_CHECK(static_cast<std::int64_t>(tensor.owned->size()) >= bytes,
                   "a tensor of " + std::to_string(bytes) + " bytes that owns only " +
                       std::to_string(tensor.owned->size()));
  }
  return bytes;
}

Layout reduced_layout(const TensorData& tensor) {
  Layout layout;
  std::int64_t following = 1;  // the stride of contiguous data, from the last dim backwards
  for (std::size_t i = tensor.dims.size(); i > 0; --i) {
    const std::int64_t dim = tensor.dims[i - 1];
    const std::int64_t stride = tensor.strides.empty() ? following : tensor.strides[i - 1];
    following *= dim;
    if (dim == 1) continue;
    if (!layout.dims.empty() && stride == layout.dims.back() * layout.strides.back()) {
      layout.dims.back() *= dim;
    } else {
      layout.dims.push_back(dim);
      layout.strides.push_back(stride);
    }
  }
  std::reverse(layout.dims.begin(), layout.dims.end());
  std::reverse(layout.strides.begin(), layout.strides.end());
  return layout;
}

namespace {

void stream_strided(Dtype dtype, const Layout& layout, const std::byte* data, OutputFile& file) {
  switch (dtype_size(dtype)) {
    case 1:
      return stream_strided<std::uint8_t>(layout, data, file);
    case 2:
      return stream_strided<std::uint16_t>(layout, data, file);
    case 4:
      return stream_strided<std::uint32_t>(layout, data, file);
    case 8:
      return stream_strided<std::uint64_t>(layout, data, file);
    case 16:
      return stream_strided<Element16>(layout, data, file);
    default:
      FAIRLEAD_CHECK(false, "an element of no known size");
  }
}

}  // namespace

void fail_elsewhere() {
  throw Error(
      ErrorCode::kInvalidInput,
      "[write_model] Expected the numbers of a weight to write, got one that stayed where it "
      "is. Export the model again, to where the file is to be.");
}

void stream_tensor(const TensorData& tensor, OutputFile& file, FetchedWeights* fetched) {
  const std::int64_t bytes = stored_bytes(tensor);
  if (bytes == 0) return;
  const std::byte* const data = first_byte(tensor);
  const Layout layout = reduced_layout(tensor);
  const bool elsewhere = fetched != nullptr && fetched->holds(data);
  if (!elsewhere && ReservedMemory::is_empty(data)) fail_elsewhere();
  if (layout.contiguous()) {
    if (!elsewhere) return file.write({data, static_cast<std::size_t>(bytes)});
    return fetched->visit(data, bytes,
                          [&](std::span<const std::byte> piece) { file.write(piece); });
  }
  if (!elsewhere) return stream_strided(tensor.dtype, layout, data, file);
  fetched->visit_whole(data, [&] { stream_strided(tensor.dtype, layout, data, file); });
}

}  // namespace fairlead::onnx
