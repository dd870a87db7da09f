// Tests of weights that several models of one folder hold.
#include "fairlead/onnx/shared_weights.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>

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
  CHECK(std::filesystem::exists(beside / "a.onnx.data"));
  staged.commit();
  CHECK(location(folder / "a.onnx", "table") == "a.onnx.data");
  CHECK(location(folder / "b.onnx", "table") == "a.onnx.data");
  CHECK(location(folder / "b.onnx", "table_turned") == "a.onnx.data");
  CHECK(location(folder / "b.onnx", "pages") == "b.onnx.data");  // nobody said that it stays
  CHECK(file_bytes(folder / "b.onnx.data").size() < file_bytes(folder / "a.onnx.data").size());
  CHECK(folder.entries() == 4);
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
  CHECK(location(folder / "b.onnx", "table") == "b.onnx.data");
  write_model(sample.model, other / "c.onnx", ExternalData::kAlways, shared).commit();
  CHECK(location(other / "c.onnx", "table") == "c.onnx.data");
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
