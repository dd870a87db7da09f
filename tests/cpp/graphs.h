// Arguments and graphs for tests, and a comparison that looks at every field.
#pragma once

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/graph/graph.h"

namespace fairlead::test {

inline Arg value_arg(ValueId value) {
  Arg arg;
  arg.kind = ArgKind::kValue;
  arg.value = value;
  return arg;
}
inline Arg int_arg(Expr expr) {
  Arg arg;
  arg.kind = ArgKind::kInt;
  arg.expr = expr;
  return arg;
}
inline Arg float_arg(double number, Expr expr = nullptr, double power = 1) {
  Arg arg;
  arg.kind = ArgKind::kFloat;
  arg.number = number;
  arg.expr = expr;
  arg.power = power;
  return arg;
}
inline Arg bool_arg(bool value) {
  Arg arg;
  arg.kind = ArgKind::kBool;
  arg.number = value ? 1 : 0;
  return arg;
}
inline Arg string_arg(std::string text) {
  Arg arg;
  arg.kind = ArgKind::kString;
  arg.text = std::move(text);
  return arg;
}
inline Arg dtype_arg(Dtype dtype) {
  Arg arg;
  arg.kind = ArgKind::kDtype;
  arg.dtype = dtype;
  return arg;
}
inline Arg list_arg(std::vector<Arg> items) {
  Arg arg;
  arg.kind = ArgKind::kList;
  arg.items = std::move(items);
  return arg;
}

// The code and text of what `body` throws; fails where it throws nothing.
template <typename Body>
std::string error_of(ErrorCode code, Body body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL_CHECK("nothing was thrown");
  return "";
}

// "float32[batch, 64]"
inline std::string type_text(const Graph& graph, ValueId id) {
  const Value& value = graph.values.at(id);
  std::string text(dtype_name(value.dtype));
  text += '[';
  for (std::size_t k = 0; k < value.shape.size(); ++k) {
    text += (k == 0 ? "" : ", ") + graph.pool->to_string(value.shape[k]);
  }
  return text + ']';
}

// The lines of the text that make nodes: what most tests want to see of a graph.
inline std::string node_lines(const Graph& graph) {
  const std::string text = to_text(graph);
  std::string lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (text[at] == '%' || text[at] == '(' || text[at] == 'N') {
      lines += text.substr(at, end + 1 - at);
    }
    at = end + 1;
  }
  return lines;
}

// Two expressions of different pools, compared by their normal forms' text.
inline bool same_expr(const Graph& a, Expr x, const Graph& b, Expr y) {
  if (x == nullptr || y == nullptr) return x == y;
  return a.pool->to_string(x) == b.pool->to_string(y);
}

inline bool same_number(double x, double y) {
  return (x != x && y != y) || std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
}

inline bool same_arg(const Graph& a, const Arg& x, const Graph& b, const Arg& y) {
  if (x.kind != y.kind || x.dtype != y.dtype || x.value != y.value || x.text != y.text)
    return false;
  if (!same_expr(a, x.expr, b, y.expr) || !same_number(x.number, y.number)) return false;
  if (!same_number(x.power, y.power) || x.items.size() != y.items.size()) return false;
  for (std::size_t k = 0; k < x.items.size(); ++k) {
    if (!same_arg(a, x.items[k], b, y.items[k])) return false;
  }
  return true;
}

inline void check_same(const Graph& a, const Graph& b) {
  REQUIRE(a.pool->symbols().size() == b.pool->symbols().size());
  for (std::size_t k = 0; k < a.pool->symbols().size(); ++k) {
    CHECK(a.pool->symbols()[k].name == b.pool->symbols()[k].name);
    CHECK(a.pool->symbols()[k].kind == b.pool->symbols()[k].kind);
    const SymbolSource x = k < a.symbol_sources.size() ? a.symbol_sources[k] : SymbolSource{};
    const SymbolSource y = k < b.symbol_sources.size() ? b.symbol_sources[k] : SymbolSource{};
    CHECK(x.value == y.value);
    CHECK(x.axis == y.axis);
    CHECK(x.divisor == y.divisor);
  }
  REQUIRE(a.values.size() == b.values.size());
  for (std::size_t k = 0; k < a.values.size(); ++k) {
    CHECK(a.values[k].name == b.values[k].name);
    CHECK(type_text(a, static_cast<ValueId>(k)) == type_text(b, static_cast<ValueId>(k)));
  }
  CHECK(a.inputs == b.inputs);
  CHECK(a.outputs == b.outputs);
  CHECK(a.output_names == b.output_names);
  CHECK(a.constant_of == b.constant_of);
  REQUIRE(a.constants.size() == b.constants.size());
  for (std::size_t k = 0; k < a.constants.size(); ++k) {
    CHECK(a.constants[k].value == b.constants[k].value);
    CHECK(a.constants[k].dims == b.constants[k].dims);
    CHECK(a.constants[k].strides == b.constants[k].strides);
  }
  REQUIRE(a.nodes.size() == b.nodes.size());
  for (std::size_t k = 0; k < a.nodes.size(); ++k) {
    const Node& x = a.nodes[k];
    const Node& y = b.nodes[k];
    CHECK(x.op == y.op);
    CHECK(x.outputs == y.outputs);
    CHECK(x.module == y.module);
    CHECK(x.source == y.source);
    CHECK(x.random == y.random);
    REQUIRE(x.args.size() == y.args.size());
    for (std::size_t i = 0; i < x.args.size(); ++i) CHECK(same_arg(a, x.args[i], b, y.args[i]));
  }
}

}  // namespace fairlead::test
