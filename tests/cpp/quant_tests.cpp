// Tests of weights in blocks: what is stored stands for what it should, and whom a matrix is for.
#include "fairlead/quant/quantize.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "fairlead/base/error.h"
#include "fairlead/base/half.h"
#include "fairlead/quant/keep.h"

using namespace fairlead;
using namespace fairlead::quant;

namespace {

std::vector<float> random_floats(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> draw(0.1F, 1);
  std::vector<float> made(count);
  for (float& x : made) x = draw(generator);
  return made;
}

double relative(const std::vector<float>& a, const std::vector<float>& b) {
  double off = 0, size = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double d = static_cast<double>(a[k]) - static_cast<double>(b[k]);
    off += d * d;
    size += static_cast<double>(a[k]) * static_cast<double>(a[k]);
  }
  return std::sqrt(off / size);
}

onnx::TensorId tensor(onnx::Model& model, const std::string& name) {
  model.tensors.push_back({name, Dtype::kFloat32, std::nullopt});
  return static_cast<onnx::TensorId>(model.tensors.size() - 1);
}

// y = x @ w with w [64, 48], and the rows that `ids` names of a table [48, 64] which is w's as
// well.
struct Small {
  std::vector<float> weight = random_floats(64 * 48, 1);
  onnx::Model model;
  onnx::TensorId x = tensor(model, "x"), w = tensor(model, "w"), y = tensor(model, "y");

  explicit Small(const std::string& op = "MatMul") {
    model.opset = 21;
    model.graph.inputs = {x};
    model.graph.outputs = {y};
    onnx::Node node;
    node.op = op;
    node.inputs = {x, w};
    node.outputs = {y};
    model.graph.nodes = {node};
    model.graph.initializers = {{w,
                                 {Dtype::kFloat32,
                                  {64, 48},
                                  {1, 64},
                                  reinterpret_cast<const std::byte*>(weight.data()),
                                  {}}}};
  }
};

}  // namespace

TEST_CASE("packed numbers stand for what was packed, as near as their bits allow") {
  const std::vector<float> numbers = random_floats(40 * 96, 7);
  const Matrix matrix = {numbers.data(), 40, 96, 96, 1};
  for (const bool symmetric : {true, false}) {
    for (const int bits : {4, 8}) {
      for (const int block : {16, 32, 64}) {
        CAPTURE(symmetric);
        CAPTURE(bits);
        CAPTURE(block);
        const Format format = {bits, block, symmetric, true};
        const Packed packed = pack(matrix, format, 2);
        const std::vector<float> back = unpack(packed, format);
        const double error = relative(numbers, back);
        CHECK(error == doctest::Approx(packed.relative_error()).epsilon(1e-4));
        CHECK(error < (bits == 4 ? 0.11 : 0.008));
        const Packed plain = pack(matrix, {bits, block, symmetric, false}, 1);
        CHECK(packed.relative_error() <= plain.relative_error());
        // Threads change nothing.
        CHECK(*pack(matrix, format, 1).values == *packed.values);
      }
    }
  }
}

TEST_CASE("what the levels hold exactly is kept exactly, and a short last block too") {
  std::vector<float> numbers;
  for (int k = 0; k < 3 * 40; ++k) numbers.push_back(0.5F * static_cast<float>(k % 16 - 8));
  const Format format = {4, 16, true, true};
  const Packed packed = pack({numbers.data(), 3, 40, 40, 1}, format, 1);
  CHECK(packed.blocks == 3);
  CHECK(unpack(packed, format) == numbers);
  CHECK(packed.relative_error() == 0);
  const std::vector<float> zeros(64, 0);
  CHECK(unpack(pack({zeros.data(), 1, 64, 64, 1}, format, 1), format) == zeros);
}

TEST_CASE("the first number is the low half of the first byte") {
  std::vector<float> numbers(16, 0);
  numbers[0] = -8;
  numbers[1] = 7;
  const Packed packed = pack({numbers.data(), 1, 16, 16, 1}, {4, 16, true, false}, 1);
  CHECK(std::to_integer<int>((*packed.values)[0]) == 0xF0);
  CHECK(std::to_integer<int>((*packed.values)[1]) == 0x88);
}

TEST_CASE("formats that no kernel has are refused") {
  CHECK_THROWS_WITH_AS(check_format({3, 32, true, true}), "[quantize] Expected 4 or 8 bits, got 3.",
                       Error);
  CHECK_THROWS_WITH_AS(check_format({4, 48, true, true}),
                       "[quantize] Expected a block of 16, 32, 64, 128 or 256 elements, got 48.",
                       Error);
}

TEST_CASE("a product by a constant becomes one by packed numbers") {
  Small small;
  const Report report = quantize(small.model, {});
  REQUIRE(report.layers.size() == 1);
  CHECK(report.layers[0].name == "w");
  CHECK(report.layers[0].rows == 48);
  CHECK(report.layers[0].columns == 64);
  CHECK(report.bytes_before == 64 * 48 * 4);
  CHECK(report.bytes_after == 64 * 48 / 2 + 48 * 2 * 4);
  const onnx::Node& node = small.model.graph.nodes.at(0);
  CHECK(node.op == "MatMulNBits");
  CHECK(node.domain == "com.microsoft");
  CHECK(small.model.uses_contrib_ops);
  CHECK(small.model.graph.initializers.size() == 2);
  CHECK(small.model.graph.initializers[1].data.dims == std::vector<std::int64_t>{48, 2, 16});
}

TEST_CASE("the head stays where it is to, and a file of standard operators needs opset 21") {
  Small head;
  Options options;
  options.head = false;
  CHECK_THROWS_WITH_AS(
      (void)quantize(head.model, options),
      "[quantize] Expected a model with linear layers of float32 weights, got none: w "
      "stays because the head was to stay. Export it without quantize.",
      Error);
  Small standard;
  options = {};
  options.contrib = false;
  (void)quantize(standard.model, options);
  CHECK(standard.model.graph.nodes.at(0).op == "DequantizeLinear");
  CHECK(standard.model.graph.nodes.at(0).inputs.size() == 2);
  const onnx::TensorData& halves = standard.model.graph.initializers.at(1).data;
  CHECK(halves.four_bits == onnx::FourBits::kInt4);
  CHECK(halves.dims == std::vector<std::int64_t>{64, 48});
  CHECK(halves.owned->size() == 64 * 48 / 2);
  Small eight;
  options.format.bits = 8;
  (void)quantize(eight.model, options);
  CHECK(eight.model.graph.nodes.at(0).op == "DequantizeLinear");
  CHECK(eight.model.graph.nodes.at(1).op == "MatMul");
  Small old;
  old.model.opset = 20;
  CHECK_THROWS_AS((void)quantize(old.model, options), Error);
}

TEST_CASE("what has no linear layers, or is quantised already, is refused") {
  Small sum("Add");
  CHECK_THROWS_WITH_AS(
      (void)quantize(sum.model, {}),
      "[quantize] Expected a model with linear layers of float32 weights, got none. "
      "Export it without quantize.",
      Error);
  Small twice;
  (void)quantize(twice.model, {});
  CHECK_THROWS_WITH_AS((void)quantize(twice.model, {}),
                       "[quantize] Expected a model of floats, got one that is quantised already "
                       "(MatMulNBits in the model). Export it without quantize.",
                       Error);
}

TEST_CASE("weights that are not finite, or that no scale reaches, stay floats and say so") {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const auto refusal = [](float wrong, bool symmetric) -> std::string {
    Small small;
    small.weight[70] = wrong;
    small.weight[71] = -wrong;
    Options options;
    options.format.symmetric = symmetric;
    try {
      const Report report = quantize(small.model, options);
      return "quantised";
    } catch (const Error& error) {
      return error.what();
    }
  };
  for (const bool symmetric : {true, false}) {
    for (const float wrong : {kInfinite, std::nanf("")}) {
      CHECK(refusal(wrong, symmetric).find("w stays because it has weights that are not finite") !=
            std::string::npos);
    }
    CHECK(refusal(1e-44F, symmetric) == "quantised");
  }
  // One number of its block is the lowest level exactly; between levels it is not.
  CHECK(refusal(3e38F, true) == "quantised");
  CHECK(refusal(3e38F, false).find("w stays because its weights are too large") !=
        std::string::npos);
}

TEST_CASE("a table whose rows are looked up and multiplied by is stored once") {
  Small small;
  onnx::Model& model = small.model;
  const std::vector<float> table = random_floats(48 * 64, 3);
  const onnx::TensorId t = tensor(model, "table"), turned = tensor(model, "turned"),
                       ids = tensor(model, "ids"), rows = tensor(model, "rows");
  model.graph.initializers[0] = {
      t, {Dtype::kFloat32, {48, 64}, {}, reinterpret_cast<const std::byte*>(table.data()), {}}};
  onnx::Node lookup, turn;
  lookup.op = "Gather";
  lookup.inputs = {t, ids};
  lookup.outputs = {rows};
  turn.op = "Transpose";
  turn.inputs = {t};
  turn.outputs = {turned};
  model.graph.nodes[0].inputs = {small.x, turned};
  model.graph.nodes.insert(model.graph.nodes.begin(), {lookup, turn});
  model.graph.outputs.push_back(rows);
  const Report report = quantize(model, {});
  CHECK(report.layers.size() == 1);
  std::vector<std::string> ops;
  for (const onnx::Node& node : model.graph.nodes) ops.push_back(node.op);
  CHECK(ops == std::vector<std::string>{"Reshape", "GatherBlockQuantized", "MatMulNBits"});
}

namespace {

// Rows of Q4_1: halves d and m, then 32 integers in halves of bytes.
std::vector<std::byte> q4_1_rows(const std::vector<std::pair<float, float>>& blocks) {
  std::vector<std::byte> made;
  for (const auto& [d, m] : blocks) {
    for (const float each : {d, m}) {
      const std::uint16_t half = half_from_float(each);
      made.push_back(static_cast<std::byte>(half & 255));
      made.push_back(static_cast<std::byte>(half >> 8));
    }
    for (int k = 0; k < 16; ++k) made.push_back(static_cast<std::byte>(17 * k));
  }
  return made;
}

// y = x @ w^T for the numbers of a stored matrix, its rows the other way round.
struct Kept {
  std::vector<std::byte> data;
  StoredMatrix matrix;
  std::vector<float> weight;
  onnx::Model model;
  onnx::TensorId x = tensor(model, "x"), w = tensor(model, "w"), y = tensor(model, "y");

  explicit Kept(const std::vector<std::pair<float, float>>& blocks)
      : data(q4_1_rows(blocks)),
        matrix(gguf_matrix("blk.w", "Q4_1", static_cast<std::int64_t>(blocks.size()), 32, data)) {
    StoredRow row(matrix);
    weight.resize(blocks.size() * 32);
    for (std::int64_t r = 0; r < matrix.rows; ++r) {
      matrix.format->take(matrix, matrix.rows - 1 - r, row);
      row.values(matrix, weight.data() + 32 * r);
    }
    model.pool = std::make_shared<ExprPool>();
    model.tensors[0].shape = {model.pool->constant(2), model.pool->constant(32)};
    model.graph.inputs = {x};
    model.graph.outputs = {y};
    onnx::Node node;
    node.op = "MatMul";
    node.inputs = {x, w};
    node.outputs = {y};
    model.graph.nodes = {node};
    model.graph.initializers = {{w,
                                 {Dtype::kFloat32,
                                  {32, matrix.rows},
                                  {1, 32},
                                  reinterpret_cast<const std::byte*>(weight.data()),
                                  {}}}};
  }

  std::vector<std::string> initializers() const {
    std::vector<std::string> names;
    for (const auto& each : model.graph.initializers) {
      names.push_back(model.tensors[static_cast<std::size_t>(each.tensor)].name);
    }
    return names;
  }
};

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TEST_CASE("rows of a checkpoint are found by what they stand for, and kept") {
  Kept kept({{0.5F, -3.0F}, {0.25F, 1.0F}});
  const StoredRows stored({kept.matrix}, 2);
  CHECK(stored.find({kept.weight.data(), 32}).at(0).row == 1);
  const KeptReport report = keep(kept.model, stored, false, 2);
  REQUIRE(report.weights.size() == 1);
  CHECK(report.weights[0] == std::pair<std::string, std::string>("w", "Q4_1"));
  CHECK(report.unread.empty());
  const auto names = kept.initializers();
  CHECK(has(names, "w.packed"));
  CHECK(has(names, "w.offsets"));
  CHECK_FALSE(has(names, "w.packed.zero_points"));
  CHECK_FALSE(has(names, "w"));
  // The sums of the blocks, both products, and their sum.
  CHECK(kept.model.graph.nodes.size() == 6);
  CHECK(kept.model.graph.nodes.back().outputs[0] == kept.y);
}

TEST_CASE("a minimum that cannot take the zero point in without rounding stays as it is") {
  Kept kept({{4096.0F, 0x1p-24F}, {0.25F, 1.0F}});
  const KeptReport report = keep(kept.model, StoredRows({kept.matrix}, 1), false, 1);
  CHECK(report.weights.size() == 1);
  CHECK(has(kept.initializers(), "w.packed.zero_points"));
}

TEST_CASE("numbers that the checkpoint does not hold stay floats") {
  Kept kept({{0.5F, -3.0F}, {0.25F, 1.0F}});
  kept.weight[40] += 1;
  CHECK_THROWS_WITH_AS((void)keep(kept.model, StoredRows({kept.matrix}, 1), false, 1),
                       "[keep] Expected a model that multiplies by weights of its checkpoint, got "
                       "none that is stored there: w stays float32 because the checkpoint does not "
                       "hold it in blocks of integers. Export it without keep, or with quantize.",
                       Error);
}

TEST_CASE("stored matrices whose bytes do not fit are refused") {
  const std::vector<std::byte> data(39);
  CHECK_THROWS_WITH_AS(
      (void)gguf_matrix("a", "Q4_1", 2, 32, data),
      "[keep] Expected 40 bytes for [2, 32] of Q4_1 in a, got 39 bytes. Check that "
      "the file is complete.",
      Error);
  CHECK_THROWS_WITH_AS((void)gguf_matrix("a", "Q6_K", 2, 32, data),
                       "[keep] Expected whole blocks for [2, 32] of Q6_K in a, got 39 bytes. Check "
                       "that the file is complete.",
                       Error);
  CHECK_THROWS_AS((void)gguf_matrix("a", "Q4_1", std::int64_t{1} << 62, 320, data), Error);
  CHECK_THROWS_AS((void)gguf_matrix("a", "Q4_1", 0, 32, {}), Error);
}
