// Bindings of the report: one call gives what a page shows of an ONNX file, as plain lists.
#include "fairlead/report/file_report.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/text.h"

namespace fairlead::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Settings = std::vector<std::map<std::string, std::int64_t>>;

nb::list count_rows(const std::vector<report::Count>& counts) {
  nb::list rows;
  for (const report::Count& c : counts) rows.append(nb::make_tuple(text(c.name), c.count));
  return rows;
}

// By columns: a page with 20,000 operators holds them as a few arrays of numbers.
nb::dict operator_columns(const report::FileReport& found) {
  nb::list op, result, attributes, source;
  for (const report::OperatorRow& row : found.operators) {
    op.append(row.op);
    result.append(row.result);
    attributes.append(row.attributes);
    source.append(row.source);
  }
  nb::dict columns;
  columns["op"] = op;
  columns["result"] = result;
  columns["attributes"] = attributes;
  columns["source"] = source;
  return columns;
}

nb::dict module_columns(const report::FileReport& found) {
  nb::list name, parent, operators, bytes, items;
  for (const report::ModuleRow& row : found.modules) {
    name.append(text(row.name));
    parent.append(row.parent);
    operators.append(row.operators);
    bytes.append(row.weight_bytes);
    items.append(nb::cast(row.items));
  }
  nb::dict columns;
  columns["name"] = name;
  columns["parent"] = parent;
  columns["operators"] = operators;
  columns["bytes"] = bytes;
  columns["items"] = items;
  return columns;
}

nb::list tensor_rows(const report::FileReport& found) {
  nb::list rows;
  for (const report::TensorGroup& group : found.tensors) {
    nb::dict row;
    row["name"] = text(group.pattern);
    row["dtype"] = text(group.dtype);
    row["dims"] = group.dims;
    row["file"] = text(group.file);
    row["count"] = group.count;
    row["bytes"] = group.bytes;
    rows.append(row);
  }
  return rows;
}

nb::list file_rows(const report::FileReport& found) {
  nb::list rows;
  for (const report::FileRow& file : found.files) {
    nb::dict row;
    row["name"] = text(file.name);
    row["bytes"] = file.bytes;
    row["tensors"] = file.tensors;
    row["tensor_bytes"] = file.tensor_bytes;
    row["shared_bytes"] = file.shared_bytes;
    row["missing"] = file.missing;
    rows.append(row);
  }
  return rows;
}

nb::dict file_report(const std::filesystem::path& given, const Settings& settings) {
  const std::string path = given.string();
  report::FileReport found;
  std::vector<report::PeakMemory> peaks;
  {
    nb::gil_scoped_release release;
    const onnx::ModelSummary summary = onnx::read_model_summary(path);
    found = report::report_of(summary, path);
    for (const auto& sizes : settings) peaks.push_back(report::peak_memory(summary, sizes));
  }
  nb::dict result;
  nb::list strings;
  for (const std::string& s : found.strings) strings.append(text(s));
  result["strings"] = strings;
  result["operators"] = operator_columns(found);
  result["modules"] = module_columns(found);
  nb::list kinds, modules, memory;
  for (const report::OperatorKind& kind : found.by_kind) {
    kinds.append(nb::make_tuple(text(kind.name), kind.count, count_rows(kind.by_module)));
  }
  for (const report::ModuleKind& kind : found.by_module) {
    modules.append(nb::make_tuple(text(kind.pattern), kind.instances, kind.operators,
                                  kind.weight_bytes, count_rows(kind.by_kind)));
  }
  for (const report::PeakMemory& peak : peaks) {
    nb::dict row;
    row["bytes"] = peak.bytes;
    row["node"] = peak.node;
    row["inputs"] = peak.inputs;
    row["unknown"] = peak.unknown;
    memory.append(row);
  }
  result["by_kind"] = kinds;
  result["by_module"] = modules;
  result["memory"] = memory;
  result["tensors"] = tensor_rows(found);
  result["bytes_by_dtype"] = count_rows(found.bytes_by_dtype);
  result["files"] = file_rows(found);
  return result;
}

}  // namespace

void init_report(nb::module_& m) {
  m.def("file_report", &file_report, "path"_a, "settings"_a = Settings{},
        "What a report shows of an ONNX file: operators by kind and module, the tree of modules, "
        "tensors, files, and the peak memory at each of the settings (symbol: size).");
}

}  // namespace fairlead::python
