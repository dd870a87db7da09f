// What a lowering emits: nodes and constants, each once, named after the module they come from.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fairlead/onnx/arguments.h"
#include "fairlead/onnx/faults.h"
#include "fairlead/onnx/model.h"
#include "fairlead/passes/target.h"

namespace fairlead::onnx {

// A tensor of the ONNX graph under construction; absent by default.
struct Val {
  TensorId id = kAbsent;
  [[nodiscard]] bool present() const { return id != kAbsent; }
  bool operator==(const Val&) const = default;
};

using Inputs = CheckedList<Val>;
using Attributes = std::vector<Attribute>;

[[nodiscard]] Attribute attr(std::string_view name, std::int64_t value);
[[nodiscard]] Attribute attr(std::string_view name, float value);
[[nodiscard]] Attribute attr(std::string_view name, std::string_view value);
[[nodiscard]] Attribute attr(std::string_view name, std::vector<std::int64_t> value);
// Without this a literal would convert to bool.
[[nodiscard]] inline Attribute attr(std::string_view name, const char* value) {
  return attr(name, std::string_view(value));
}
[[nodiscard]] inline Attribute attr(std::string_view name, int value) {
  return attr(name, static_cast<std::int64_t>(value));
}
[[nodiscard]] inline Attribute attr(std::string_view name, bool value) {
  return attr(name, static_cast<std::int64_t>(value));
}

class Emission : public Arguments {
 public:
  Emission(const fairlead::Graph& graph, const RuntimeProfile& runtime)
      : Arguments(graph), runtime_(runtime) {}

  [[nodiscard]] const RuntimeProfile& runtime() const { return runtime_; }
  // The type in which the runtime computes `type` on elements of `dtype`: itself where it can.
  [[nodiscard]] Dtype kernel_dtype(std::string_view type, Dtype dtype) const;
  [[nodiscard]] bool has_kernel(std::string_view type, Dtype dtype) const {
    return kernel_dtype(type, dtype) == dtype;
  }
  // Whether a form has to be written that this fault of the runtime does not meet.
  [[nodiscard]] bool avoids(Fault fault) const { return has_fault(runtime_, fault); }

  // One result. Its dtype follows the operator (Equal -> bool, Shape -> int64, Cast -> `to`, else
  // the first input's, for Where the second's) unless `dtype` says otherwise.
  Val op(std::string_view type, const Inputs& inputs, Attributes attributes = {},
         std::optional<Dtype> dtype = std::nullopt, std::string_view domain = {});
  // Several results, with their dtypes.
  Inputs ops(std::string_view type, const Inputs& inputs, const std::vector<Dtype>& dtypes,
             Attributes attributes = {}, std::string_view domain = {});
  // Like op, for operators whose result differs each time (random): never shared.
  Val fresh_op(std::string_view type, const Inputs& inputs, Attributes attributes, Dtype dtype);
  // The body of a Loop, If or Scan: nodes emitted by `build` belong to it, and may use values from
  // outside. `build` gets the body's inputs (types and, where known, shapes; their names are given)
  // and gives its outputs.
  [[nodiscard]] std::shared_ptr<Graph> body(std::vector<TensorInfo> inputs,
                                            const std::function<Inputs(const Inputs&)>& build);

  // Also where a lowering expects a tensor and the node has none: unsupported.
  [[nodiscard]] Dtype dtype_of(Val v) const;
  // Whether v is what a node of this type just made.
  [[nodiscard]] bool made_by(Val v, std::string_view type) const;
  // Whether a Transpose of three axes or more made v, and moved the first.
  [[nodiscard]] bool first_axis_moved(Val v) const;
  // The constant bytes behind v, or nullptr: initializers of the model and emitted constants.
  [[nodiscard]] const TensorData* data_of(Val v) const;

  // Constants. Equal ones are stored once.
  Val constant(TensorData data, std::string_view name = {});
  Val ints(std::span<const std::int64_t> values);  // int64 [n]
  Val ints(std::initializer_list<std::int64_t> values);
  Val scalar(double value, Dtype dtype);                                      // rank 0
  Val filled(double value, Dtype dtype, std::span<const std::int64_t> dims);  // small constants
  // Lowest and highest finite value of a dtype, as used in masks.
  [[nodiscard]] static double lowest(Dtype dtype);
  [[nodiscard]] static double highest(Dtype dtype);

  Val cast(Val v, Dtype dtype);  // v itself where it has that dtype
  Val transpose(Val v, std::vector<std::int64_t> perm);
  Val unsqueeze(Val v, std::vector<std::int64_t> axes);
  Val squeeze(Val v, std::vector<std::int64_t> axes);
  Val slice(Val v, std::int64_t axis, Val start, Val end,
            std::int64_t step = 1);  // start, end: [1]
  Val concat(const Inputs& parts, std::int64_t axis);
  // Reductions take axes as input or attribute depending on operator and opset: this knows which.
  Val reduce(std::string_view type, Val v, std::vector<std::int64_t> axes, bool keepdim);

 protected:
  [[nodiscard]] TensorId new_tensor(Dtype dtype, std::string name);
  [[nodiscard]] std::string unique(std::string name);
  [[nodiscard]] static std::uint64_t name_hash(std::string_view name);

  Model model_;
  // Hashes of the names that are taken: two with one hash cost a number behind one of them.
  std::unordered_set<std::uint64_t> names_;
  std::unordered_map<TensorId, std::size_t> initializer_of_;

 private:
  Inputs emit(std::string_view type, const Inputs& inputs, const std::vector<Dtype>& dtypes,
              Attributes attributes, std::string_view domain, bool shared);
  [[nodiscard]] std::string scope() const;
  [[nodiscard]] const Node* maker(Val v) const;  // of the graph at hand

  RuntimeProfile runtime_;
  // Nodes that can be shared, by the hash of what they compute; positions in the graph.
  std::unordered_multimap<std::uint64_t, std::uint32_t> emitted_;
  std::unordered_map<std::uint64_t, int> numbers_;  // by the hash of a name: the last one behind it
  std::unordered_map<std::string, TensorId>
      constants_;  // by dtype, dims, strides, bytes or pointer
};

}  // namespace fairlead::onnx
