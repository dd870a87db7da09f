// Joins the families' tables and lowers a graph node by node.
#include "fairlead/onnx/lowering.h"

#include <algorithm>
#include <map>

#include "fairlead/base/error.h"
#include "fairlead/graph/validate.h"
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
    std::map<std::string_view, std::size_t> sources;  // every place, with its count
  };
  std::map<std::string, Missing> missing;
  for_each_node(graph.nodes, [&](const fairlead::Node& node) {
    if (find_op(node.op) != nullptr) return;
    Missing& m = missing[node.op.str()];
    if (m.count++ == 0) {
      m.module = node.module;
      m.source = node.source;
    }
    ++m.sources[node.source];
  });
  if (missing.empty()) return;
  std::string text;
  std::vector<ErrorDetail> details;
  for (const auto& [name, m] : missing) {
    ErrorDetail& detail = details.emplace_back();
    detail.kind = "missing operator";
    detail.fields = {{"operator", name},
                     {"count", std::to_string(m.count)},
                     {"module", std::string(m.module)},
                     {"source", std::string(m.source)}};
    for (const auto& [source, count] : m.sources) {
      detail.values.push_back(std::string(source) + " (" + std::to_string(count) + "x)");
    }

    text += (text.empty() ? "" : "; ") + name + " (" + std::to_string(m.count) + "x, first in " +
            std::string(m.module.empty() ? "the model" : m.module) + " at " +
            std::string(m.source) + ")";
  }
  throw Error(ErrorCode::kUnsupported,
              "[lower] Expected operators that can be written to ONNX, got " +
                  std::to_string(missing.size()) + " that cannot: " + text +
                  ". Register a lowering for each, or replace them in the model.",
              std::move(details));
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

namespace {

// Forms that cannot be written, each with the places where it was met.
class UnwritableForms {
 public:
  [[nodiscard]] bool empty() const { return details_.empty(); }

  void add(const Error& error) {
    const std::string sentence = error.what();
    for (const ErrorDetail& detail : error.details()) {
      const auto [it, fresh] = index_.try_emplace(sentence, details_.size());
      if (fresh) {
        details_.push_back(detail);
        counts_.push_back(0);
      }
      ++counts_[it->second];
    }
    if (counts_.size() == 1) first_ = sentence;
  }

  [[noreturn]] void refuse() {
    std::string text = first_;
    for (const auto& [sentence, k] : index_) {
      if (k > 0) text += " Also " + sentence.substr(std::string_view("[lower] ").size());
    }
    for (std::size_t k = 0; k < details_.size(); ++k) {
      details_[k].fields.emplace_back("count", std::to_string(counts_[k]));
    }
    throw Error(ErrorCode::kUnsupported, text, std::move(details_));
  }

 private:
  std::string first_;
  std::map<std::string, std::size_t> index_;  // by sentence: operator, reason and place
  std::vector<ErrorDetail> details_;
  std::vector<std::size_t> counts_;
};

// Stands for the results of an operator that cannot be written, so that those after it can be
// tried.
void make_up_results(Lowering& b) {
  for (std::size_t k = 0; k < b.result_count(); ++k) {
    if (!b.result_used(k)) continue;
    const Val made_up = b.fresh_op("Unsupported", {}, {}, b.out_dtype(k));
    b.result(k, made_up);
  }
}

}  // namespace

Model lower_graph(const fairlead::Graph& graph, const LowerOptions& options) {
  const int newest = options.runtime.newest_opset();
  if (options.opset < kSmallestOpset || options.opset > newest) {
    throw Error(ErrorCode::kInvalidInput,
                "[lower] Expected an opset from " + std::to_string(kSmallestOpset) + " to " +
                    std::to_string(newest) + ", got " + std::to_string(options.opset) + ".");
  }
  refuse_missing(graph);
  validate(graph, "the graph");
  Lowering lowering(graph, options);
  lowering.check_bounds();
  lowering.check_values(false);  // of inputs
  UnwritableForms forms;
  const bool has_complex =
      std::any_of(graph.values.begin(), graph.values.end(),
                  [](const fairlead::Value& value) { return is_complex(value.dtype); });
  for (const fairlead::Node& node : graph.nodes) {
    try {
      lowering.run(node, find_op(node.op)->lower);
      lowering.check_values(false);
    } catch (const Error& error) {
      const bool form = error.code() == ErrorCode::kUnsupported && !error.details().empty();
      if (!form && forms.empty()) throw;
      if (form) forms.add(error);
      // What else fails after results were made up may only follow from that. Complex values come
      // in parts, which an error leaves half done.
      if (!form || has_complex) break;
      lowering.run(node, make_up_results);
    } catch (...) {  // a lowering of the user's
      if (forms.empty()) throw;
      break;
    }
  }
  if (!forms.empty()) forms.refuse();
  lowering.check_values(true);
  return lowering.finish();
}

}  // namespace fairlead::onnx
