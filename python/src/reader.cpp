// Bindings of the reader of ONNX files: one call gives the whole summary as Python objects.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <set>

#include "fairlead/base/bytes.h"
#include "fairlead/onnx/reader.h"
#include "python/src/text.h"

namespace fairlead::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// Sizes are integers, symbolic dims strings, unknown ones None; a shape that is not said is None.
nb::object shape_of(const onnx::ValueSummary& value) {
  if (!value.shape) return nb::none();
  nb::list shape;
  for (const onnx::DimSummary& dim : *value.shape) {
    if (dim.value) {
      shape.append(*dim.value);
    } else if (!dim.name.empty()) {
      shape.append(text(dim.name));
    } else {
      shape.append(nb::none());
    }
  }
  return shape;
}

nb::list values(const std::vector<onnx::ValueSummary>& list) {
  nb::list result;
  for (const onnx::ValueSummary& value : list) {
    nb::dict row;
    row["name"] = text(value.name);
    row["dtype"] = text(value.dtype);
    row["shape"] = shape_of(value);
    result.append(row);
  }
  return result;
}

nb::object item(const std::string& value) { return text(value); }
nb::object item(std::int64_t value) { return nb::int_(value); }

template <typename Pairs>
nb::dict pairs(const Pairs& list) {
  nb::dict result;
  for (const auto& [key, value] : list) result[text(key)] = item(value);
  return result;
}

nb::dict read_summary(const std::filesystem::path& given) {
  const std::string path = given.string();
  onnx::ModelSummary summary;
  {
    nb::gil_scoped_release release;
    summary = onnx::read_model_summary(path);
  }
  nb::dict result;
  result["ir_version"] = summary.ir_version;
  result["producer"] = text(summary.producer_name);
  result["producer_version"] = text(summary.producer_version);
  result["opsets"] = pairs(summary.opset_imports);
  result["metadata"] = pairs(summary.metadata);
  result["graph"] = text(summary.graph_name);
  result["inputs"] = values(summary.inputs);
  result["outputs"] = values(summary.outputs);
  result["operators"] = pairs(summary.op_counts);
  result["nodes"] = summary.nodes.size();
  result["file_bytes"] = summary.file_bytes;
  std::int64_t weight_bytes = 0;
  std::int64_t external_bytes = 0;
  std::set<std::string> files;
  for (const onnx::InitializerSummary& tensor : summary.initializers) {
    add_bytes(weight_bytes, tensor.bytes);
    if (!tensor.external) continue;
    add_bytes(external_bytes, tensor.bytes);
    files.insert(tensor.location);
  }
  result["weights"] = summary.initializers.size();
  result["weight_bytes"] = weight_bytes;
  result["external_bytes"] = external_bytes;
  nb::list names;
  for (const std::string& file : files) names.append(text(file));
  result["external_files"] = names;
  return result;
}

}  // namespace

void init_reader(nb::module_& m) {
  m.def("read_summary", &read_summary, "path"_a,
        "What is in an ONNX file, without its weights: a dict of inputs, outputs, operators and "
        "sizes.");
  m.def(
      "check_functions",
      [](const std::filesystem::path& given) {
        const nb::gil_scoped_release release;
        onnx::check_functions(given.string());
      },
      "path"_a,
      "Raises where functions of an ONNX file call each other so often that it cannot be loaded.");
}

}  // namespace fairlead::python
