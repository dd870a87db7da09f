// The operators whose result sizes are decided by data.
#include "fairlead/trace/data_sizes.h"

#include <string_view>

namespace fairlead {
namespace {

ValueId first_value(const Arg& arg) { return arg.kind == ArgKind::kValue ? arg.value : kNoValue; }

// x[mask]: the masked dimensions become one, in place where the indices are adjacent, else in
// front.
std::optional<DataSize> boolean_index(const Graph& graph, const Node& node) {
  if (node.args.size() < 2) return std::nullopt;
  DataSize size;
  int first = -1;
  int last = -1;
  int blocks = 0;
  int axis = 0;
  for (const Arg& item : node.args[1].items) {
    if (item.kind != ArgKind::kValue) {
      ++axis;
      last = -1;
      continue;
    }
    if (last < 0) ++blocks;
    if (first < 0) first = axis;
    last = axis;
    const Value& index = graph.values[item.value];
    if (index.dtype == Dtype::kBool || index.dtype == Dtype::kUint8) {
      size.key = item.value;
      axis += static_cast<int>(index.shape.size());
    } else {
      ++axis;
    }
  }
  if (size.key == kNoValue) return std::nullopt;
  size.axis = blocks == 1 ? first : 0;
  return size;
}

// (values, inverse, counts): the values vary along `dim`, the counts have one dimension, and the
// inverse has the input's sizes.
std::optional<DataSize> unique_size(const Graph& graph, const Node& node, std::size_t dim_at,
                                    std::size_t result) {
  if (result == 1) return std::nullopt;
  DataSize size;
  if (result == 0 && dim_at < node.args.size() && node.args[dim_at].kind == ArgKind::kInt) {
    const auto rank = static_cast<int>(graph.values[node.args[0].value].shape.size());
    size.axis = static_cast<int>(node.args[dim_at].expr->value);
    if (size.axis < 0) size.axis += rank;
  }
  return size;
}

// The elements of x where the mask is true. They are as many as the mask has true ones, unless the
// mask is broadcast to a larger x.
DataSize masked_select(const Graph& graph, const Node& node) {
  DataSize size;
  const auto& x = graph.values[node.args[0].value].shape;
  const auto& mask = graph.values[node.args[1].value].shape;
  if (x.size() > mask.size()) return size;
  for (std::size_t k = 1; k <= x.size(); ++k) {
    const Expr e = x[x.size() - k];
    if (e != mask[mask.size() - k] && !is_const(e, 1)) return size;
  }
  size.key = node.args[1].value;
  return size;
}

}  // namespace

std::optional<DataSize> data_size(const Graph& graph, const Node& node, std::size_t result) {
  const std::string_view op = node.op;
  if (op == "aten.index.Tensor") return boolean_index(graph, node);
  if (op == "aten.nonzero.default" || op == "aten.nonzero_numpy.default") {
    return DataSize{0, first_value(node.args[0])};
  }
  if (op == "aten.masked_select.default") return masked_select(graph, node);
  if (op == "aten._unique2.default") return unique_size(graph, node, node.args.size(), result);
  if (op == "aten.unique_dim.default") return unique_size(graph, node, 1, result);
  if (op == "aten.unique_consecutive.default") return unique_size(graph, node, 3, result);
  if (op == "aten.bincount.default" || op == "aten._pack_padded_sequence.default" ||
      op == "torchvision.nms.default") {
    return DataSize{0, kNoValue};
  }
  if (op == "aten.repeat_interleave.Tensor") {
    const bool given = node.args.size() > 1 && node.args[1].kind != ArgKind::kNone;
    return given ? std::nullopt : std::optional(DataSize{0, kNoValue});
  }
  return std::nullopt;
}

}  // namespace fairlead
