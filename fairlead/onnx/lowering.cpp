// Joins the families' tables and lowers a graph node by node.
#include "fairlead/onnx/lowering.h"

#include <algorithm>
#include <map>

#include "fairlead/base/error.h"
#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

std::vector<OpRow> join() {
  std::vector<OpRow> rows;
  for (const auto family : families()) rows.insert(rows.end(), family.begin(), family.end());
  std::sort(rows.begin(), rows.end(),
            [](const OpRow& a, const OpRow& b) { return a.aten < b.aten; });
  for (std::size_t k = 1; k < rows.size(); ++k) {
    FAIRLEAD_CHECK(rows[k - 1].aten != rows[k].aten, "two rows lower " + std::string(rows[k].aten));
  }
  return rows;
}

void refuse_missing(const fairlead::Graph& graph) {
  struct Missing {
    std::size_t count = 0;
    std::string_view module, source;
  };
  std::map<std::string, Missing> missing;
  for_each_node(graph.nodes, [&](const fairlead::Node& node) {
    if (find_op(node.op) != nullptr) return;
    Missing& m = missing[node.op];
    if (m.count++ == 0) {
      m.module = node.module;
      m.source = node.source;
    }
  });
  if (missing.empty()) return;
  std::string text;
  for (const auto& [name, m] : missing) {
    text += (text.empty() ? "" : "; ") + name + " (" + std::to_string(m.count) + "x, first in " +
            std::string(m.module.empty() ? "the model" : m.module) + " at " +
            std::string(m.source) + ")";
  }
  throw Error(ErrorCode::kUnsupported,
              "[lower] Expected operators that can be written to ONNX, got " +
                  std::to_string(missing.size()) + " that cannot: " + text +
                  ". Register a lowering for each, or replace them in the model.");
}

}  // namespace

std::span<const OpRow> op_rows() {
  static const std::vector<OpRow> rows = join();
  return rows;
}

namespace {

struct OwnRow {
  std::string aten, form, limits;
  OpRow row;
};

// Rows of the user's; few, so that looking first into an empty map costs nothing.
std::map<std::string, OwnRow, std::less<>>& own_rows() {
  static std::map<std::string, OwnRow, std::less<>> rows;
  return rows;
}

}  // namespace

void register_op(const OpRow& row) {
  OwnRow& own = own_rows()[std::string(row.aten)];
  own = {std::string(row.aten), std::string(row.form), std::string(row.limits), row};
  own.row = {own.aten, row.lower, own.form, own.limits};
}

void unregister_op(std::string_view aten) {
  const auto it = own_rows().find(aten);
  if (it != own_rows().end()) own_rows().erase(it);
}

const OpRow* find_op(std::string_view aten) {
  if (const auto it = own_rows().find(aten); it != own_rows().end()) return &it->second.row;
  static const std::unordered_map<std::string_view, const OpRow*> index = [] {
    std::unordered_map<std::string_view, const OpRow*> map;
    for (const OpRow& row : op_rows()) map.emplace(row.aten, &row);
    return map;
  }();
  const auto it = index.find(aten);
  return it == index.end() ? nullptr : it->second;
}

Model lower_graph(const fairlead::Graph& graph, const LowerOptions& options) {
  refuse_missing(graph);
  Lowering lowering(graph, options);
  for (const fairlead::Node& node : graph.nodes) lowering.run(node, find_op(node.op)->lower);
  return lowering.finish();
}

}  // namespace fairlead::onnx
