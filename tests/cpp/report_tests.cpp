// Tests of what a report shows of a file: counts, the tree of modules, the layout, memory.
#include <doctest/doctest.h>

#include <algorithm>

#include "fairlead/onnx/writer.h"
#include "fairlead/report/file_report.h"
#include "onnx_models.h"

using namespace fairlead;
using namespace fairlead::report;
using fairlead::test::SampleModel;
using fairlead::test::TemporaryFolder;

namespace {

onnx::NodeSummary node(const std::string& op, const std::string& module,
                       std::vector<std::string> inputs, std::vector<std::string> outputs) {
  onnx::NodeSummary n;
  n.op = op;
  n.module = module;
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  n.source = "model.py:" + std::to_string(op.size());
  return n;
}

onnx::ValueSummary value(const std::string& name, std::vector<onnx::DimSummary> dims) {
  return {name, 1, "float32", std::move(dims)};
}

// x -> layers.0.fc -> layers.1.fc -> add in the model itself
onnx::ModelSummary two_layers() {
  onnx::ModelSummary s;
  const onnx::DimSummary batch{std::nullopt, "batch"}, twice{std::nullopt, "2*batch"}, four{4, ""};
  s.inputs = {value("x", {batch, four})};
  s.outputs = {value("y", {batch, four})};
  s.value_info = {value("a", {twice, four}), value("b", {batch, four})};
  s.nodes = {node("MatMul", "layers.0.fc", {"x", "w0"}, {"a"}),
             node("MatMul", "layers.1.fc", {"a", "w1"}, {"b"}), node("Add", "", {"b", "x"}, {"y"})};
  for (const char* name : {"layers.0.fc.weight", "layers.1.fc.weight"}) {
    onnx::InitializerSummary w;
    w.name = name;
    w.elem_type = 1;
    w.dtype = "float32";
    w.dims = {4, 4};
    w.bytes = 64;
    s.initializers.push_back(w);
  }
  s.initializers[0].name = "w0";
  s.initializers[1].name = "w1";
  s.file_bytes = 300;
  return s;
}

}  // namespace

TEST_CASE("A pattern stands for modules that differ in a number") {
  CHECK(pattern_of("model.layers.11.attn") == "model.layers.*.attn");
  CHECK(pattern_of("0") == "*");
  CHECK(pattern_of("") == "");
  CHECK(pattern_of("conv2d.1x") == "conv2d.1x");
}

TEST_CASE("Modules are a tree with sums, and items in the order of execution") {
  const FileReport r = report_of(two_layers(), "m.onnx");
  REQUIRE(r.modules.size() == 6);  // model, layers, 0, fc, 1, fc
  CHECK(r.modules[0].operators == 3);
  CHECK(r.modules[0].weight_bytes == 128);
  CHECK(r.modules[0].items == std::vector<std::int32_t>{-1, 2});
  CHECK(r.modules[1].name == "layers");
  CHECK(r.modules[1].operators == 2);
  CHECK(r.modules[1].items == std::vector<std::int32_t>{-2, -4});
  CHECK(r.modules[3].name == "fc");
  CHECK(r.modules[3].items == std::vector<std::int32_t>{0});
  CHECK(r.strings[static_cast<std::size_t>(r.operators[0].result)] == "float32[2*batch, 4]");
}

TEST_CASE("What lies deeper than any model goes is one name") {
  onnx::ModelSummary summary;
  std::string deep = "a";
  for (int k = 0; k < 100'000; ++k) deep += ".a";
  summary.nodes = {node("Relu", deep, {}, {"x"}), node("Relu", deep + "b", {}, {"y"})};
  const FileReport r = report_of(summary, "m.onnx");
  CHECK(r.modules.size() == 1 + 99 + 2);
  CHECK(r.modules[0].operators == 2);
}

TEST_CASE("Operators are counted by kind and by pattern of module") {
  const FileReport r = report_of(two_layers(), "m.onnx");
  REQUIRE(r.by_kind.size() == 2);
  CHECK(r.by_kind[0].name == "MatMul");
  CHECK(r.by_kind[0].count == 2);
  REQUIRE(r.by_kind[0].by_module.size() == 1);
  CHECK(r.by_kind[0].by_module[0].name == "layers.*.fc");
  REQUIRE(r.by_module.size() == 2);
  CHECK(r.by_module[0].pattern == "layers.*.fc");
  CHECK(r.by_module[0].instances == 2);
  CHECK(r.by_module[0].weight_bytes == 128);
}

TEST_CASE("Peak memory frees a result after its last reader") {
  // At batch 3: x is 48 bytes, a 96, b 48, y 48. The peak is x + a + b.
  const PeakMemory peak = peak_memory(two_layers(), {{"batch", 3}});
  CHECK(peak.inputs == 48);
  CHECK(peak.bytes == 48 + 96 + 48);
  CHECK(peak.node == 1);
  CHECK(peak.unknown == 0);
}

TEST_CASE("Sizes that are not given are said to be unknown") {
  CHECK(peak_memory(two_layers(), {}).unknown == 4);
  onnx::ModelSummary strange = two_layers();
  strange.value_info[0].shape->front().name = "no such ( expression";
  CHECK(peak_memory(strange, {{"batch", 3}}).unknown == 1);
}

TEST_CASE("The layout of a written model: tensors inside and beside it, shared bytes once") {
  const TemporaryFolder folder;
  const SampleModel sample;
  onnx::StagedModel staged =
      write_model(sample.model, folder / "m.onnx", onnx::ExternalData::kAlways);
  staged.commit();
  const FileReport r = report_of(onnx::read_model_summary(folder / "m.onnx"), folder / "m.onnx");
  REQUIRE(r.files.size() == 2);
  CHECK(r.files[0].name.empty());
  const std::string data = staged.result().external_path;
  CHECK(folder / r.files[1].name == data);
  CHECK(r.files[1].bytes == static_cast<std::int64_t>(test::file_bytes(data).size()));
  CHECK(r.files[1].shared_bytes == 64 * 64 * 4);  // table and table_again
  CHECK(!r.files[1].missing);
  CHECK(r.tensors[0].pattern == "pages");
  CHECK(r.tensors[0].bytes == 96 * 256 * 4);
  CHECK(
      std::is_sorted(r.tensors.begin(), r.tensors.end(),
                     [](const TensorGroup& a, const TensorGroup& b) { return a.bytes > b.bytes; }));
  std::filesystem::remove(data);
  const FileReport without =
      report_of(onnx::read_model_summary(folder / "m.onnx"), folder / "m.onnx");
  CHECK(without.files[1].missing);
}
