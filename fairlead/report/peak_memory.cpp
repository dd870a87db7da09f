// Memory of the intermediate results at given sizes, from the shapes that the file says.
//  1. A result is alive from the node that makes it to the last node that reads it.
//  2. Inputs are alive from the start, outputs to the end.
//  3. Results of subgraphs are not counted; what subgraphs read from outside is.
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "fairlead/base/error.h"
#include "fairlead/onnx/reader_impl.h"
#include "fairlead/report/file_report.h"
#include "fairlead/symbol/expr.h"

namespace fairlead::report {
namespace {

class Sizes {
 public:
  explicit Sizes(const std::map<std::string, std::int64_t>& sizes) {
    for (const auto& [name, size] : sizes) {
      try {
        (void)pool_.symbol(name);
        values_.push_back(size);
      } catch (const Error&) {
        continue;  // a name that no expression can hold
      }
    }
  }

  // Bytes of a value; nullopt where its shape is unknown or names a size that is not given.
  std::optional<std::int64_t> bytes(const onnx::ValueSummary& value) {
    if (!value.shape) return std::nullopt;
    std::vector<std::int64_t> dims;
    for (const onnx::DimSummary& dim : *value.shape) {
      const std::optional<std::int64_t> size = dim.value ? dim.value : evaluate(dim.name);
      if (!size) return std::nullopt;
      dims.push_back(*size);
    }
    return onnx::elements_bytes(value.elem_type, dims);
  }

 private:
  std::optional<std::int64_t> evaluate(const std::string& text) {
    const auto [it, fresh] = known_.try_emplace(text);
    if (!fresh) return it->second;
    try {
      const Expr e = pool_.parse(text);
      it->second = pool_.evaluate(e, values_);
    } catch (const Error&) {
      it->second = std::nullopt;  // foreign files call dims what they like
    }
    return it->second;
  }

  ExprPool pool_;
  std::vector<std::int64_t> values_;
  std::unordered_map<std::string, std::optional<std::int64_t>> known_;
};

// A file may name more bytes than 64 bits can count.
__extension__ using Wide = __int128;

std::int64_t clamped(Wide bytes) {
  constexpr Wide kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(bytes > kMax ? kMax : bytes);
}

}  // namespace

PeakMemory peak_memory(const onnx::ModelSummary& summary,
                       const std::map<std::string, std::int64_t>& sizes) {
  PeakMemory peak;
  Sizes given(sizes);
  std::unordered_map<std::string, std::int64_t> bytes;
  for (const auto* list : {&summary.inputs, &summary.value_info, &summary.outputs}) {
    for (const onnx::ValueSummary& value : *list) {
      if (const auto size = given.bytes(value)) bytes.emplace(value.name, *size);
    }
  }
  std::unordered_map<std::string, std::size_t> last;
  for (std::size_t k = 0; k < summary.nodes.size(); ++k) {
    for (const std::string& name : summary.nodes[k].inputs) last[name] = k;
  }
  for (const onnx::ValueSummary& value : summary.outputs) last[value.name] = summary.nodes.size();

  Wide alive = 0;
  for (const onnx::ValueSummary& value : summary.inputs) {
    const auto it = bytes.find(value.name);
    it == bytes.end() ? void(++peak.unknown) : void(alive += it->second);
  }
  peak.inputs = peak.bytes = clamped(alive);
  std::unordered_set<std::string> made;
  for (std::size_t k = 0; k < summary.nodes.size(); ++k) {
    const onnx::NodeSummary& node = summary.nodes[k];
    Wide unread = 0;
    if (node.depth == 0) {
      for (const std::string& name : node.outputs) {
        if (name.empty()) continue;
        const auto it = bytes.find(name);
        if (it == bytes.end()) {
          ++peak.unknown;
          continue;
        }
        made.insert(name);
        alive += it->second;
        if (!last.contains(name)) unread += it->second;
      }
    }
    if (alive > peak.bytes) {
      peak.bytes = clamped(alive);
      peak.node = static_cast<std::int64_t>(k);
    }
    alive -= unread;
    for (const std::string& name : node.inputs) {
      const auto it = last.find(name);
      if (it != last.end() && it->second == k && made.erase(name) > 0) alive -= bytes.at(name);
    }
  }
  return peak;
}

}  // namespace fairlead::report
