// The operators whose result sizes are decided by data.
#include "fairlead/aten/rules/data_sizes.h"

#include "fairlead/aten/rules/rule_table.h"

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

using Sized = std::optional<DataSize>;
using SizeRule = Sized (*)(const Graph&, const Node&, std::size_t result);

Sized of_nonzero(const Graph&, const Node& node, std::size_t) {
  return DataSize{0, first_value(node.args[0])};
}
Sized of_index(const Graph& graph, const Node& node, std::size_t) {
  return boolean_index(graph, node);
}
Sized of_mask(const Graph& graph, const Node& node, std::size_t) {
  return masked_select(graph, node);
}
template <std::size_t kDim>
Sized of_unique(const Graph& graph, const Node& node, std::size_t result) {
  return unique_size(graph, node, kDim, result);
}
Sized of_first_axis(const Graph&, const Node&, std::size_t) { return DataSize{0, kNoValue}; }
// repeat_interleave.Tensor(repeats, output_size)
Sized of_repeats(const Graph&, const Node& node, std::size_t) {
  const bool given = node.args.size() > 1 && node.args[1].kind != ArgKind::kNone;
  return given ? std::nullopt : Sized(DataSize{0, kNoValue});
}

constexpr std::size_t kNoDim = SIZE_MAX;

// clang-format off
constexpr RuleRow<SizeRule> kRows[] = {
    {"aten._pack_padded_sequence.default", of_first_axis},
    {"aten._unique2.default",              of_unique<kNoDim>},
    {"aten.bincount.default",              of_first_axis},
    {"aten.index.Tensor",                  of_index},
    {"aten.masked_select.default",         of_mask},
    {"aten.nonzero.default",               of_nonzero},
    {"aten.nonzero_numpy.default",         of_nonzero},
    {"aten.repeat_interleave.Tensor",      of_repeats},
    {"aten.unique_consecutive.default",    of_unique<3>},
    {"aten.unique_dim.default",            of_unique<1>},
    {"torchvision.nms.default",            of_first_axis},
};
// clang-format on

}  // namespace

std::optional<DataSize> data_size(const Graph& graph, const Node& node, std::size_t result) {
  static const RuleTable<SizeRule> rules = {kRows};
  const SizeRule rule = rules.of(node.op);
  return rule == nullptr ? std::nullopt : rule(graph, node, result);
}

}  // namespace fairlead
