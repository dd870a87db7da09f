// Tests of the ONNX writer: what is in the file, where the tensors lie, and every way to fail.
#include "fairlead/onnx/writer.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "fairlead/base/error.h"
#include "fairlead/onnx/data_files.h"
#include "fairlead/onnx/encode_model.h"
#include "fairlead/onnx/reader.h"
#include "onnx_models.h"

using namespace fairlead;
using namespace fairlead::onnx;
using fairlead::test::file_bytes;
using fairlead::test::put_file;
using fairlead::test::SampleModel;
using fairlead::test::TemporaryFolder;

namespace {

const InitializerSummary& initializer(const ModelSummary& summary, const std::string& name) {
  for (const auto& row : summary.initializers) {
    if (row.name == name) return row;
  }
  throw std::runtime_error("no initializer " + name);
}

std::vector<float> floats_at(const std::string& bytes, const InitializerSummary& row) {
  std::vector<float> values(static_cast<std::size_t>(row.length) / sizeof(float));
  REQUIRE(row.offset + row.length <= static_cast<std::int64_t>(bytes.size()));
  std::memcpy(values.data(), bytes.data() + row.offset, values.size() * sizeof(float));
  return values;
}

std::string error_text(ErrorCode code, const Model& model, const std::string& path,
                       ExternalData external = ExternalData::kAuto) {
  try {
    write_model(model, path, external).commit();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no error";
}

// Writes past `bytes` fail with EFBIG while this lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("A model of several megabytes of nodes is one message all the same") {
  const TemporaryFolder folder;
  Model model;
  model.pool = std::make_shared<ExprPool>();
  model.tensors.push_back({"x", Dtype::kFloat32, std::vector<Expr>{model.pool->symbol("n")}});
  model.graph.inputs = {0};
  constexpr TensorId kMany = 20'000;
  for (TensorId k = 0; k < kMany; ++k) {
    Node node;
    node.op = "Identity";
    node.name = std::string(200, 'n') + std::to_string(k);
    node.inputs = {k};
    node.outputs = {k + 1};
    model.tensors.push_back({"t" + std::to_string(k), Dtype::kFloat32, model.tensors[0].shape});
    model.graph.nodes.push_back(std::move(node));
  }
  model.graph.outputs = {kMany};
  const StagedModel staged = write_model(model, folder / "m.onnx");
  const ModelSummary summary = read_model_summary(staged.path());
  CHECK(summary.file_bytes > 4 << 20);
  CHECK(summary.file_bytes == staged.result().model_bytes);
  REQUIRE(summary.nodes.size() == kMany);
  CHECK(summary.nodes.back().inputs == std::vector<std::string>{"t19998"});
  CHECK(summary.value_info.size() == kMany - 1);
}

TEST_CASE("A written model reads back as it was built") {
  const TemporaryFolder folder;
  const SampleModel sample;
  StagedModel staged = write_model(sample.model, folder / "m.onnx", ExternalData::kNever);
  CHECK(staged.result().external_bytes == 0);
  CHECK(staged.result().external_path.empty());
  const ModelSummary summary = read_model_summary(staged.path());
  CHECK(summary.file_bytes == staged.result().model_bytes);
  CHECK(summary.ir_version == 9);
  CHECK(summary.producer_name == "fairlead");
  CHECK(summary.producer_version == "0.1.0");
  CHECK(summary.opset_imports == std::vector<std::pair<std::string, std::int64_t>>{{"", 20}});
  CHECK(summary.metadata == sample.model.metadata);
  CHECK(summary.graph_name == "sample");

  REQUIRE(summary.inputs.size() == 2);
  CHECK(summary.inputs[0].dtype == "float32");
  REQUIRE(summary.inputs[0].shape->size() == 2);
  CHECK(summary.inputs[0].shape->at(0).name == "batch");
  CHECK(summary.inputs[0].shape->at(1).value == 4);
  CHECK(summary.inputs[1].dtype == "bool");
  REQUIRE(summary.inputs[1].shape.has_value());  // a scalar has a shape, an empty one
  CHECK(summary.inputs[1].shape->empty());
  REQUIRE(summary.outputs.size() == 2);
  CHECK(summary.outputs[1].shape->at(0).name ==
        sample.model.pool->to_string(sample.model.tensors[18].shape->at(0)));

  CHECK(summary.op_counts.at("Identity") == 2);
  CHECK(summary.op_counts.at("Add") == 3);
  const NodeSummary& matmul = summary.nodes.at(0);
  CHECK(matmul.name == "/model/head/MatMul");
  CHECK(matmul.inputs == std::vector<std::string>{"x", "weight_turned"});
  CHECK(matmul.module == "model.head");
  CHECK(matmul.source == "model.py:7");
  CHECK(summary.nodes.at(7).inputs == std::vector<std::string>{"row1", ""});
}

TEST_CASE("Value info is written for inner tensors with a shape, of the main graph only") {
  const TemporaryFolder folder;
  const SampleModel sample;
  const StagedModel staged = write_model(sample.model, folder / "m.onnx");
  std::vector<std::string> names;
  for (const auto& value : read_model_summary(staged.path()).value_info)
    names.push_back(value.name);
  CHECK(std::count(names.begin(), names.end(), "product") == 1);
  CHECK(std::count(names.begin(), names.end(), "x") == 0);
  CHECK(std::count(names.begin(), names.end(), "y") == 0);
  CHECK(std::count(names.begin(), names.end(), "weight_turned") == 0);
  CHECK(std::count(names.begin(), names.end(), "scaled") == 0);  // in its subgraph instead
}

TEST_CASE("Every kind of attribute is written with its type") {
  const TemporaryFolder folder;
  Model model;
  model.tensors = {{"y", Dtype::kFloat32, std::nullopt}};
  auto inner = std::make_shared<Graph>();
  inner->nodes.push_back({"Identity", "", "inner", {kAbsent}, {kAbsent}, {}, "", ""});
  model.graph.nodes.push_back({"Everything",
                               "com.example",
                               "",
                               {},
                               {0},
                               {{"i", std::int64_t{-3}},
                                {"f", 0.5f},
                                {"s", std::string("text")},
                                {"is", std::vector<std::int64_t>{1, -2}},
                                {"fs", std::vector<float>{1.5f}},
                                {"ss", std::vector<std::string>{"a", "b"}},
                                {"none", std::vector<std::int64_t>{}},
                                {"t", test::owned_tensor<float>(Dtype::kFloat32, {2, 1}, {1, 2})},
                                {"g", inner}},
                               "",
                               ""});
  model.graph.outputs = {0};
  model.uses_contrib_ops = true;
  const StagedModel staged = write_model(model, folder / "m.onnx");
  const ModelSummary summary = read_model_summary(staged.path());
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(summary.nodes.at(0).attributes == Pairs{{"i", "-3"},
                                                {"f", "0.5"},
                                                {"s", "'text'"},
                                                {"is", "[1, -2]"},
                                                {"fs", "[1.5]"},
                                                {"ss", "['a', 'b']"},
                                                {"none", "[]"},
                                                {"t", "tensor float32[2,1]"},
                                                {"g", "graph"}});
  CHECK(summary.nodes.at(1).name == "inner");
  CHECK(summary.nodes.at(1).depth == 1);
  CHECK(summary.op_counts.at("com.example.Everything") == 1);
  // Every domain in use is imported, and the contrib one because the model says so.
  CHECK(summary.opset_imports == std::vector<std::pair<std::string, std::int64_t>>{
                                     {"", 20}, {"com.example", 1}, {"com.microsoft", 1}});
}

TEST_CASE("The IR version follows the opset") {
  CHECK(ir_version_of_opset(17) == 8);
  CHECK(ir_version_of_opset(18) == 8);
  CHECK(ir_version_of_opset(20) == 9);
  CHECK(ir_version_of_opset(21) == 10);
  CHECK(ir_version_of_opset(22) == 10);
  CHECK(ir_version_of_opset(23) == 11);
  CHECK(ir_version_of_opset(24) == 12);
  CHECK(ir_version_of_opset(25) == 13);
  CHECK(ir_version_of_opset(28) == 14);
}

TEST_CASE("Tensors inside the model are stored in row-major order") {
  const TemporaryFolder folder;
  const SampleModel sample;
  const StagedModel staged = write_model(sample.model, folder / "m.onnx", ExternalData::kNever);
  const std::string bytes = file_bytes(staged.path());
  const ModelSummary summary = read_model_summary(staged.path());
  CHECK(floats_at(bytes, initializer(summary, "weight_turned")) ==
        std::vector<float>{1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12});
  CHECK(floats_at(bytes, initializer(summary, "table")) == sample.table);
  CHECK(initializer(summary, "bias").dtype == "bfloat16");
  CHECK(initializer(summary, "bias").bytes == 6);
  CHECK(initializer(summary, "half").depth == 1);
}

TEST_CASE("External tensors are aligned, shared and streamed in row-major order") {
  const TemporaryFolder folder;
  const SampleModel sample;
  StagedModel staged = write_model(sample.model, folder / "m.onnx", ExternalData::kAlways);
  const std::string data_file = std::filesystem::path(staged.result().external_path).filename();
  CHECK(staged.result().external_path == folder / data_file);
  CHECK(is_data_name(data_file, "m.onnx"));
  const ModelSummary summary = read_model_summary(staged.path());
  const std::filesystem::path beside = std::filesystem::path(staged.path()).parent_path();
  const std::string data = file_bytes(beside / data_file);
  CHECK(static_cast<std::int64_t>(data.size()) == staged.result().external_bytes);

  const auto& table = initializer(summary, "table");
  const auto& turned = initializer(summary, "table_turned");
  const auto& pages = initializer(summary, "pages");
  CHECK(table.external);
  CHECK(table.location == data_file);
  CHECK(table.offset % 64 == 0);
  CHECK(turned.offset % 64 == 0);
  CHECK(pages.offset % kExternalAlignment == 0);
  CHECK(pages.length == 96 * 256 * 4);
  CHECK(initializer(summary, "table_again").offset == table.offset);
  CHECK(turned.offset != table.offset);
  CHECK_FALSE(initializer(summary, "weight_turned").external);  // too small to be worth it
  CHECK(floats_at(data, table) == sample.table);
  CHECK(floats_at(data, pages) == sample.pages);
  const std::vector<float> transposed = floats_at(data, turned);
  CHECK(transposed[1] == sample.table[64]);
  CHECK(transposed[64] == sample.table[1]);
  CHECK(transposed[63 * 64 + 5] == sample.table[5 * 64 + 63]);
}

TEST_CASE("Nothing is under the final name before commit, and nothing else after it") {
  const TemporaryFolder folder;
  const SampleModel sample;
  const std::string path = folder / "m.onnx";
  put_file(path, "old");
  put_file(path + ".data", "not named by it");
  SUBCASE("committed with external data") {
    StagedModel staged = write_model(sample.model, path, ExternalData::kAlways);
    CHECK(staged.path().starts_with(folder / ".m.onnx.fairlead-"));
    CHECK(file_bytes(path) == "old");
    CHECK(folder.entries() == 3);
    staged.commit();
    CHECK(read_model_summary(path).file_bytes == staged.result().model_bytes);
    CHECK(static_cast<std::int64_t>(file_bytes(staged.result().external_path).size()) ==
          staged.result().external_bytes);
    CHECK(folder.entries() == 3);
  }
  SUBCASE("committed without") {
    write_model(sample.model, path, ExternalData::kNever).commit();
    CHECK(folder.entries() == 2);
  }
  SUBCASE("discarded, by hand, by the destructor and by a move") {
    StagedModel staged = write_model(sample.model, path, ExternalData::kAlways);
    staged.discard();
    staged.discard();
    staged = write_model(sample.model, path);
    {
      StagedModel other = std::move(staged);
      CHECK(folder.entries() == 3);
    }
    CHECK(file_bytes(path) == "old");
    CHECK(folder.entries() == 2);
  }
  CHECK(file_bytes(path + ".data") == "not named by it");
}

TEST_CASE("The data of a replaced model goes, unless another model names it") {
  const TemporaryFolder folder;
  SampleModel sample;
  const std::string path = folder / "m.onnx";
  const auto write = [&](ExternalData external) {
    StagedModel staged = write_model(sample.model, path, external);
    staged.commit();
    return staged.result().external_path;
  };
  const std::string first = write(ExternalData::kAlways);
  CHECK(write(ExternalData::kAlways) == first);  // the same bytes have the same name
  CHECK(folder.entries() == 2);
  put_file(folder / "m.onnx.00000000000000ff.data", "of a process that died between two renames");
  sample.table[5] += 1;
  const std::string second = write(ExternalData::kAlways);
  CHECK(second != first);
  CHECK(folder.entries() == 2);
  std::filesystem::copy_file(path, folder / "copy.onnx");
  write(ExternalData::kNever);
  CHECK(std::filesystem::exists(second));
  CHECK(folder.entries() == 3);
  std::filesystem::remove(folder / "copy.onnx");
  write(ExternalData::kNever);
  CHECK(folder.entries() == 1);
}

TEST_CASE("A commit that fails takes its data away, and leaves what was there") {
  const TemporaryFolder folder;
  const SampleModel sample;
  const std::string path = folder / "m.onnx";
  bool had_data = false;
  SUBCASE("the same data, of another model") {
    had_data = true;
    write_model(sample.model, path, ExternalData::kAlways).commit();
    std::filesystem::rename(path, folder / "copy.onnx");
  }
  SUBCASE("nothing") {}
  StagedModel staged = write_model(sample.model, path, ExternalData::kAlways);
  std::filesystem::create_directory(path);  // in the way, after the check
  CHECK_THROWS_WITH_AS(
      staged.commit(),
      ("[write_model] Could not write '" + path +
       "': Is a directory. Give the name of a file, such as 'model.onnx' in that folder.")
          .c_str(),
      Error);
  CHECK(std::filesystem::exists(staged.result().external_path) == had_data);
  staged.discard();
  CHECK(folder.entries() == (had_data ? 3 : 1));
}

TEST_CASE("Paths that cannot be written are refused with the reason and advice") {
  const TemporaryFolder folder;
  const SampleModel sample;
  const std::string missing = folder / "no/m.onnx";
  CHECK(error_text(ErrorCode::kIo, sample.model, missing) ==
        "[write_model] Could not write '" + missing +
            "': No such file or directory. Create the folder first.");
  CHECK(error_text(ErrorCode::kIo, sample.model, folder.path()) ==
        "[write_model] Could not write '" + folder.path() +
            "': Is a directory. Give the name of a file, such as 'model.onnx' in that folder.");
  CHECK(error_text(ErrorCode::kIo, sample.model, "")
            .starts_with("[write_model] Could not write '': the path is empty."));
  CHECK(error_text(ErrorCode::kIo, sample.model, "/dev/null").find("is a device") !=
        std::string::npos);
  put_file(folder / "file", "");
  const std::string through_file = folder / "file/m.onnx";
  CHECK(error_text(ErrorCode::kIo, sample.model, through_file).find("Not a directory") !=
        std::string::npos);
  const std::string long_name = folder / (std::string(300, 'x') + ".onnx");
  CHECK(error_text(ErrorCode::kIo, sample.model, long_name).find("Choose a shorter name.") !=
        std::string::npos);
  CHECK(folder.entries() == 1);
}

TEST_CASE("A folder without write permission is refused" * doctest::skip(::geteuid() == 0)) {
  const TemporaryFolder folder;
  const SampleModel sample;
  std::filesystem::permissions(
      folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  CHECK(error_text(ErrorCode::kIo, sample.model, folder / "m.onnx") ==
        "[write_model] Could not write '" + (folder / "m.onnx") +
            "': Permission denied. Check the permissions of the folder, or choose another one.");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  CHECK(folder.entries() == 0);
}

TEST_CASE("A disk that fills up leaves nothing behind") {
  const TemporaryFolder folder;
  const SampleModel sample;
  std::string inside, outside;
  {
    const FileSizeLimit limit(50'000);
    inside = error_text(ErrorCode::kIo, sample.model, folder / "m.onnx", ExternalData::kNever);
    outside = error_text(ErrorCode::kIo, sample.model, folder / "m.onnx", ExternalData::kAlways);
  }
  CHECK(inside == "[write_model] Could not write '" + (folder / "m.onnx") +
                      "': File too large. Raise the limit on file sizes (ulimit -f), or choose "
                      "another disk.");
  CHECK(outside == inside);
  CHECK(folder.entries() == 0);
}

TEST_CASE("Models past 2 GiB go outside by themselves, and are refused where they may not") {
  const TemporaryFolder folder;
  SampleModel sample;
  // One element seen 2^30 times: large only when stored.
  sample.model.graph.initializers[2].data.dims = {1 << 15, 1 << 15};
  sample.model.graph.initializers[2].data.strides = {0, 0};
  const std::string inside =
      error_text(ErrorCode::kInvalidInput, sample.model, folder / "m.onnx", ExternalData::kNever);
  CHECK(inside.find("a protobuf file ends at 2147483647. Let the tensors go to a file beside it") !=
        std::string::npos);
  std::string automatic;
  {
    const FileSizeLimit limit(50'000);  // it is written outside, where no protobuf ends
    automatic = error_text(ErrorCode::kIo, sample.model, folder / "m.onnx");
  }
  CHECK(automatic.find("File too large") != std::string::npos);
  CHECK(folder.entries() == 0);
}

TEST_CASE("Mistakes of lowering are named, not written") {
  const TemporaryFolder folder;
  SampleModel sample;
  SUBCASE("an unknown tensor") { sample.model.graph.nodes[0].inputs[0] = 1000; }
  SUBCASE("strides of another rank") { sample.model.graph.initializers[0].data.strides = {1}; }
  SUBCASE("no data") { sample.model.graph.initializers[2].data.data = nullptr; }
  CHECK(error_text(ErrorCode::kInternal, sample.model, folder / "m.onnx").find("report it") !=
        std::string::npos);
  CHECK(folder.entries() == 0);
}
