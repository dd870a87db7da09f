// Tests of streamed tensors: every path against element-by-element indexing.
#include "fairlead/onnx/tensor_stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "onnx_models.h"

using namespace fairlead;
using namespace fairlead::onnx;
using fairlead::test::file_bytes;
using fairlead::test::TemporaryFolder;

namespace {

std::string streamed(const TensorData& tensor, const std::string& path) {
  OutputFile file(path, path);
  const std::string before = "x";  // so that claimed memory is not aligned
  file.write(std::as_bytes(std::span(before)));
  stream_tensor(tensor, file);
  CHECK(file.position() == 1 + stored_bytes(tensor));
  file.close();
  return file_bytes(path).substr(1);
}

std::string indexed(const TensorData& tensor) {
  const auto size = static_cast<std::int64_t>(dtype_size(tensor.dtype));
  std::string out;
  std::int64_t total = 1;
  for (const auto dim : tensor.dims) total *= dim;
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t rest = i, offset = 0;
    for (std::size_t d = tensor.dims.size(); d-- > 0;) {
      offset += rest % tensor.dims[d] * tensor.strides[d];
      rest /= tensor.dims[d];
    }
    out.append(reinterpret_cast<const char*>(tensor.data) + offset * size,
               static_cast<std::size_t>(size));
  }
  return out;
}

}  // namespace

TEST_CASE("Layouts are reduced to what their strides need") {
  const auto reduced = [](std::vector<std::int64_t> dims, std::vector<std::int64_t> strides) {
    TensorData tensor;
    tensor.dims = std::move(dims);
    tensor.strides = std::move(strides);
    return reduced_layout(tensor);
  };
  CHECK(reduced({2, 3, 4}, {}).contiguous());
  CHECK(reduced({2, 3, 4}, {12, 4, 1}) == Layout{{24}, {1}});
  CHECK(reduced({2, 1, 4}, {4, 77, 1}).contiguous());  // the stride of a size 1 says nothing
  CHECK(reduced({4, 2, 3}, {1, 12, 4}) == Layout{{4, 6}, {1, 4}});
  CHECK(reduced({}, {}).contiguous());
  CHECK(reduced({5}, {2}) == Layout{{5}, {2}});
  CHECK_FALSE(reduced({5, 5}, {0, 0}).contiguous());
}

TEST_CASE("Random permutations, slices and expansions are stored as indexing gives them") {
  const TemporaryFolder folder;
  std::mt19937 random(7);
  std::vector<std::byte> memory(1 << 20);
  for (auto& byte : memory) byte = static_cast<std::byte>(random());
  const Dtype dtypes[] = {Dtype::kInt8, Dtype::kBfloat16, Dtype::kFloat32, Dtype::kInt64,
                          Dtype::kComplex128};
  for (int round = 0; round < 300; ++round) {
    TensorData tensor;
    tensor.dtype = dtypes[random() % 5];
    const std::size_t rank = random() % 5;
    std::vector<std::int64_t> base(rank), strides(rank);
    std::int64_t stride = 1;
    for (std::size_t d = rank; d-- > 0;) {
      base[d] = static_cast<std::int64_t>(random() % 11) + (round % 20 == 0 ? 0 : 1);
      strides[d] = stride;
      stride *= std::max<std::int64_t>(base[d], 1);
    }
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), 0u);
    if (round % 3 != 0) std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t d : order) {
      const int change = static_cast<int>(random() % 8);
      tensor.dims.push_back(change == 0 ? (base[d] + 1) / 2 : base[d]);
      tensor.strides.push_back(change == 0 ? 2 * strides[d] : change == 1 ? 0 : strides[d]);
    }
    tensor.data = memory.data() + random() % 7;  // borrowed memory need not be aligned
    CAPTURE(round);
    CHECK(streamed(tensor, folder / "t") == indexed(tensor));
  }
}

TEST_CASE("Large transposes go through panels") {
  const TemporaryFolder folder;
  std::vector<std::byte> memory(600 * 1000 * 8);
  std::mt19937 random(3);
  for (auto& byte : memory) byte = static_cast<std::byte>(random());
  for (const Dtype dtype : {Dtype::kUint8, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    TensorData tensor;
    tensor.dtype = dtype;
    tensor.data = memory.data();
    tensor.dims = {1000, 600};
    tensor.strides = {1, 1000};
    CHECK(streamed(tensor, folder / "t") == indexed(tensor));
    tensor.dims = {3, 777, 200};  // a batch of them, rows not a whole number of panels
    tensor.strides = {200'000, 1, 1000};
    CHECK(streamed(tensor, folder / "t") == indexed(tensor));
    tensor.dims = {3, 100'000};  // rows longer than a panel holds of them
    tensor.strides = {1, 3};
    CHECK(streamed(tensor, folder / "t") == indexed(tensor));
  }
}

TEST_CASE("A tensor may own its bytes without saying where they start") {
  const TemporaryFolder folder;
  TensorData tensor = test::owned_tensor<float>(Dtype::kFloat32, {2}, {1, 2});
  const std::string expected = streamed(tensor, folder / "a");
  tensor.data = nullptr;
  CHECK(streamed(tensor, folder / "b") == expected);
  CHECK(expected.size() == 8);
}
