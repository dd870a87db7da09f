// Operators by kind and by module, and the tree of modules.
#include "fairlead/report/file_report.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "fairlead/base/bytes.h"
#include "fairlead/report/file_report_impl.h"

namespace fairlead::report {
namespace {

constexpr int kMaxLevels = 100;

std::string result_text(const onnx::ValueSummary& value) {
  std::string text = value.dtype;
  if (!value.shape) return text;
  text += '[';
  for (const onnx::DimSummary& dim : *value.shape) {
    if (text.back() != '[') text += ", ";
    text += dim.value ? std::to_string(*dim.value) : dim.name.empty() ? "?" : dim.name;
  }
  return text + ']';
}

std::string attributes_text(const onnx::NodeSummary& node) {
  std::string text;
  for (const auto& [name, value] : node.attributes) {
    if (!text.empty()) text += ", ";
    text += name + " = " + value;
  }
  return text;
}

std::string kind_of(const onnx::NodeSummary& node) {
  const bool is_default = node.domain.empty() || node.domain == "ai.onnx";
  return is_default ? node.op : node.domain + "." + node.op;
}

std::vector<Count> counts(const std::map<std::string, std::int64_t>& found) {
  std::vector<Count> rows;
  for (const auto& [name, count] : found) rows.push_back({name, count});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Count& a, const Count& b) { return a.count > b.count; });
  return rows;
}

class Reporter {
 public:
  explicit Reporter(const onnx::ModelSummary& summary) : summary_(summary) {
    report_.strings.emplace_back();
    string_ids_.emplace("", 0);
    report_.modules.emplace_back();
    module_ids_.emplace("", 0);
  }

  FileReport read() {
    for (const auto* list : {&summary_.inputs, &summary_.value_info, &summary_.outputs}) {
      for (const onnx::ValueSummary& value : *list) values_.emplace(value.name, &value);
    }
    for (const onnx::InitializerSummary& tensor : summary_.initializers) {
      if (tensor.depth == 0) weights_.emplace(tensor.name, tensor.bytes);
    }
    for (const onnx::NodeSummary& node : summary_.nodes) add(node);
    sum_up();
    return std::move(report_);
  }

 private:
  std::int32_t intern(const std::string& text) {
    const auto [it, fresh] =
        string_ids_.try_emplace(text, static_cast<std::int32_t>(report_.strings.size()));
    if (fresh) report_.strings.push_back(text);
    return it->second;
  }

  // Where the name of a module begins in its path, npos: its parent is the model. What lies deeper
  // than any model goes is one name: a row for each level is a page without end.
  static std::size_t last_dot(const std::string& path) {
    std::size_t cut = std::string::npos;
    std::size_t next = path.find('.');
    for (int level = 1; level < kMaxLevels && next != std::string::npos; ++level) {
      cut = next;
      next = path.find('.', cut + 1);
    }
    return cut;
  }

  // The row of a module; its parents come before it.
  std::int32_t module_of(const std::string& path) {
    if (const auto it = module_ids_.find(path); it != module_ids_.end()) return it->second;
    const std::size_t cut = last_dot(path);
    const std::int32_t parent = cut == std::string::npos ? 0 : module_of(path.substr(0, cut));
    const auto id = static_cast<std::int32_t>(report_.modules.size());
    module_ids_.emplace(path, id);
    ModuleRow row;
    row.name = cut == std::string::npos ? path : path.substr(cut + 1);
    row.parent = parent;
    report_.modules.push_back(std::move(row));
    report_.modules[static_cast<std::size_t>(parent)].items.push_back(-id);
    return id;
  }

  void add(const onnx::NodeSummary& node) {
    OperatorRow row;
    row.op = intern(kind_of(node));
    row.attributes = intern(attributes_text(node));
    row.source = intern(node.source);
    if (!node.outputs.empty()) {
      const auto it = values_.find(node.outputs.front());
      if (it != values_.end()) row.result = intern(result_text(*it->second));
    }
    const auto id = static_cast<std::int32_t>(report_.operators.size());
    report_.operators.push_back(row);
    ModuleRow& module = report_.modules[static_cast<std::size_t>(module_of(node.module))];
    module.items.push_back(id);
    ++module.operators;

    auto [it, fresh] = kinds_.try_emplace(node.module);
    if (fresh) it->second = pattern_of(node.module);
    const std::string& pattern = it->second;
    Kind& kind = patterns_[pattern];
    if (fresh) ++kind.instances;
    ++kind.operators;
    ++kind.by_kind[kind_of(node)];
    ++operators_[kind_of(node)][pattern];
    for (const std::string& input : node.inputs) {
      const auto weight = weights_.find(input);
      if (weight == weights_.end()) continue;
      add_bytes(module.weight_bytes, weight->second);
      add_bytes(kind.weight_bytes, weight->second);
      weights_.erase(weight);  // counted where it is used first
    }
  }

  void sum_up() {
    // A parent stands before its children, so that going backwards meets every sum complete.
    for (std::size_t k = report_.modules.size(); k-- > 1;) {
      const ModuleRow& row = report_.modules[k];
      ModuleRow& parent = report_.modules[static_cast<std::size_t>(row.parent)];
      parent.operators += row.operators;
      add_bytes(parent.weight_bytes, row.weight_bytes);
    }
    for (const auto& [name, modules] : operators_) {
      OperatorKind row{name, 0, counts(modules)};
      for (const Count& c : row.by_module) row.count += c.count;
      report_.by_kind.push_back(std::move(row));
    }
    std::stable_sort(
        report_.by_kind.begin(), report_.by_kind.end(),
        [](const OperatorKind& a, const OperatorKind& b) { return a.count > b.count; });
    for (const auto& [pattern, kind] : patterns_) {
      report_.by_module.push_back(
          {pattern, kind.instances, kind.operators, counts(kind.by_kind), kind.weight_bytes});
    }
    std::stable_sort(
        report_.by_module.begin(), report_.by_module.end(),
        [](const ModuleKind& a, const ModuleKind& b) { return a.operators > b.operators; });
  }

  struct Kind {
    std::int64_t instances = 0;
    std::int64_t operators = 0;
    std::int64_t weight_bytes = 0;
    std::map<std::string, std::int64_t> by_kind;
  };

  const onnx::ModelSummary& summary_;
  FileReport report_;
  std::unordered_map<std::string, std::int32_t> string_ids_;
  std::unordered_map<std::string, std::int32_t> module_ids_;
  std::unordered_map<std::string, const onnx::ValueSummary*> values_;
  std::unordered_map<std::string, std::int64_t> weights_;
  std::unordered_map<std::string, std::string> kinds_;  // path -> pattern
  std::map<std::string, Kind> patterns_;
  std::map<std::string, std::map<std::string, std::int64_t>> operators_;
};

}  // namespace

std::string pattern_of(const std::string& path) {
  std::string pattern;
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    const std::string_view part(path.data() + start, end - start);
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](char c) { return '0' <= c && c <= '9'; });
    if (start > 0) pattern += '.';
    pattern += number ? "*" : part;
    start = end + 1;
  }
  return pattern;
}

FileReport report_of(const onnx::ModelSummary& summary, const std::string& path) {
  FileReport report = Reporter(summary).read();
  add_layout(summary, path, report);
  return report;
}

}  // namespace fairlead::report
