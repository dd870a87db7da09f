// Statements of several operators: tensors made of sizes, and operators that read memory.
#include "fairlead/base/error.h"
#include "fairlead/source/torch_source_impl.h"
#include "fairlead/symbol/equal.h"

namespace fairlead {
namespace {

std::string dims_text(const std::vector<std::int64_t>& dims) {
  std::string text = "[";
  for (std::size_t k = 0; k < dims.size(); ++k)
    text += (k > 0 ? ", " : "") + std::to_string(dims[k]);
  return text + "]";
}

}  // namespace

// torch.tensor([h, w]): one scalar tensor per element.
std::string TorchWriter::tensor_of_sizes(const Node& node) {
  const std::string dtype = argument(node.args[2], "");
  std::string elements;
  for (const Arg& item : node.args[0].items) {
    if (!elements.empty()) elements += ", ";
    elements +=
        "torch.ops.aten.scalar_tensor.default(" + argument(item, "") + ", dtype=" + dtype + ")";
  }
  return "torch.ops.aten.stack.default([" + elements + "]).reshape(" + argument(node.args[1], "") +
         ")";
}

// The dimensions of the tensor from outer to inner, as its memory had them when it was recorded:
// from the innermost out, the one whose stride is the product of the sizes within it.
std::vector<std::int64_t> TorchWriter::memory_order(const Node& node, std::size_t own) const {
  const std::vector<Expr>& shape = graph_.values[node.args[0].value].shape;
  std::vector<std::int64_t> order;
  if (own >= node.args.size() || node.args[own].items.size() != shape.size() + 1) {
    for (std::size_t k = 0; k < shape.size(); ++k) order.push_back(static_cast<std::int64_t>(k));
    return order;
  }
  const std::vector<Arg>& held = node.args[own].items;
  std::vector<bool> placed(shape.size(), false);
  Expr within = graph_.pool->constant(1);
  for (std::size_t k = 0; k < shape.size(); ++k) {
    std::size_t found = shape.size();
    for (std::size_t at = shape.size(); at-- > 0;) {
      if (placed[at]) continue;
      if (is_const(shape[at], 1) || equal(*graph_.pool, held[at].expr, within)) {
        found = at;
        if (is_const(shape[at], 1)) break;
      }
    }
    if (found == shape.size()) {
      throw Error(ErrorCode::kUnsupported,
                  "[torch_source] Expected as_strided of a tensor that fills its memory, got one "
                  "with gaps or overlaps (in " +
                      std::string(node.module) + " at " + std::string(node.source) +
                      "). Call .contiguous() before it.");
    }
    placed[found] = true;
    order.insert(order.begin(), static_cast<std::int64_t>(found));
    within = graph_.pool->mul(within, shape[found]);
  }
  return order;
}

std::string TorchWriter::as_strided(const Node& node, bool scatter) {
  const std::size_t first = scatter ? 2 : 1;  // size, stride, offset, the tensor's own strides
  const std::vector<std::int64_t> order = memory_order(node, first + 3);
  std::vector<std::int64_t> back(order.size());
  bool moved = false;
  for (std::size_t k = 0; k < order.size(); ++k) {
    back[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(k);
    moved = moved || order[k] != static_cast<std::int64_t>(k);
  }
  Expr offset = graph_.pool->constant(0);
  if (node.args.size() > first + 2 && node.args[first + 2].kind == ArgKind::kInt) {
    offset = node.args[first + 2].expr;
    if (node.args.size() > first + 3 && !node.args[first + 3].items.empty()) {
      offset = graph_.pool->sub(offset, node.args[first + 3].items.back().expr);
    }
  }
  std::string text = names_.at(node.args[0].value);
  if (moved) text += ".permute(" + dims_text(order) + ")";
  text += ".contiguous()";
  if (scatter)
    text =
        "torch.ops.aten.as_strided_scatter.default(" + text + ", " + names_.at(node.args[1].value);
  else
    text = "torch.ops.aten.as_strided.default(" + text;
  text += ", " + argument(node.args[first], "") + ", " + argument(node.args[first + 1], "") + ", " +
          size(offset) + ")";
  if (scatter && moved) text += ".permute(" + dims_text(back) + ")";
  return text;
}

}  // namespace fairlead
