// Where the bytes of a model are: tensors by size and type, inside the file and beside it.
#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "fairlead/base/bytes.h"
#include "fairlead/report/file_report_impl.h"

namespace fairlead::report {
namespace {

// A report says nothing about files elsewhere on the machine, not even how large they are.
bool lies_inside(const std::string& name) {
  const std::filesystem::path path(name);
  return path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
}

}  // namespace

void add_layout(const onnx::ModelSummary& summary, const std::string& path, FileReport& report) {
  using Key = std::tuple<std::string, std::string, std::vector<std::int64_t>, std::string>;
  std::map<Key, TensorGroup> groups;
  std::map<std::string, FileRow> files;
  std::map<std::string, std::int64_t> dtypes;
  std::set<std::tuple<std::string, std::int64_t, std::int64_t>> places;
  files[""];  // also a model without tensors is a file
  for (const onnx::InitializerSummary& tensor : summary.initializers) {
    const std::string file = tensor.external ? tensor.location : "";
    TensorGroup& group = groups[{pattern_of(tensor.name), tensor.dtype, tensor.dims, file}];
    if (group.count++ == 0) {
      group.pattern = tensor.name;
      group.dtype = tensor.dtype;
      group.dims = tensor.dims;
      group.file = file;
    } else {
      group.pattern = pattern_of(tensor.name);
    }
    add_bytes(group.bytes, tensor.bytes);
    add_bytes(dtypes[tensor.dtype], tensor.bytes);
    FileRow& row = files[file];
    ++row.tensors;
    const bool first =
        !tensor.external || places.insert({file, tensor.offset, tensor.bytes}).second;
    add_bytes(first ? row.tensor_bytes : row.shared_bytes, tensor.bytes);
  }
  for (auto& [key, group] : groups) report.tensors.push_back(std::move(group));
  std::stable_sort(report.tensors.begin(), report.tensors.end(),
                   [](const TensorGroup& a, const TensorGroup& b) { return a.bytes > b.bytes; });
  for (const auto& [dtype, bytes] : dtypes) report.bytes_by_dtype.push_back({dtype, bytes});
  std::stable_sort(report.bytes_by_dtype.begin(), report.bytes_by_dtype.end(),
                   [](const Count& a, const Count& b) { return a.count > b.count; });

  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (auto& [name, row] : files) {
    row.name = name;
    if (name.empty()) {
      row.bytes = summary.file_bytes;
    } else {
      std::error_code error;
      const std::uintmax_t bytes =
          lies_inside(name) ? std::filesystem::file_size(folder / name, error) : 0;
      row.missing = error || !lies_inside(name);
      row.bytes = row.missing ? 0 : static_cast<std::int64_t>(bytes);
    }
    report.files.push_back(std::move(row));
  }
}

}  // namespace fairlead::report
