// Tests of rectangles that are taken out of stored matrices, and of parts that are read by slabs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>

#include "fairlead/base/error.h"
#include "fairlead/quant/stored.h"
#include "fairlead/weights/convert.h"
#include "fairlead/weights/decoded.h"
#include "fairlead/weights/part_reader.h"
#include "onnx_models.h"

using namespace fairlead;
using fairlead::test::put_file;
using fairlead::test::TemporaryFolder;

namespace {

std::vector<std::byte> drawn(std::int64_t bytes, unsigned seed) {
  std::mt19937 draw(seed);
  std::vector<std::byte> made(static_cast<std::size_t>(bytes));
  for (std::byte& each : made) each = static_cast<std::byte>(draw() & 255);
  return made;
}

// Halves between 1 and 2: whatever is drawn is a number.
std::vector<std::byte> scales_of(std::int64_t count) {
  std::vector<std::byte> made = drawn(2 * count, 5);
  for (std::size_t k = 1; k < made.size(); k += 2) made[k] = std::byte{0x3c};
  return made;
}

struct Made {
  std::vector<std::byte> integers, scales, zeros;
  std::unique_ptr<quant::DecodedMatrix> tensor;
};

Made matrix_of(const quant::StoredFormat& format, std::int64_t rows, std::int64_t columns,
               std::int64_t group) {
  const bool by_row = format.name.starts_with("compressed"), floats = format.minimum;
  const std::int64_t groups = columns / group, in_word = 32 / format.bits;
  const bool none = format.name.ends_with("int8");
  const std::int64_t zeros = none     ? 0
                             : floats ? 2 * rows * groups
                             : by_row ? (rows + in_word - 1) / in_word * groups * 4
                                      : rows / in_word * groups * 4;
  Made made = {drawn(rows * columns * format.bits / 8, 1), scales_of(rows * groups),
               floats ? scales_of(rows * groups) : drawn(zeros, 3), nullptr};
  made.tensor = std::make_unique<quant::DecodedMatrix>(
      quant::grouped_matrix("w", format.name, rows, columns, group, made.integers,
                            {made.scales, Dtype::kFloat16}, made.zeros));
  return made;
}

std::vector<float> decoded(const DecodedTensor& tensor) {
  std::vector<float> all(static_cast<std::size_t>(tensor.count()));
  tensor.decode(0, all);
  return all;
}

void copy_rows(const ByteRows& rows, std::span<std::byte> into) {
  REQUIRE(rows.first + (rows.count - 1) * rows.pitch + rows.width <=
          static_cast<std::int64_t>(rows.of.size()));
  for (std::int64_t k = 0; k < rows.count; ++k) {
    std::copy_n(rows.of.data() + rows.first + k * rows.pitch, rows.width,
                into.data() + k * rows.width);
  }
}

// Every rectangle that is taken out of it, and out of one that was.
void check_rectangles(const DecodedTensor& tensor) {
  const std::vector<float> all = decoded(tensor);
  const std::int64_t rows = tensor.rows(), columns = tensor.columns();
  std::mt19937 draw(7);
  for (int k = 0; k < 40; ++k) {
    Rectangle wanted;
    wanted.row = static_cast<std::int64_t>(draw()) % rows;
    wanted.rows = 1 + static_cast<std::int64_t>(draw()) % (rows - wanted.row);
    wanted.column = static_cast<std::int64_t>(draw()) % columns;
    wanted.columns = 1 + static_cast<std::int64_t>(draw()) % (columns - wanted.column);
    const Rectangle r = tensor.around(wanted);
    REQUIRE(r.row <= wanted.row);
    REQUIRE(r.column <= wanted.column);
    REQUIRE(r.row + r.rows >= wanted.row + wanted.rows);
    REQUIRE(r.column + r.columns >= wanted.column + wanted.columns);
    REQUIRE(r.row + r.rows <= rows);
    REQUIRE(r.column + r.columns <= columns);
    const std::unique_ptr<DecodedTensor> taken = tensor.taken_out(r, copy_rows);
    REQUIRE(taken->rows() == r.rows);
    REQUIRE(taken->columns() == r.columns);
    const std::vector<float> found = decoded(*taken);
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < r.rows; ++i) {
      for (std::int64_t j = 0; j < r.columns; ++j) {
        const auto there = static_cast<std::size_t>((r.row + i) * columns + r.column + j);
        wrong += found[static_cast<std::size_t>(i * r.columns + j)] != all[there] ? 1 : 0;
      }
    }
    CHECK(wrong == 0);
    if (k % 8 == 0 && r.rows > 1) {
      const Rectangle inner = taken->around({r.rows / 2, 1, r.columns / 2, 1});
      const std::vector<float> again = decoded(*taken->taken_out(inner, copy_rows));
      CHECK(again[0] == found[static_cast<std::size_t>(inner.row * r.columns + inner.column)]);
    }
  }
}

constexpr const char* kHeader = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";

std::string one_tensor() {
  std::string file(8, '\0');
  file[0] = static_cast<char>(std::strlen(kHeader));
  return file + kHeader + "1234";
}

}  // namespace

TEST_CASE("a rectangle of a matrix is a matrix, in every format of groups") {
  for (const quant::StoredFormat& format : quant::group_formats()) {
    CAPTURE(format.name);
    for (const std::int64_t group : {32, 64, 192}) {
      const Made made = matrix_of(format, 40, 192, group);
      check_rectangles(*made.tensor);
    }
  }
}

TEST_CASE("a rectangle of codes is a tensor of codes, whatever its blocks are") {
  std::vector<float> table(256);
  std::iota(table.begin(), table.end(), -100.0f);
  for (const int bits : {4, 8}) {
    for (const auto& [rows, columns] : {std::pair{36L, 50L}, std::pair{36L, 51L}}) {
      for (const auto& [high, wide] : {std::pair{1L, columns}, std::pair{rows, columns},
                                       std::pair{7L, 6L}, std::pair{1L, 1L}}) {
        const std::vector<std::byte> codes = drawn(rows * columns * bits / 8, 2);
        std::vector<float> scales(
            static_cast<std::size_t>((rows + high - 1) / high * ((columns + wide - 1) / wide)));
        std::iota(scales.begin(), scales.end(), 1.0f);
        check_rectangles(TableTensor({codes,
                                      bits,
                                      {table.begin(), table.begin() + (bits == 4 ? 16 : 256)},
                                      rows,
                                      columns,
                                      {std::as_bytes(std::span(scales)), Dtype::kFloat32},
                                      high,
                                      wide}));
      }
    }
  }
}

TEST_CASE("stored matrices are streamed as they are, cut and transposed") {
  const TemporaryFolder folder;
  put_file(folder.path() + "/model.safetensors", one_tensor());
  for (const quant::StoredFormat& format : quant::group_formats()) {
    CAPTURE(format.name);
    WeightFolder opened(folder.path());
    constexpr std::int64_t kRows = 1208, kColumns = 1280;  // more than are taken out at once
    Made made = matrix_of(format, kRows, kColumns, 128);
    const std::vector<float> all = decoded(*made.tensor);
    const std::size_t number = opened.add_decoded(
        "b", {kRows, kColumns}, std::shared_ptr<quant::DecodedMatrix>(std::move(made.tensor)));
    const StoredBlocks natural = StoredBlocks::of(opened, number);
    const std::string path = folder.path() + "/made";
    ConvertedFile file(opened, path, path, 2);
    const std::vector<std::size_t> order = {1, 0};
    const auto a = file.add(Dtype::kFloat32, natural);
    const auto b = file.add(Dtype::kFloat32, natural.permuted(order));
    const auto c = file.add(Dtype::kFloat32, natural.cut(1, 7, 1001).cut(0, 3, 1100));
    (void)file.close();
    const WeightFile written(path);
    const auto wrong = [&](const ConvertedFile::Added& added, std::int64_t rows,
                           std::int64_t columns, const auto& place) {
      std::vector<float> found(static_cast<std::size_t>(rows * columns));
      written.read(added.begin, std::as_writable_bytes(std::span(found)));
      std::size_t count = 0;
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          count += found[static_cast<std::size_t>(i * columns + j)] !=
                           all[static_cast<std::size_t>(place(i, j))]
                       ? 1
                       : 0;
        }
      }
      return count;
    };
    CHECK(wrong(a, kRows, kColumns, [](auto i, auto j) { return i * kColumns + j; }) == 0);
    CHECK(wrong(b, kColumns, kRows, [](auto i, auto j) { return j * kColumns + i; }) == 0);
    CHECK(wrong(c, 1097, 994, [](auto i, auto j) { return (i + 3) * kColumns + j + 7; }) == 0);
  }
}

TEST_CASE("a turned part of a file is read by slabs") {
  const TemporaryFolder folder;
  // Larger than a slab, in elements of 1, 2, 4 and 8 bytes.
  for (const auto& [name, dtype, size] :
       {std::tuple{"U8", Dtype::kUint8, 1}, std::tuple{"F16", Dtype::kFloat16, 2},
        std::tuple{"F32", Dtype::kFloat32, 4}, std::tuple{"I64", Dtype::kInt64, 8}}) {
    const std::string word = name;  // Clang before 16 captures no parts of a binding
    CAPTURE(word);
    constexpr std::int64_t kBatch = 3, kRows = 1501, kColumns = 1101;
    const std::int64_t bytes = kBatch * kRows * kColumns * size;
    const std::vector<std::byte> data = drawn(bytes, 9);
    std::string header = std::string(R"({"a":{"dtype":")") + word + R"(","shape":[3,1501,1101],)" +
                         R"("data_offsets":[0,)" + std::to_string(bytes) + "]}}";
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    put_file(folder.path() + "/model.safetensors",
             file + header + std::string(reinterpret_cast<const char*>(data.data()), data.size()));
    const WeightFolder opened(folder.path());
    const StoredBlocks natural = StoredBlocks::of(opened, 0);
    for (const std::vector<std::size_t>& order :
         {std::vector<std::size_t>{0, 2, 1}, {2, 1, 0}, {2, 0, 1}, {1, 0, 2}, {1, 2, 0}}) {
      const StoredBlocks turned = natural.permuted(order);
      const std::string path = folder.path() + "/made";
      ConvertedFile made(opened, path, path, 2);
      const auto added = made.add(dtype, turned);
      (void)made.close();
      std::vector<std::byte> found(data.size());
      WeightFile(path).read(added.begin, found);
      const std::int64_t strides[] = {kRows * kColumns, kColumns, 1};
      const std::vector<std::int64_t>& d = turned.dims();
      std::size_t wrong = 0;
      const std::byte* at = found.data();
      for (std::int64_t i = 0; i < d[0]; ++i) {
        for (std::int64_t j = 0; j < d[1]; ++j) {
          for (std::int64_t k = 0; k < d[2]; ++k, at += size) {
            const std::int64_t place =
                i * strides[order[0]] + j * strides[order[1]] + k * strides[order[2]];
            wrong +=
                std::memcmp(at, data.data() + place * size, static_cast<std::size_t>(size)) != 0
                    ? 1
                    : 0;
          }
        }
      }
      CHECK(wrong == 0);
      CHECK(read_part(opened, turned.cut(0, 0, 2).part(opened, 0)) ==
            std::vector<std::byte>(found.begin(), found.begin() + 2 * d[1] * d[2] * size));
    }
  }
}

TEST_CASE("a file that became shorter is an error, also where several threads read it") {
  const TemporaryFolder folder;
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[900,900],"data_offsets":[0,3240000]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  const std::string path = folder.path() + "/model.safetensors";
  put_file(path, file + header + std::string(3240000, '\1'));
  const WeightFolder opened(folder.path());
  put_file(path, file + header + std::string(1000000, '\1'));
  const std::vector<std::size_t> order = {1, 0};
  ConvertedFile made(opened, folder.path() + "/made", "made", 4);
  CHECK_THROWS_AS((void)made.add(Dtype::kFloat32, StoredBlocks::of(opened, 0).permuted(order)),
                  Error);
}
