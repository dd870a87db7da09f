// Tests of the torch source of graphs: statements, sizes, constants, and what is written back.
#include "fairlead/source/torch_source.h"

#include <doctest/doctest.h>

#include <array>

#include "graphs.h"

using namespace fairlead;

namespace {

TorchOperator op(std::vector<TorchOperator::Param> params, bool many = false) {
  return {std::move(params), many};
}

TorchOperators table() {
  const TorchOperator::Param self{"self", "Tensor"}, sizes{"size", "List[int]"};
  return {
      {"aten.reshape.default", op({self, {"shape", "List[int]"}})},
      {"aten.add.Tensor", op({self, {"other", "Tensor"}, {"alpha", "number", true, true}})},
      {"aten.full.default", op({sizes,
                                {"fill_value", "number"},
                                {"dtype", "Optional[int]", true, true},
                                {"layout", "Optional[int]", true, true},
                                {"device", "Optional[Device]", true, true}})},
      {"aten.div.Tensor_mode",
       op({self, {"other", "Tensor"}, {"rounding_mode", "Optional[str]", true, false}})},
      {"aten.split.Tensor", op({self, {"split_size", "int"}, {"dim", "int"}}, true)},
      {"aten.nonzero.default", op({self})},
      {"aten.mul.Scalar", op({self, {"other", "number"}})},
      {"aten.slice.Tensor", op({self,
                                {"dim", "int"},
                                {"start", "Optional[int]"},
                                {"end", "Optional[int]"},
                                {"step", "int"}})},
      {"aten.index.Tensor", op({self, {"indices", "List[Optional[Tensor]]"}})},
      {"aten.mm.default", op({self, {"mat2", "Tensor"}})},
  };
}

std::string source(const Graph& g, const std::vector<ValueId>& targets = {}) {
  return torch_source(g, table(), targets).text;
}

std::string source(const std::string& text) { return source(parse_graph(text)); }

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK_MESSAGE(found, part);
  return found;
}

}  // namespace

TEST_CASE("torch source: sizes are expressions of the inputs' sizes, and view is reshape") {
  const std::string text = source(R"(symbol a: size = %0[0]
symbol b: size = %0[1]
input %0 "x": float32[a, b]
%1: float32[a*b, 1] = aten.view.default(%0, [a*b, 1])
%2: float32[3*a + 1, 2] = aten.full.default([3*a + 1, 2], 0.5, float32, None, "cpu")
output "y" = %1
output "z" = %2
)");
  CHECK(text == R"(def forward(inputs, held):
    [] = held
    [i0] = inputs
    s0 = i0.size(0)
    s1 = i0.size(1)
    e2 = s0 * s1
    v1 = op0(i0, [e2, 1])
    e3 = 3 * s0
    e4 = e3 + 1
    v2 = op1([e4, 2], 0.5, dtype=torch.float32, device=torch.device('cpu'))
    return [v1, v2]
)");
}

TEST_CASE("torch source: what inputs have in common is stated") {
  const std::string text = source(R"(symbol past: size = %0[0]
symbol new: size = %1[0]
input %0 "x": float32[past]
input %1 "y": float32[new]
input %2 "mask": float32[past + new]
input %3 "again": float32[past, 3]
%4: float32[past + new] = aten.add.Tensor(%2, %2, 1)
output "z" = %4
)");
  has(text, "torch._check(i2.size(0) == s0 + s1)");
  has(text, "torch._check(i3.size(0) == s0)");
  has(text, "v4 = op0(i2, i2, alpha=1)");
}

TEST_CASE("torch source: a size that a value has is read from that value") {
  const std::string text = source(R"(symbol a: size = %0[0]
input %0 "x": float32[a, 2]
%1: float32[(a - 1)//2 + 1, 2] = aten.slice.Tensor(%0, 0, 0, 9223372036854775807, 2)
%2: float32[2*((a - 1)//2) + 2] = aten.view.default(%1, [2*((a - 1)//2) + 2])
%3: float32[(a - 1)//2 + 1, 2] = aten.view.default(%2, [(a - 1)//2 + 1, 2])
output "y" = %3
)");
  has(text, " = v1.size(0)\n");
}

TEST_CASE("torch source: several results, missing ones, keywords without a default") {
  const std::string text = source(R"(input %0 "x": float32[4]
%1: float32[2], None = aten.split.Tensor(%0, 2, 0)
%2: float32[2] = aten.div.Tensor_mode(%1, %1, None)
output "y" = %2
)");
  has(text, "[v1, _] = op0(i0, 2, 0)");
  has(text, "v2 = op1(v1, v1, rounding_mode=None)");
}

TEST_CASE(
    "torch source: data-dependent sizes and values read are symbols from where they are born") {
  const std::string text = source(R"(symbol a: size = %0[0]
symbol count_0: data = %1[0]
symbol read_0: read = %0[2]
input %0 "x": int64[a]
%1: int64[count_0, 1] = aten.nonzero.default(%0)
%2: int64[count_0] = aten.view.default(%1, [count_0])
%3: int64[read_0] = aten.slice.Tensor(%0, 0, 0, read_0, 1)
output "y" = %2
output "z" = %3
)");
  has(text, "s2 = i0.reshape(-1).select(0, 2).item()\n    torch._check(s2 >= 0)");
  has(text, "s1 = v1.size(0)\n    v2 = op1(v1, [s1])");
}

TEST_CASE("torch source: masks of bytes are masks of bools") {
  const std::string text = source(R"(symbol count_0: data = %2[0]
input %0 "x": float32[4]
input %1 "mask": uint8[4]
%2: float32[count_0] = aten.index.Tensor(%0, [%1])
output "y" = %2
)");
  has(text, "v2 = op0(i0, [i1.to(torch.bool)])");
}

TEST_CASE("torch source: tensors made of sizes, and floats that follow them") {
  const std::string text = source(R"(symbol a: size = %0[0]
input %0 "x": float32[a]
%1: int64[2] = fairlead.tensor([a, 7], [2], int64)
%2: float32[a] = aten.mul.Scalar(%0, 2.0*(a)^-0.5)
output "y" = %1
output "z" = %2
)");
  has(text,
      "torch.ops.aten.stack.default([torch.ops.aten.scalar_tensor.default(s0, dtype=torch.int64), "
      "torch.ops.aten.scalar_tensor.default(7, dtype=torch.int64)]).reshape([2])");
  has(text, "op0(i0, 2.0 * torch.sym_float(s0) ** -0.5)");
}

TEST_CASE("torch source: weights are held once, their transposes and rows are views of them") {
  const std::array<float, 6> bytes = {0, 1, 2, 3, 4, 5};
  Graph g = parse_graph(R"(input %0 "x": float32[1, 3]
constant %1 "w": float32[2, 3]
constant %2: float32[3, 2] strides [1, 3]
constant %3: float32[1, 3]
%4: float32[1, 2] = aten.mm.default(%0, %2)
%5: float32[1, 3] = aten.add.Tensor(%0, %3, 1)
output "y" = %4
output "z" = %5
)");
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  for (Constant& c : g.constants) c.data = data;
  g.constants[2].data = data + 3 * sizeof(float);
  const TorchSource made = torch_source(g, table(), {});
  CHECK(made.held == std::vector<std::size_t>{0});
  has(made.text, "v2 = torch.ops.aten.permute.default(c0, [1, 0])");
  has(made.text, "v3 = torch.ops.aten.slice.Tensor(c0, 0, 1, 2)");
}

TEST_CASE("torch source: what the model writes is written back") {
  Graph g = parse_graph(R"(input %0 "x": float32[2]
%1: float32[2] = aten.add.Tensor(%0, %0, 1)
output "y" = %1
)");
  g.outputs.push_back(1);
  has(source(g, {0}), "i0.copy_(v1)\n    return [v1]");
}

TEST_CASE("torch source: as_strided reads the memory that was recorded") {
  const std::string text = source(R"(symbol a: size = %0[0]
input %0 "x": float32[a, 3]
%1: float32[2, 2] = aten.as_strided.default(%0, [2, 2], [1, 1], None, [1, a, 0])
output "y" = %1
)");
  has(text,
      "torch.ops.aten.as_strided.default(i0.permute([1, 0]).contiguous(), [2, 2], [1, 1], 0)");
  CHECK_THROWS_WITH_AS(source(R"(input %0 "x": float32[4, 3]
%1: float32[2] = aten.as_strided.default(%0, [2], [1], None, [7, 1, 0])
output "y" = %1
)"),
                       doctest::Contains("gaps or overlaps"), Error);
}
