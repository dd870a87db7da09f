// Tests of weights that several models of one folder hold.
#include "fairlead/onnx/shared_weights.h"

#include <doctest/doctest.h>

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
  shared->declare_files(folder.path(), files);
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
  REQUIRE(experts.model.graph.initializers.size() == 2);
  CHECK(experts.model.graph.initializers[0].data.dims == Sizes{1, 3, 4});
  CHECK(experts.model.graph.nodes[0].outputs == std::vector<TensorId>{0});

  const Stacked halves({2, 4, 3}, {}, {6, 6, 6, 6});  // gate and up of two experts
  CHECK(halves.operators() == Names{"Concat", "Reshape"});
  CHECK(halves.model.graph.initializers[0].data.dims == Sizes{2, 3});
  CHECK(halves.model.graph.initializers.size() == 5);

  const Stacked turned({2, 4, 3}, {12, 1, 4}, {12, 12});
  CHECK(turned.operators() == Names{"Concat", "Transpose"});
  CHECK(turned.model.graph.initializers[1].data.dims == Sizes{1, 3, 4});
}
