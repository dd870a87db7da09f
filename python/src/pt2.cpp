// Bindings of programs that torch.export made: from a .pt2 archive, or as JSON with tensors by
// address.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "fairlead/base/error.h"
#include "fairlead/passes/dead_code.h"
#include "fairlead/probe/probe.h"
#include "fairlead/pt2/import.h"
#include "program.h"

namespace fairlead::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

struct ImportedHandle : ProgramHandle {
  pt2::Imported imported;  // without its program
};

std::unique_ptr<ImportedHandle> handle(pt2::Imported imported) {
  auto made = std::make_unique<ImportedHandle>();
  made->program = std::move(imported.program);
  made->imported = std::move(imported);
  remove_dead_code(made->program.graph);
  return made;
}

std::unique_ptr<ImportedHandle> read(const std::filesystem::path& given) {
  const std::string path = given.string();
  nb::gil_scoped_release release;
  return handle(pt2::read_pt2(path));
}

// name, dtype, address, sizes, strides
using TensorTuple = std::tuple<std::string, std::string, std::uintptr_t, std::vector<std::int64_t>,
                               std::vector<std::int64_t>>;

std::unique_ptr<ImportedHandle> import(nb::bytes json, const std::vector<TensorTuple>& given,
                                       const std::vector<std::vector<std::string>>& shapes,
                                       nb::object /*owner*/) {
  pt2::Tensors tensors;
  for (const auto& [name, dtype, address, dims, strides] : given) {
    const auto parsed = parse_dtype(dtype);
    if (!parsed) {
      throw Error(ErrorCode::kUnsupported, "[pt2] Expected an element type that ONNX has, got " +
                                               dtype + " of " + name + ".");
    }
    tensors.insert_or_assign(
        name, pt2::Tensor{*parsed, dims, strides, reinterpret_cast<const std::byte*>(address)});
  }
  pt2::DimNames names;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    for (std::size_t axis = 0; axis < shapes[k].size(); ++axis) {
      if (!shapes[k][axis].empty()) names[{k, axis}] = shapes[k][axis];
    }
  }
  const std::string_view text(json.c_str(), json.size());
  nb::gil_scoped_release release;
  return handle(pt2::import_program(text, tensors, "the exported program", names));
}

// The sizes of an imported program, as the prober gives those that it finds.
ProbeResult sizes(const ImportedHandle& h) {
  const Graph& graph = h.program.graph;
  ProbeResult result;
  result.pool = graph.pool;
  for (const pt2::ImportedSymbol& s : h.imported.symbols) {
    ProbedSymbol symbol;
    symbol.name = s.name;
    symbol.min = s.min;
    symbol.max = s.max;
    if (s.example > 0) symbol.tried.push_back(s.example);
    result.symbols.push_back(std::move(symbol));
  }
  for (const ValueId id : graph.inputs) result.shapes.push_back(graph.values[id].shape);
  return result;
}

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(graph.values[id].name);
  return names;
}

// (JSON, payloads, tensors, sample inputs) of an archive, copied: what PyTorch runs may write to
// its tensors. A tensor is (name, payload, dtype, sizes, strides, offset, is constant, is
// parameter, requires grad).
nb::tuple contents(const ImportedHandle& h) {
  const pt2::Contents& c = h.imported.contents;
  const auto bytes = [](std::span<const std::byte> b) {
    return nb::bytes(reinterpret_cast<const char*>(b.data()), b.size());
  };
  nb::list payloads;
  for (const auto& payload : c.payloads) {
    payloads.append(nb::steal(PyByteArray_FromStringAndSize(
        reinterpret_cast<const char*>(payload.data()), static_cast<Py_ssize_t>(payload.size()))));
  }
  nb::list tensors;
  for (const pt2::StoredTensor& t : c.tensors) {
    tensors.append(nb::make_tuple(t.name, t.payload, std::string(dtype_name(t.tensor.dtype)),
                                  t.tensor.dims, t.tensor.strides, t.offset, t.is_constant,
                                  t.is_parameter, t.requires_grad));
  }
  return nb::make_tuple(nb::bytes(c.program.data(), c.program.size()), payloads, tensors,
                        bytes(c.sample_inputs));
}

}  // namespace

void init_pt2(nb::module_& m) {
  nb::class_<ImportedHandle, ProgramHandle>(m, "ImportedProgram",
                                            "A program that torch.export made.")
      .def_prop_ro("sizes", &sizes, "Symbols with their ranges, and the inputs' shapes over them.")
      .def_prop_ro("examples",
                   [](const ImportedHandle& h) {
                     std::vector<std::int64_t> values;
                     for (const auto& s : h.imported.symbols) values.push_back(s.example);
                     return values;
                   })
      .def_prop_ro(
          "input_names",
          [](const ImportedHandle& h) { return names_of(h.program.graph, h.program.graph.inputs); })
      .def_prop_ro("input_dtypes",
                   [](const ImportedHandle& h) {
                     std::vector<std::string> names;
                     for (const ValueId id : h.program.graph.inputs) {
                       names.emplace_back(dtype_name(h.program.graph.values[id].dtype));
                     }
                     return names;
                   })
      .def_prop_ro("output_names",
                   [](const ImportedHandle& h) { return h.program.graph.output_names; })
      .def_prop_ro("user_inputs", [](const ImportedHandle& h) { return h.imported.user_inputs; })
      .def_prop_ro("classes", [](const ImportedHandle& h) { return h.imported.classes; })
      .def("contents", &contents,
           "(JSON, payloads, tensors, sample inputs) of an archive; none of it is a pickle but the "
           "last.")
      .def_prop_ro("torch_version",
                   [](const ImportedHandle& h) { return h.imported.torch_version; })
      .def(
          "rename",
          [](ImportedHandle& h, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs) {
            Graph& graph = h.program.graph;
            for (std::size_t k = 0; k < inputs.size(); ++k) {
              graph.values[graph.inputs.at(k)].name = inputs[k];
            }
            for (std::size_t k = 0; k < outputs.size(); ++k) graph.output_names.at(k) = outputs[k];
          },
          "inputs"_a, "outputs"_a);
  m.def("read_pt2", &read, "path"_a, "Reads the archive that torch.export.save writes.");
  m.def("import_program", &import, "json"_a, "tensors"_a, "shapes"_a, "owner"_a,
        nb::keep_alive<0, 4>(),
        "Imports the JSON of torch's serializer; tensors by address, kept alive with `owner`.");
}

}  // namespace fairlead::python
