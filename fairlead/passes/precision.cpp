// One pass in execution order; what an operator made is as precise as the least of what it read.
#include "fairlead/passes/precision.h"

#include <algorithm>

namespace fairlead {
namespace {

// Bits of mantissa; a type that is exact has more than any.
int bits(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat8E4m3fn:
    case Dtype::kFloat8E4m3fnuz:
      return 3;
    case Dtype::kFloat8E5m2:
    case Dtype::kFloat8E5m2fnuz:
      return 2;
    case Dtype::kBfloat16:
      return 8;
    case Dtype::kFloat16:
      return 11;
    case Dtype::kFloat32:
    case Dtype::kComplex64:
      return 24;
    default:
      return 64;
  }
}

class Precision {
 public:
  explicit Precision(const Graph& graph)
      : graph_(graph), lowest_(graph.values.size(), Dtype::kInt64) {}

  void visit(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      Dtype found = Dtype::kInt64;
      for (const Arg& arg : node.args) read(arg, found);
      for (const Body& body : node.bodies) {
        for (const ValueId id : body.inputs) lowest_[id] = found;
        visit(body.nodes);
        for (const ValueId id : body.outputs) lower(lowest_[id], found);
      }
      for (const ValueId id : node.outputs) {
        if (id == kNoValue) continue;
        lowest_[id] = found;
        lower(graph_.values[id].dtype, lowest_[id]);
      }
    }
  }

  [[nodiscard]] Dtype of(ValueId id) const {
    return bits(lowest_[id]) < bits(graph_.values[id].dtype) ? lowest_[id]
                                                             : graph_.values[id].dtype;
  }

 private:
  void read(const Arg& arg, Dtype& found) const {
    if (arg.kind == ArgKind::kValue && arg.value != kNoValue) lower(lowest_[arg.value], found);
    for (const Arg& item : arg.items) read(item, found);
  }

  static void lower(Dtype with, Dtype& found) {
    if (bits(with) < bits(found)) found = with;
  }

  const Graph& graph_;
  std::vector<Dtype> lowest_;
};

}  // namespace

std::vector<Dtype> output_precision(const Graph& graph) {
  Precision precision(graph);
  precision.visit(graph.nodes);
  std::vector<Dtype> found;
  for (const ValueId id : graph.outputs) found.push_back(precision.of(id));
  return found;
}

}  // namespace fairlead
