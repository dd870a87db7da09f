// Expressions of sizes: what they are made of, and what they are at given sizes.
#include "sizes.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unordered_map.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <unordered_map>

#include "fairlead/base/error.h"

namespace nb = nanobind;

namespace fairlead::python {

using namespace nb::literals;

namespace {

SizeExpr parsed(const std::string& text) {
  const auto pool = std::make_shared<ExprPool>();
  const Expr e = pool->parse(text);
  return {pool, e};
}

std::vector<std::string> names_in(const SizeExpr& size) {
  std::vector<std::string> names;
  for (const SymbolId id : size.pool->symbols_of(size.e)) {
    names.push_back(size.pool->symbols()[id].name);
  }
  return names;
}

std::int64_t unit(const SizeExpr& size, const std::string& symbol) {
  const std::optional<Multiple> found = as_multiple(size.e);
  return found && size.pool->symbols()[found->symbol].name == symbol ? found->unit : 0;
}

std::int64_t evaluate(const SizeExpr& size,
                      const std::unordered_map<std::string, std::int64_t>& sizes) {
  std::vector<std::int64_t> values(size.pool->symbols().size(), 0);
  for (const SymbolId id : size.pool->symbols_of(size.e)) {
    const std::string& name = size.pool->symbols()[id].name;
    const auto it = sizes.find(name);
    if (it == sizes.end()) {
      throw Error(ErrorCode::kInvalidInput, "[evaluate] Expected a size for " + name + " of " +
                                                size.pool->to_string(size.e) +
                                                ", got none. Give it by its name.");
    }
    values[id] = it->second;
  }
  return size.pool->evaluate(size.e, values);
}

}  // namespace

void init_sizes(nb::module_& m) {
  nb::class_<SizeExpr>(m, "Expr", "A size as an expression of symbols: batch*(past + sequence).")
      .def(nb::new_(&parsed), "text"_a)
      .def_prop_ro("text", [](const SizeExpr& s) { return s.pool->to_string(s.e); })
      .def_prop_ro("symbols", &names_in, "The names of the sizes that it is made of.")
      .def_prop_ro(
          "value",
          [](const SizeExpr& s) {
            return is_const(s.e) ? std::optional<std::int64_t>(s.e->value) : std::nullopt;
          },
          "The number that it is; None where it has symbols.")
      .def("unit", &unit, "symbol"_a,
           "How many times the symbol it is: 4 for 4*batch; 0 where it is no multiple of it.")
      .def("evaluate", &evaluate, "sizes"_a, "What it is at these sizes, given by name.")
      .def("__str__", [](const SizeExpr& s) { return s.pool->to_string(s.e); })
      .def("__repr__", [](const SizeExpr& s) { return "Expr('" + s.pool->to_string(s.e) + "')"; })
      .def("__hash__",
           [](const SizeExpr& s) { return std::hash<std::string>()(s.pool->to_string(s.e)); })
      .def(
          "__eq__",
          [](const SizeExpr& a, const SizeExpr& b) {
            return a.pool->to_string(a.e) == b.pool->to_string(b.e);
          },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"));
}

}  // namespace fairlead::python
