// Bindings of the torch source of a program, and of the constants it holds.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "fairlead/source/torch_source.h"
#include "program.h"

namespace fairlead::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// operators: name -> ([(parameter, type, keyword only, has a default)], returns many)
TorchOperators read_operators(nb::dict operators) {
  TorchOperators result;
  for (auto [name, what] : operators) {
    TorchOperator op;
    for (nb::handle param : nb::object(what[0])) {
      op.params.push_back({nb::cast<std::string>(param[0]), nb::cast<std::string>(param[1]),
                           nb::cast<bool>(param[2]), nb::cast<bool>(param[3])});
    }
    op.many = nb::cast<bool>(what[1]);
    result.emplace(nb::cast<std::string>(name), std::move(op));
  }
  return result;
}

// The bytes that a constant's elements span, borrowed: `owner` keeps them alive.
nb::object bytes_of(const Graph& graph, const Constant& constant, nb::handle owner) {
  std::int64_t last = 0;
  std::int64_t count = 1;
  std::int64_t within = 1;
  for (std::size_t k = constant.dims.size(); k-- > 0;) {
    const std::int64_t stride = constant.strides.empty() ? within : constant.strides[k];
    last += (constant.dims[k] - 1) * stride;
    count *= constant.dims[k];
    within *= constant.dims[k];
  }
  const std::size_t size = dtype_size(graph.values[constant.value].dtype);
  const std::size_t bytes = count == 0 ? 0 : (static_cast<std::size_t>(last) + 1) * size;
  void* data = const_cast<std::byte*>(constant.data);
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(data, {bytes}, owner));
}

// (text, [(name, dtype, dims, strides, bytes)])
nb::tuple source(nb::handle self, nb::dict operators) {
  const Program& program = nb::cast<const ProgramHandle&>(self).program;
  const Graph& graph = program.graph;
  const TorchSource made = torch_source(graph, read_operators(operators), program.targets);
  nb::list held;
  for (const std::size_t k : made.held) {
    const Constant& constant = graph.constants[k];
    const Value& value = graph.values[constant.value];
    held.append(nb::make_tuple(value.name, std::string(dtype_name(value.dtype)), constant.dims,
                               constant.strides, bytes_of(graph, constant, self)));
  }
  return nb::make_tuple(made.text, held);
}

}  // namespace

void init_source(nb::class_<ProgramHandle>& program) {
  program
      .def(
          "torch_operators", [](const ProgramHandle& h) { return operators_of(h.program.graph); },
          "The operators that torch_source calls, in the order of their names in it.")
      .def("torch_source", &source, "operators"_a,
           "The program as a Python function, and the constants it holds.");
}

}  // namespace fairlead::python
