// A small ONNX model with one of everything, and a folder that removes itself: for the ONNX tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fairlead/onnx/model.h"
#include "fairlead/symbol/expr.h"

namespace fairlead::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fairlead-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

inline std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void put_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

template <typename T>
onnx::TensorData owned_tensor(Dtype dtype, std::vector<std::int64_t> dims,
                              const std::vector<T>& values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
  onnx::TensorData data;
  data.dtype = dtype;
  data.dims = std::move(dims);
  data.data = bytes->data();
  data.owned = std::move(bytes);
  return data;
}

// y = If(flag, h / 2, h) with h = x @ weight^T + bias + max(table[:3]) + max(table^T[:3]) -
// max(pages[:3]).
//   x float32 [batch, 4], flag bool []; weight (3, 4) is stored transposed; bias is bfloat16;
//   "table" and "table_again" are one memory; "table_turned" is its transpose; "pages" is 96 KiB.
struct SampleModel {
  onnx::Model model;
  std::vector<float> weight = std::vector<float>(12);
  std::vector<float> table = std::vector<float>(64 * 64);
  std::vector<float> pages = std::vector<float>(96 * 256);

  onnx::TensorId tensor(std::string name, Dtype dtype = Dtype::kFloat32,
                        std::optional<std::vector<Expr>> shape = std::nullopt) {
    model.tensors.push_back({std::move(name), dtype, std::move(shape)});
    return static_cast<onnx::TensorId>(model.tensors.size() - 1);
  }

  static onnx::TensorData borrow(const std::vector<float>& values, std::vector<std::int64_t> dims,
                                 std::vector<std::int64_t> strides = {}) {
    onnx::TensorData data;
    data.dims = std::move(dims);
    data.strides = std::move(strides);
    data.data = reinterpret_cast<const std::byte*>(values.data());
    return data;
  }

  SampleModel() {
    std::iota(weight.begin(), weight.end(), 1.0f);
    std::iota(table.begin(), table.end(), 0.0f);
    std::iota(pages.begin(), pages.end(), 0.0f);
    model.pool = std::make_shared<ExprPool>();
    model.opset = 20;
    model.producer_version = "0.1.0";
    model.metadata = {{"fairlead.contract", "{}"}, {"author", "tests"}};
    ExprPool& pool = *model.pool;
    const Expr batch = pool.symbol("batch");
    const auto c = [&](std::int64_t value) { return pool.constant(value); };
    const std::vector<Expr> rows{batch, c(3)};
    const auto f32 = Dtype::kFloat32;

    const auto x = tensor("x", f32, {{batch, c(4)}});
    const auto flag = tensor("flag", Dtype::kBool, std::vector<Expr>{});
    const auto turned = tensor("weight_turned", f32);
    const auto bias = tensor("bias", Dtype::kBfloat16);
    const auto table_id = tensor("table");
    const auto again_id = tensor("table_again");
    const auto turned_id = tensor("table_turned");
    const auto pages_id = tensor("pages");
    const auto product = tensor("product", f32, rows);
    const auto bias32 = tensor("bias32", f32, {{c(3)}});
    const auto with_bias = tensor("with_bias", f32, rows);
    const auto three = tensor("three", Dtype::kInt64, {{c(3)}});
    const auto first = tensor("first", f32, std::vector<Expr>{});
    const auto second = tensor("second", f32, std::vector<Expr>{});
    const auto zero = tensor("zero", f32, std::vector<Expr>{});
    const auto sum1 = tensor("sum1", f32, rows);
    const auto sum2 = tensor("sum2", f32, rows);
    const auto sum3 = tensor("sum3", f32, rows);
    const auto batch_sized = tensor("stacked", f32, {{pool.mul(batch, c(2)), c(3)}});
    const auto y = tensor("y", f32, rows);

    auto then_graph = std::make_shared<onnx::Graph>();
    const auto half = tensor("half", f32);
    const auto scaled = tensor("scaled", f32, rows);
    const auto then_out = tensor("then_out", f32, rows);
    then_graph->name = "then";
    then_graph->initializers.push_back(
        {half, owned_tensor<float>(f32, {3, 3}, {.5f, 0, 0, 0, .5f, 0, 0, 0, .5f})});
    then_graph->nodes.push_back({"MatMul", "", "then_matmul", {sum3, half}, {scaled}, {}, "", ""});
    then_graph->nodes.push_back({"Identity", "", "", {scaled}, {then_out}, {}, "", ""});
    then_graph->outputs = {then_out};
    auto else_graph = std::make_shared<onnx::Graph>();
    const auto else_out = tensor("else_out", f32, rows);
    else_graph->nodes.push_back({"Identity", "", "", {sum3}, {else_out}, {}, "", ""});
    else_graph->outputs = {else_out};

    onnx::Graph& graph = model.graph;
    graph.name = "sample";
    graph.inputs = {x, flag};
    graph.outputs = {y, batch_sized};
    graph.initializers = {
        {turned, borrow(weight, {4, 3}, {1, 4})},
        {bias, owned_tensor<std::uint16_t>(Dtype::kBfloat16, {3}, {0x3f80, 0x4000, 0x4040})},
        {table_id, borrow(table, {64, 64})},
        {again_id, borrow(table, {64, 64})},
        {turned_id, borrow(table, {64, 64}, {1, 64})},
        {pages_id, borrow(pages, {96, 256})},
    };
    const auto three_rows = [](onnx::TensorId from, onnx::TensorId index, onnx::TensorId to) {
      return onnx::Node{"Gather", "", "gather_" + std::to_string(from), {from, index}, {to}, {},
                        "",       ""};
    };
    const auto row1 = tensor("row1", f32, {{c(3), c(64)}});
    const auto row2 = tensor("row2", f32, {{c(3), c(64)}});
    const auto row3 = tensor("row3", f32, {{c(3), c(256)}});
    const auto reduce = [](onnx::TensorId from, onnx::TensorId to) {
      return onnx::Node{
          "ReduceMax",  "",
          "",           {from, onnx::kAbsent},
          {to},         {{"keepdims", std::int64_t{0}}, {"noop_with_empty_axes", std::int64_t{0}}},
          "model.head", ""};
    };
    graph.nodes = {
        {"MatMul",
         "",
         "/model/head/MatMul",
         {x, turned},
         {product},
         {},
         "model.head",
         "model.py:7"},
        {"Cast", "", "", {bias}, {bias32}, {{"to", std::int64_t{1}}}, "", ""},
        {"Add", "", "", {product, bias32}, {with_bias}, {}, "", ""},
        {"Constant",
         "",
         "",
         {},
         {three},
         {{"value", owned_tensor<std::int64_t>(Dtype::kInt64, {3}, {0, 1, 2})}},
         "",
         ""},
        three_rows(table_id, three, row1),
        three_rows(turned_id, three, row2),
        three_rows(pages_id, three, row3),
        reduce(row1, first),
        reduce(row2, second),
        reduce(row3, zero),
        {"Add", "", "", {with_bias, first}, {sum1}, {}, "", ""},
        {"Add", "", "", {sum1, second}, {sum2}, {}, "", ""},
        {"Sub", "", "", {sum2, zero}, {sum3}, {}, "", ""},
        {"If",
         "",
         "choose",
         {flag},
         {y},
         {{"then_branch", then_graph}, {"else_branch", else_graph}},
         "",
         ""},
        {"Concat", "", "", {sum3, sum3}, {batch_sized}, {{"axis", std::int64_t{0}}}, "", ""},
    };
  }
};

}  // namespace fairlead::test
