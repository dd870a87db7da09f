// Tests of tensors that are computed when they are read.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <numeric>

#include "fairlead/base/error.h"
#include "fairlead/weights/convert.h"
#include "fairlead/weights/decoded.h"
#include "onnx_models.h"

using namespace fairlead;
using fairlead::test::put_file;
using fairlead::test::TemporaryFolder;

namespace {

constexpr const char* kHeader = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";

std::string one_tensor() {
  std::string file(8, '\0');
  file[0] = static_cast<char>(std::strlen(kHeader));
  return file + kHeader + std::string("\x10\x32\x54\x76");
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> made(count);
  std::iota(made.begin(), made.end(), 0.0f);
  return made;
}

std::vector<float> decoded(const DecodedTensor& tensor) {
  std::vector<float> all(static_cast<std::size_t>(tensor.count()));
  tensor.decode(0, all);
  return all;
}

}  // namespace

TEST_CASE("codes of 8 bits in blocks, the last ones smaller") {
  const std::vector<std::uint8_t> codes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  const std::vector<float> scales = {1, 10, 100, 1000};
  const TableTensor tensor({std::as_bytes(std::span(codes)),
                            8,
                            counted(256),
                            3,
                            5,
                            {std::as_bytes(std::span(scales)), Dtype::kFloat32},
                            2,
                            3});
  const std::vector<float> wanted = {0,  1,  2,    30,   40,   5,     6,    7,
                                     80, 90, 1000, 1100, 1200, 13000, 14000};
  CHECK(decoded(tensor) == wanted);
  for (std::size_t k = 0; k < wanted.size(); ++k) {  // one by one, and the rest from there
    std::vector<float> rest(wanted.size() - k);
    tensor.decode(static_cast<std::int64_t>(k), rest);
    CHECK(std::equal(rest.begin(), rest.end(), wanted.begin() + static_cast<std::ptrdiff_t>(k)));
  }
}

TEST_CASE("codes of 4 bits, and scales that are exponents") {
  const std::vector<std::uint8_t> codes = {0x10, 0x32, 0x54, 0x76}, scales = {127, 128, 126, 130};
  const TableTensor tensor({std::as_bytes(std::span(codes)),
                            4,
                            counted(16),
                            2,
                            4,
                            {std::as_bytes(std::span(scales)), Dtype::kUint8},
                            1,
                            2});
  CHECK(decoded(tensor) == std::vector<float>{0, 1, 4, 6, 2, 2.5, 48, 56});
}

TEST_CASE("sizes and bytes that do not fit together are refused") {
  const std::vector<std::uint8_t> codes(6), scales(2);
  const auto problem = [&](std::int64_t rows, std::int64_t columns, int bits) -> std::string {
    try {
      const TableTensor made({std::as_bytes(std::span(codes)),
                              bits,
                              counted(bits == 4 ? 16 : 256),
                              rows,
                              columns,
                              {std::as_bytes(std::span(scales)), Dtype::kUint8},
                              1,
                              3});
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  CHECK(problem(2, 3, 8) == "nothing");
  CHECK(problem(2, 4, 8).find("Expected 8 bytes of codes, got 6") != std::string::npos);
  CHECK(problem(1, 3, 4).find("bytes of codes, got 6") != std::string::npos);
  CHECK(problem(3, 2, 8).find("Expected 3 scales, got 2") != std::string::npos);
  CHECK(problem(std::int64_t{1} << 40, std::int64_t{1} << 40, 8).find("bytes of codes") !=
        std::string::npos);
}

TEST_CASE("a tensor that is decoded is streamed, transposed too") {
  const TemporaryFolder folder;
  put_file(folder.path() + "/model.safetensors", one_tensor());
  WeightFolder opened(folder.path());
  const std::vector<std::uint8_t> scales = {127, 127};
  const std::span<const std::byte> copied = opened.kept(std::as_bytes(std::span(scales)));
  CHECK(copied.data() != std::as_bytes(std::span(scales)).data());
  const std::span<const std::byte> codes = opened.file(0).bytes().last(4);
  CHECK(opened.kept(codes).data() == codes.data());
  const std::size_t number =
      opened.add_decoded("b", {2, 4},
                         std::make_shared<TableTensor>(CodeBlocks{
                             codes, 4, counted(16), 2, 4, {copied, Dtype::kUint8}, 1, 4}));
  const StoredBlocks natural = StoredBlocks::of(opened, number);
  const std::vector<std::size_t> order = {1, 0};
  const std::string path = folder.path() + "/made";
  ConvertedFile file(opened, path, path, 2);
  const auto first = file.add(Dtype::kFloat32, natural);
  const auto second = file.add(Dtype::kFloat32, natural.permuted(order));
  (void)file.close();
  const WeightFile made(path);
  const auto values = [&](std::int64_t begin) {
    std::vector<float> found(8);
    made.read(begin, std::as_writable_bytes(std::span(found)));
    return found;
  };
  CHECK(values(first.begin) == counted(8));
  CHECK(values(second.begin) == std::vector<float>{0, 4, 1, 5, 2, 6, 3, 7});
}

TEST_CASE("a turned tensor is read in pieces that begin and end anywhere") {
  const TemporaryFolder folder;
  put_file(folder.path() + "/model.safetensors", one_tensor());
  WeightFolder opened(folder.path());
  // Larger than a piece, with rows that no piece divides.
  constexpr std::int64_t kBatch = 3, kRows = 701, kColumns = 911;
  std::vector<std::uint8_t> codes(kBatch * kRows * kColumns);
  for (std::size_t k = 0; k < codes.size(); ++k) codes[k] = static_cast<std::uint8_t>(k * 7 % 251);
  const std::vector<float> scales(kBatch * kRows, 1.0f);
  const std::size_t number =
      opened.add_decoded("b", {kBatch, kRows, kColumns},
                         std::make_shared<TableTensor>(CodeBlocks{
                             opened.kept(std::as_bytes(std::span(codes))),
                             8,
                             counted(256),
                             kBatch * kRows,
                             kColumns,
                             {opened.kept(std::as_bytes(std::span(scales))), Dtype::kFloat32},
                             1,
                             kColumns}));
  const auto value = [&](std::int64_t batch, std::int64_t row, std::int64_t column) {
    return static_cast<float>(
        codes[static_cast<std::size_t>((batch * kRows + row) * kColumns + column)]);
  };
  const StoredBlocks natural = StoredBlocks::of(opened, number);
  const std::vector<std::size_t> turned = {0, 2, 1}, last = {2, 1, 0};
  const std::string path = folder.path() + "/made";
  ConvertedFile file(opened, path, path, 2);
  const auto a = file.add(Dtype::kFloat32, natural.permuted(turned).cut(1, 2, kColumns - 3));
  const auto b = file.add(Dtype::kFloat32, natural.permuted(last));
  (void)file.close();
  const WeightFile made(path);
  std::vector<float> found(static_cast<std::size_t>(kBatch * kRows * (kColumns - 5)));
  made.read(a.begin, std::as_writable_bytes(std::span(found)));
  std::size_t at = 0, wrong = 0;
  for (std::int64_t batch = 0; batch < kBatch; ++batch) {
    for (std::int64_t column = 2; column < kColumns - 3; ++column) {
      for (std::int64_t row = 0; row < kRows; ++row) {
        wrong += found[at++] != value(batch, row, column) ? 1 : 0;
      }
    }
  }
  found.resize(codes.size());
  made.read(b.begin, std::as_writable_bytes(std::span(found)));
  at = 0;
  for (std::int64_t column = 0; column < kColumns; ++column) {
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t batch = 0; batch < kBatch; ++batch) {
        wrong += found[at++] != value(batch, row, column) ? 1 : 0;
      }
    }
  }
  CHECK(wrong == 0);
}
