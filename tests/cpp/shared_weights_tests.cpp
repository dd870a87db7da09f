// Tests of weights that several models of one folder hold.
#include "fairlead/onnx/shared_weights.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "fairlead/base/error.h"
#include "fairlead/onnx/data_files.h"
#include "fairlead/onnx/reader.h"
#include "fairlead/onnx/references.h"
#include "fairlead/onnx/writer.h"
#include "onnx_models.h"

using namespace fairlead;
using namespace fairlead::onnx;
using fairlead::test::file_bytes;
using fairlead::test::SampleModel;
using fairlead::test::TemporaryFolder;

namespace {

void declare(SharedWeights& shared, const std::vector<float>& values) {
  shared.declare(reinterpret_cast<const std::byte*>(values.data()),
                 static_cast<std::int64_t>(values.size() * sizeof(float)));
}

std::string location(const std::string& path, const std::string& name) {
  for (const InitializerSummary& row : read_model_summary(path).initializers) {
    if (row.name == name) return row.location;
  }
  return "no initializer";
}

}  // namespace

TEST_CASE("Declared memory is one range where it overlaps") {
  const TemporaryFolder folder;
  const SampleModel sample;
  const auto begin = reinterpret_cast<const std::byte*>(sample.table.data());
  const auto bytes = static_cast<std::int64_t>(sample.table.size() * sizeof(float));
  const auto stored = [&](const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) {
    const auto shared = std::make_shared<SharedWeights>();
    for (const auto& [from, to] : ranges) shared->declare(begin + from, to - from);
    write_model(sample.model, folder / "a.onnx", ExternalData::kAlways, shared).commit();
    return shared->stored(begin);
  };
  CHECK(stored({{0, bytes}}));
  CHECK_FALSE(stored({}));
  CHECK_FALSE(stored({{0, bytes - 4}}));
  CHECK_FALSE(stored({{4, bytes}}));
  CHECK(stored({{0, 8}, {4, bytes}}));
  CHECK(stored({{16, 24}, {8, bytes}, {0, 12}}));  // one within another, and one before
  CHECK(stored({{0, bytes}, {8, 16}}));            // a view of what was declared
  CHECK_FALSE(stored({{0, 8}, {16, bytes}}));      // a gap
}

TEST_CASE("A second model refers to the weights of the first") {
  const TemporaryFolder folder;
  const SampleModel sample;
  const auto shared = std::make_shared<SharedWeights>();
  declare(*shared, sample.table);
  write_model(sample.model, folder / "a.onnx", ExternalData::kAlways, shared).commit();
  CHECK(shared->stored(reinterpret_cast<const std::byte*>(sample.table.data())));

  StagedModel staged = write_model(sample.model, folder / "b.onnx", ExternalData::kAlways, shared);
  // Loadable before it has its name: the first model's data is there too.
  const auto beside = std::filesystem::path(staged.path()).parent_path();
  const std::string first = location(folder / "a.onnx", "table");
  CHECK(is_data_name(first, "a.onnx"));
  CHECK(std::filesystem::exists(beside / first));
  staged.commit();
  CHECK(location(folder / "b.onnx", "table") == first);
  CHECK(location(folder / "b.onnx", "table_turned") == first);
  const std::string second = location(folder / "b.onnx", "pages");  // nobody said that it stays
  CHECK(is_data_name(second, "b.onnx"));
  CHECK(file_bytes(folder / second).size() < file_bytes(folder / first).size());
  CHECK(folder.entries() == 4);

  // Written again by itself, the first has its own: the second still finds what it refers to.
  write_model(sample.model, folder / "a.onnx", ExternalData::kNever).commit();
  CHECK(folder.entries() == 4);
  write_model(sample.model, folder / "b.onnx", ExternalData::kNever).commit();
  CHECK(folder.entries() == 2);
}

TEST_CASE(
    "Weights of a model that was not committed, or lies in another folder, are not referred to") {
  const TemporaryFolder folder, other;
  const SampleModel sample;
  const auto shared = std::make_shared<SharedWeights>();
  declare(*shared, sample.table);
  write_model(sample.model, folder / "a.onnx", ExternalData::kAlways, shared).discard();
  CHECK(shared->folder().empty());
  write_model(sample.model, folder / "b.onnx", ExternalData::kAlways, shared).commit();
  CHECK(is_data_name(location(folder / "b.onnx", "table"), "b.onnx"));
  write_model(sample.model, other / "c.onnx", ExternalData::kAlways, shared).commit();
  CHECK(is_data_name(location(other / "c.onnx", "table"), "c.onnx"));
}

TEST_CASE("A model without external data keeps its weights, and shares none") {
  const TemporaryFolder folder;
  const SampleModel sample;
  const auto shared = std::make_shared<SharedWeights>();
  declare(*shared, sample.table);
  write_model(sample.model, folder / "a.onnx", ExternalData::kNever, shared).commit();
  CHECK_FALSE(shared->stored(reinterpret_cast<const std::byte*>(sample.table.data())));
  CHECK(folder.entries() == 1);
}

TEST_CASE("What lies in files is referred to, however small, and nothing of it is written") {
  const TemporaryFolder folder;
  SampleModel sample;
  const auto begin = reinterpret_cast<const std::byte*>(sample.table.data());
  const auto bytes = static_cast<std::int64_t>(sample.table.size() * sizeof(float));
  fairlead::test::put_file(
      folder / "w.safetensors",
      std::string(1000, 'x') + std::string(static_cast<std::size_t>(bytes), 'y'));
  const auto shared = std::make_shared<SharedWeights>();
  FileRegions files;
  files.add(begin, {"w.safetensors", 1000, bytes});
  shared->declare_files(folder.path(), std::move(files));
  CHECK(shared->stored(begin));
  refer_to_files(sample.model, shared->files());
  StagedModel staged = write_model(sample.model, folder / "m.onnx", ExternalData::kNever, shared);
  CHECK(staged.result().external_bytes == 0);
  staged.commit();
  int found = 0;
  for (const InitializerSummary& row : read_model_summary(folder / "m.onnx").initializers) {
    if (!row.external) continue;
    CHECK(row.location == "w.safetensors");
    ++found;
  }
  CHECK(found > 0);
  CHECK(location(folder / "m.onnx", "table") == "w.safetensors");
  CHECK(folder.entries() == 2);
  CHECK_THROWS_AS(
      (void)write_model(sample.model, TemporaryFolder() / "m.onnx", ExternalData::kAuto, shared),
      Error);
}

namespace {

struct Stacked {
  std::vector<float> values = std::vector<float>(24);
  Model model;
  FileRegions files;

  // An initializer of these sizes and strides over 24 numbers, which parts of files make up.
  Stacked(std::vector<std::int64_t> dims, std::vector<std::int64_t> strides,
          const std::vector<std::int64_t>& parts) {
    const auto* at = reinterpret_cast<const std::byte*>(values.data());
    TensorData data;
    data.dims = std::move(dims);
    data.strides = std::move(strides);
    data.data = at;
    model.tensors.push_back({"w", Dtype::kFloat32, {}});
    model.graph.initializers.push_back({0, data});
    std::int64_t number = 0;
    for (const std::int64_t elements : parts) {
      files.add(at, {std::to_string(number++), 64, elements * 4});
      at += elements * 4;
    }
    refer_to_files(model, files);
  }

  [[nodiscard]] std::vector<std::string> operators() const {
    std::vector<std::string> names;
    for (const Node& node : model.graph.nodes) names.push_back(node.op);
    return names;
  }
};

}  // namespace

TEST_CASE("Tensors of several parts of files are joined by nodes") {
  using Names = std::vector<std::string>;
  using Sizes = std::vector<std::int64_t>;
  CHECK(Stacked({2, 3, 4}, {}, {24}).operators() == Names{});
  CHECK(Stacked({2, 3, 4}, {12, 4, 1}, {24}).operators() == Names{});
  CHECK(Stacked({2, 1, 12}, {12, 77, 1}, {24}).operators() == Names{});
  CHECK(Stacked({4, 6}, {1, 4}, {24}).operators() == Names{"Transpose"});
  CHECK(Stacked({4, 6}, {12, 2}, {24}).operators() == Names{});  // not side by side
  CHECK(Stacked({4, 6}, {}, {12}).operators() == Names{});       // half of it in no file

  const Stacked experts({2, 3, 4}, {}, {12, 12});
  CHECK(experts.operators() == Names{"Concat"});
  REQUIRE(experts.model.graph.initializers.size() == 1);
  CHECK(experts.model.graph.initializers[0].pieces == 2);
  CHECK(experts.model.graph.initializers[0].data.dims == Sizes{2, 3, 4});
  CHECK(experts.model.graph.nodes[0].outputs == std::vector<TensorId>{0});

  const Stacked halves({2, 4, 3}, {}, {6, 6, 6, 6});  // gate and up of two experts
  CHECK(halves.operators() == Names{"Concat", "Reshape"});
  CHECK(halves.model.graph.initializers[0].data.dims == Sizes{8, 3});
  CHECK(halves.model.graph.initializers[0].pieces == 4);
  CHECK(halves.model.graph.initializers.size() == 2);

  const Stacked turned({2, 4, 3}, {12, 1, 4}, {12, 12});
  CHECK(turned.operators() == Names{"Concat", "Transpose"});
  CHECK(turned.model.graph.initializers[0].data.dims == Sizes{2, 3, 4});
}

TEST_CASE("Each part of a file is a tensor of the written model") {
  const TemporaryFolder folder;
  Stacked halves({2, 4, 3}, {}, {6, 6, 6, 6});
  for (const char* name : {"0", "1", "2", "3"}) {
    fairlead::test::put_file(folder / name, std::string(100, 'x'));
  }
  const auto shared = std::make_shared<SharedWeights>();
  shared->declare_files(folder.path(), std::move(halves.files));
  const StagedModel staged =
      write_model(halves.model, folder / "m.onnx", ExternalData::kAuto, shared);
  const ModelSummary summary = read_model_summary(staged.path());
  REQUIRE(summary.nodes.size() == 2);
  const std::vector<std::string> names{"w/0", "w/1", "w/2", "w/3"};
  CHECK(summary.nodes[0].inputs == names);
  REQUIRE(summary.initializers.size() == 5);
  for (std::size_t k = 0; k < 4; ++k) {
    const InitializerSummary& row = summary.initializers[k];
    CHECK(row.name == names[k]);
    CHECK(row.location == std::to_string(k));
    CHECK(row.offset == 64);
    CHECK(row.dims == std::vector<std::int64_t>{2, 3});
    CHECK(row.length == 24);
  }
  CHECK(summary.file_bytes == staged.result().model_bytes);
  CHECK_THROWS_AS((void)write_model(halves.model, folder / "m.onnx", ExternalData::kAuto), Error);
}

TEST_CASE(
    "weights that are elsewhere are fetched a piece at a time, and written in their own order") {
  const TemporaryFolder folder;
  std::vector<float> numbers(20);
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k);
  std::vector<std::int64_t> asked;
  const auto fetch = [&](std::size_t number, std::int64_t offset, std::span<std::byte> into) {
    REQUIRE(number == 1);
    asked.push_back(offset);
    std::memcpy(into.data(), reinterpret_cast<const std::byte*>(numbers.data()) + offset,
                into.size());
  };
  const auto fetched = std::make_shared<FetchedWeights>(std::vector<std::int64_t>{100, 80}, fetch);
  const std::byte* const at = fetched->memory().data() + fetched->offset(1);
  CHECK(fetched->holds(at + 79));
  CHECK(!fetched->holds(at + 80));
  auto shared = std::make_shared<SharedWeights>();
  shared->declare_fetched(fetched);
  CHECK(shared->stored(at));

  Model model;
  model.pool = std::make_shared<ExprPool>();
  for (const char* name : {"whole", "turned"}) model.tensors.push_back({name, Dtype::kFloat32, {}});
  TensorData whole, turned;
  whole.dims = {4, 5};
  turned.dims = {5, 4};
  turned.strides = {1, 5};
  whole.data = turned.data = at;
  model.graph.initializers = {{0, whole}, {1, turned}};
  const StagedModel staged = write_model(model, folder / "m.onnx", ExternalData::kNever, shared);
  CHECK(!fetched->touched());
  CHECK_THROWS_AS((void)write_model(model, folder / "m.onnx", ExternalData::kNever), Error);
  CHECK(asked == std::vector<std::int64_t>{0, 0});
  const std::string bytes = fairlead::test::file_bytes(staged.path());
  for (const InitializerSummary& row : read_model_summary(staged.path()).initializers) {
    std::vector<float> found(20);
    std::memcpy(found.data(), bytes.data() + row.offset, 80);
    for (std::size_t k = 0; k < 20; ++k) {
      CHECK(found[k] == (row.name == "whole" ? numbers[k] : numbers[k % 4 * 5 + k / 4]));
    }
  }
  // All of them stay where somebody computes.
  const auto both = [&](std::size_t, std::int64_t, std::span<std::byte> into) {
    std::ranges::fill(into, std::byte{1});
  };
  FetchedWeights all({100, 80}, both);
  all.fill();
  CHECK(!all.touched());
  CHECK(all.memory()[99] == std::byte{1});
  // What cannot be fetched is an error, and nothing is left.
  const auto failing = [](std::size_t, std::int64_t, std::span<std::byte>) {
    throw Error(ErrorCode::kIo, "gone");
  };
  const auto broken = std::make_shared<FetchedWeights>(std::vector<std::int64_t>{80}, failing);
  model.graph.initializers.pop_back();
  model.graph.initializers[0].data.data = broken->memory().data();
  shared->declare_fetched(broken);
  CHECK_THROWS_AS((void)write_model(model, folder / "n.onnx", ExternalData::kAlways, shared),
                  Error);
  CHECK(!std::filesystem::exists(folder / "n.onnx"));
}
