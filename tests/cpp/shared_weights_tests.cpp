// Tests of weights that several models of one folder hold.
#include "fairlead/onnx/shared_weights.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>

#include "fairlead/onnx/data_files.h"
#include "fairlead/onnx/reader.h"
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
