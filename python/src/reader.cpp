// Bindings of the reader of ONNX files: one call gives the whole summary as Python objects.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "fairlead/onnx/reader.h"

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
      shape.append(dim.name);
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
    row["name"] = value.name;
    row["dtype"] = value.dtype;
    row["shape"] = shape_of(value);
    result.append(row);
  }
  return result;
}

template <typename Pairs>
nb::dict pairs(const Pairs& list) {
  nb::dict result;
  for (const auto& [key, value] : list) result[key.c_str()] = value;
  return result;
}

nb::dict read_summary(const std::string& path) {
  onnx::ModelSummary summary;
  {
    nb::gil_scoped_release release;
    summary = onnx::read_model_summary(path);
  }
  nb::dict result;
  result["ir_version"] = summary.ir_version;
  result["producer"] = summary.producer_name;
  result["producer_version"] = summary.producer_version;
  result["opsets"] = pairs(summary.opset_imports);
  result["metadata"] = pairs(summary.metadata);
  result["graph"] = summary.graph_name;
  result["inputs"] = values(summary.inputs);
  result["outputs"] = values(summary.outputs);
  result["operators"] = pairs(summary.op_counts);
  result["nodes"] = summary.nodes.size();
  result["file_bytes"] = summary.file_bytes;
  std::int64_t weight_bytes = 0;
  std::int64_t external_bytes = 0;
  nb::set files;
  for (const onnx::InitializerSummary& tensor : summary.initializers) {
    weight_bytes += tensor.bytes;
    if (!tensor.external) continue;
    external_bytes += tensor.bytes;
    files.add(tensor.location);
  }
  result["weights"] = summary.initializers.size();
  result["weight_bytes"] = weight_bytes;
  result["external_bytes"] = external_bytes;
  result["external_files"] = nb::list(files);
  return result;
}

}  // namespace

void init_reader(nb::module_& m) {
  m.def("read_summary", &read_summary, "path"_a,
        "What is in an ONNX file, without its weights: a dict of inputs, outputs, operators and "
        "sizes.");
}

}  // namespace fairlead::python
