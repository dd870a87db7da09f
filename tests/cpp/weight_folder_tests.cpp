// Tests of checkpoints where they are: headers of safetensors files, folders of them, and which
// memory stands for which file.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "fairlead/base/error.h"
#include "fairlead/base/half.h"
#include "fairlead/weights/convert.h"
#include "fairlead/weights/file_regions.h"
#include "fairlead/weights/place_file.h"
#include "fairlead/weights/reserved_memory.h"
#include "fairlead/weights/weight_folder.h"
#include "onnx_models.h"

using namespace fairlead;
using fairlead::test::put_file;
using fairlead::test::TemporaryFolder;

namespace {

// A file with this header and so many bytes 0, 1, 2 ... of data.
std::string safetensors(const std::string& header, std::size_t data, std::int64_t length = -1) {
  std::string file;
  const auto stated =
      static_cast<std::uint64_t>(length < 0 ? static_cast<std::int64_t>(header.size()) : length);
  for (int k = 0; k < 8; ++k) file.push_back(static_cast<char>(stated >> (8 * k) & 0xff));
  file += header;
  for (std::size_t k = 0; k < data; ++k) file.push_back(static_cast<char>(k));
  return file;
}

std::vector<StoredTensor> read(const std::string& file) {
  return read_safetensors(std::as_bytes(std::span(file)), "w.safetensors");
}

std::string row(const std::string& name, const std::string& type, const std::string& shape,
                const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":[" + shape +
         "],\"data_offsets\":[" + offsets + "]}";
}

std::string problem(const std::string& file) {
  try {
    (void)read(file);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidInput);
    return error.what();
  }
  return "nothing";
}

std::string problem_of_folder(const TemporaryFolder& folder) {
  try {
    const WeightFolder opened(folder.path());
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

bool says(const std::string& text, const std::string& words) {
  INFO(text);
  const bool found = text.find(words) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("tensors are found where the header says, in the order of their bytes") {
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," +
                             row("b", "F32", "2", "6,14") + "," + row("a", "BF16", "3,1", "0,6") +
                             "," + row("none", "F16", "0,4", "14,14") + "}  ";
  const auto found = read(safetensors(header, 14));
  REQUIRE(found.size() == 3);
  CHECK(found[0].name == "a");
  CHECK(found[0].dtype == Dtype::kBfloat16);
  CHECK(found[0].dims == std::vector<std::int64_t>{3, 1});
  CHECK(found[0].begin == static_cast<std::int64_t>(8 + header.size()));
  CHECK(found[0].bytes == 6);
  CHECK(found[1].name == "b");
  CHECK(found[1].begin == found[0].begin + 6);
  CHECK(found[2].bytes == 0);
}

TEST_CASE("types that tensors here do not have are found all the same") {
  const auto found = read(safetensors("{" + row("w", "F4", "4", "0,2") + "}", 2));
  CHECK(found[0].type == "F4");
  CHECK_FALSE(found[0].dtype.has_value());
}

TEST_CASE("a header that does not fit its file is one clear error") {
  const std::string one = row("w", "F32", "2", "0,8");
  CHECK(
      problem("abc") ==
      "[read_weights] Expected a safetensors file, got 3 bytes in 'w.safetensors'. Check that the "
      "file is complete.");
  says(problem(safetensors("{" + one + "}", 8, 1000)), "a header of 1000 bytes, got");
  says(problem(safetensors("{" + one + "}", 8, 200'000'000)), "at most 100000000 bytes");
  says(problem(safetensors("{" + one, 8)), "a header of JSON");
  says(problem(safetensors("[1]", 0)), "tensors by name");
  says(problem(safetensors("{" + one + "}", 7)), "within the 7 bytes of data, got an end at 8");
  says(problem(safetensors("{" + one + "}", 9)), "1 bytes of no tensor at the end");
  says(problem(safetensors("{" + one + "," + one + "}", 8)), "'w' twice");
  says(problem(safetensors("{" + row("w", "F32", "2", "0,4") + "}", 4)), "8 bytes of 'w'");
  says(problem(safetensors("{" + row("w", "F99", "2", "0,8") + "}", 8)), "a known dtype of 'w'");
  says(problem(safetensors("{" + row("w", "F32", "-2", "0,8") + "}", 8)), "sizes in the shape");
  says(problem(safetensors("{" + row("w", "F32", "2.5", "0,8") + "}", 8)), "sizes in the shape");
  says(problem(safetensors("{" + row("w", "F32", "2", "8,0") + "}", 8)), "in order");
  says(problem(safetensors("{" + row("../w", "F32", "2", "0,8") + "}", 8)), "names of tensors");
  says(problem(safetensors("{" + row("w", "F32", "4294967296,4294967296", "0,8") + "}", 8)),
       "an absurd shape");
  says(problem(safetensors("{\"w\":{\"dtype\":\"F32\"}}", 8)), "a shape of 'w'");
  says(problem(safetensors("{" + one + "," + row("v", "F32", "2", "4,12") + "}", 12)),
       "'v' overlapping 'w'");
  says(problem(safetensors("{" + one + "," + row("v", "F32", "1", "12,16") + "}", 16)),
       "4 bytes of no tensor before 'v'");
}

TEST_CASE("a folder is one file or the shards of an index") {
  const TemporaryFolder folder;
  says(problem_of_folder(folder), "Expected model.safetensors or model.safetensors.index.json in");
  put_file(folder.path() + "/pytorch_model.bin", "pickled");
  says(problem_of_folder(folder), "which is not read. Convert it: python -c");
  put_file(folder.path() + "/model.safetensors",
           safetensors("{" + row("w", "U8", "2", "0,2") + "}", 2));
  const WeightFolder one(folder.path());
  REQUIRE(one.tensors().size() == 1);
  CHECK(std::to_integer<int>(one.data(one.tensors()[0])[1]) == 1);

  // The index comes first.
  const std::string index = folder.path() + "/model.safetensors.index.json";
  put_file(index, R"({"weight_map":{"a":"x-1.safetensors","b":"x-2.safetensors"}})");
  put_file(folder.path() + "/x-1.safetensors",
           safetensors("{" + row("a", "U8", "2", "0,2") + "}", 2));
  says(problem_of_folder(folder), "x-2.safetensors', which the index names, got no such file");
  put_file(folder.path() + "/x-2.safetensors",
           safetensors("{" + row("a", "U8", "2", "0,2") + "}", 2));
  says(problem_of_folder(folder), "each tensor in one file, got 'a' in");
  put_file(folder.path() + "/x-2.safetensors",
           safetensors("{" + row("c", "U8", "2", "0,2") + "}", 2));
  says(problem_of_folder(folder), "x-2.safetensors', as the index says, got none");
  put_file(folder.path() + "/x-2.safetensors",
           safetensors("{" + row("b", "U8", "2", "0,2") + "}", 2));
  const WeightFolder two(folder.path());
  CHECK(two.names() == std::vector<std::string>{"x-1.safetensors", "x-2.safetensors"});
  CHECK(two.tensors().size() == 2);
  for (const std::string name :
       {"../x.safetensors", "/etc/x.safetensors", "a/x.safetensors", "x", "..\\\\x.safetensors"}) {
    put_file(index, R"({"weight_map":{"a":")" + name + "\"}}");
    says(problem_of_folder(folder), "Expected names of .safetensors files beside it");
  }
  put_file(index, R"({"weight_map":[]})");
  says(problem_of_folder(folder), "a weight_map in");
}

TEST_CASE("a file that changes while it is read is an error") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/model.safetensors";
  const std::string content = safetensors("{" + row("w", "U8", "8", "0,8") + "}", 8);
  put_file(path, content);
  const WeightFolder opened(folder.path());
  opened.check_unchanged();
  // What is written to its memory stays there.
  const_cast<std::byte*>(opened.data(opened.tensors()[0]))[0] = std::byte{99};
  CHECK(fairlead::test::file_bytes(path) == content);
  opened.check_unchanged();
  REQUIRE(::truncate(path.c_str(), 12) == 0);
  CHECK_THROWS_WITH_AS(
      opened.check_unchanged(),
      ("[read_weights] Expected '" + path +
       "' to stay as it is, got a file that changed while it was read. Export again when nothing "
       "writes to it.")
          .c_str(),
      Error);
  std::vector<std::byte> bytes(8);
  CHECK_THROWS_AS(opened.file(0).read(opened.tensors()[0].stored.begin, bytes), Error);
}

TEST_CASE("memory stands for one part of a file, for several, or for none") {
  const std::vector<std::byte> memory(100);
  const std::byte* at = memory.data();
  FileRegions regions;
  CHECK(regions.empty());
  regions.add(at + 10, {"a", 1000, 20});
  regions.add(at + 30, {"a", 1020, 10});  // the bytes that follow are another tensor
  regions.add(at + 40, {"b", 0, 10});
  regions.add(at + 60, {"b", 10, 10});
  CHECK(regions.find(at + 10, 20) == std::vector<FilePart>{{"a", 1000, 20}});
  CHECK(regions.find(at + 12, 25) == std::vector<FilePart>{{"a", 1002, 18}, {"a", 1020, 7}});
  CHECK(regions.find(at + 35, 10) == std::vector<FilePart>{{"a", 1025, 5}, {"b", 0, 5}});
  CHECK(regions.find(at + 45, 10).empty());  // 50 to 60 is no file's
  CHECK(regions.find(at, 5).empty());
  CHECK(regions.find(at + 65, 10).empty());
  CHECK(regions.find(at + 10, 0).empty());
  CHECK(regions.holds(at + 69));
  CHECK_FALSE(regions.holds(at + 70));
  CHECK_THROWS_AS(regions.add(at + 5, {"c", 0, 10}), Error);
}

namespace {

// A checkpoint of the numbers 0.5, 1.5, ... as float32 "w" of these sizes.
std::string put_floats(const TemporaryFolder& folder, const std::string& shape, std::size_t count) {
  std::string file =
      safetensors("{" + row("w", "F32", shape, "0," + std::to_string(4 * count)) + "}", 4 * count);
  for (std::size_t k = 0; k < count; ++k) {
    const float value = static_cast<float>(k) + 0.5F;
    std::memcpy(file.data() + file.size() - 4 * (count - k), &value, 4);
  }
  put_file(folder / "model.safetensors", file);
  return file;
}

std::vector<float> floats(const std::string& bytes) {
  std::vector<float> found(bytes.size() / 4);
  std::memcpy(found.data(), bytes.data(), 4 * found.size());
  return found;
}

}  // namespace

TEST_CASE("weights are converted and put into another order, a piece at a time") {
  const TemporaryFolder folder;
  constexpr std::size_t kMany = 2'500'000;  // more than a piece for each thread
  put_floats(folder, std::to_string(kMany), kMany);
  const WeightFolder opened(folder.path());
  const std::int64_t begin = opened.tensors()[0].stored.begin;
  ConvertedFile file(opened, folder / "made", "made", 2);
  const auto whole = static_cast<std::int64_t>(kMany);
  CHECK(file.add(Dtype::kFloat32, {{0, begin, Dtype::kFloat32, {2, 3}, {1, 2}}}).begin == 0);
  const auto [halves, size, hash] =
      file.add(Dtype::kBfloat16, {{0, begin, Dtype::kFloat32, {whole}, {1}}});
  CHECK(halves == 4096);  // a large one has a page of its own
  CHECK(size == 2 * whole);
  const std::int64_t joined = file.add(Dtype::kFloat64, {{0, begin + 4, Dtype::kFloat32, {1}, {1}},
                                                         {0, begin, Dtype::kFloat32, {1}, {1}}})
                                  .begin;
  CHECK_THROWS_AS((void)file.add(Dtype::kFloat32, {{0, begin, Dtype::kInt32, {1}, {1}}}), Error);
  CHECK_THROWS_AS((void)file.add(Dtype::kFloat32, {{0, begin, Dtype::kFloat32, {2}, {whole}}}),
                  Error);
  CHECK(file.close().size() == 16);
  const WeightFile made(folder / "made");
  CHECK(made.hash(halves, 2 * whole) == hash);
  CHECK(made.hash(halves + 2, 2 * whole - 2) != hash);
  CHECK_THROWS_AS((void)made.hash(halves, 4 * whole), Error);
  const std::string bytes = fairlead::test::file_bytes(folder / "made");
  CHECK(floats(bytes.substr(0, 24)) == std::vector<float>{0.5F, 2.5F, 4.5F, 1.5F, 3.5F, 5.5F});
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < kMany; ++k) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + halves + 2 * static_cast<std::int64_t>(k), 2);
    wrong += bits == bfloat16_from_float(static_cast<float>(k) + 0.5F) ? 0 : 1;
  }
  CHECK(wrong == 0);
  double second = 0;
  std::memcpy(&second, bytes.data() + joined, 8);
  CHECK(second == 1.5);
}

TEST_CASE("a file is placed under another name, and no half of one stays") {
  const TemporaryFolder folder;
  const std::string content(10'000'000, 'w');
  put_file(folder / "from", content);
  const Placed how = place_file(folder / "from", folder / "copy", false);
  CHECK((how == Placed::kShared || how == Placed::kKernel || how == Placed::kCopied));
  CHECK(fairlead::test::file_bytes(folder / "copy") == content);
  CHECK(place_file(folder / "from", folder / "link", true) == Placed::kLinked);
  CHECK(std::filesystem::hard_link_count(folder / "from") == 2);
  CHECK_THROWS_AS((void)place_file(folder / "from", folder / "copy", false), Error);
  CHECK_THROWS_AS((void)place_file(folder / "from", folder / "link", true), Error);
  CHECK_THROWS_AS((void)place_file(folder / "none", folder / "other", false), Error);
  CHECK_FALSE(std::filesystem::exists(folder / "other"));
}

TEST_CASE("reserved memory takes none until somebody looks, and it is known that somebody did") {
  ReservedMemory memory(1ll << 40);
  CHECK(memory.bytes().size() == 1ull << 40);
  CHECK_FALSE(memory.touched());
  CHECK(std::to_integer<int>(memory.bytes()[1ull << 39]) == 0);
  CHECK(memory.touched());
  memory.forget();
  CHECK_FALSE(memory.touched());
  memory.bytes()[5] = std::byte{7};
  CHECK(memory.touched());
  CHECK(std::to_integer<int>(memory.bytes()[5]) == 7);
  memory.forget();
  CHECK(std::to_integer<int>(memory.bytes()[5]) == 0);
}
