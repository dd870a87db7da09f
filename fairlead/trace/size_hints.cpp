// (x + 2*padding - dilation*(kernel - 1) - 1) // stride + 1, and what its relatives make of it.
#include "fairlead/trace/size_hints.h"

#include <string_view>

namespace fairlead {
namespace {

std::int64_t at(const Arg& list, std::size_t axis, std::int64_t otherwise) {
  if (list.kind == ArgKind::kInt && is_const(list.expr)) return list.expr->value;
  if (list.items.empty()) return otherwise;
  const Arg& item = list.items[axis < list.items.size() ? axis : list.items.size() - 1];
  return item.kind == ArgKind::kInt && is_const(item.expr) ? item.expr->value : otherwise;
}

struct Window {
  ExprPool& pool;
  const Graph& graph;
  const Node& node;

  [[nodiscard]] const std::vector<Expr>& input() const {
    return graph.values[node.args[0].value].shape;
  }

  [[nodiscard]] Expr slide(Expr x, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                           std::int64_t dilation, bool ceil) const {
    const std::int64_t shift = 2 * padding - dilation * (kernel - 1) - 1 + (ceil ? stride - 1 : 0);
    return pool.add(pool.floordiv(pool.add(x, pool.constant(shift)), pool.constant(stride)),
                    pool.constant(1));
  }
};

}  // namespace

std::vector<Expr> size_hints(ExprPool& pool, const Graph& graph, const Node& node) {
  const std::string_view op = node.op;
  std::vector<Expr> hints;
  const Window w{pool, graph, node};
  if (op == "aten.convolution.default" || op == "aten._convolution.default") {
    const auto& weight = graph.values[node.args[1].value].shape;
    const bool transposed = node.args[6].number != 0;
    const std::size_t spatial = weight.size() - 2;
    for (std::size_t k = 0; k < spatial; ++k) {
      if (!is_const(weight[k + 2]) || w.input().size() < spatial) continue;
      const Expr x = w.input()[w.input().size() - spatial + k];
      const std::int64_t kernel = weight[k + 2]->value;
      const std::int64_t stride = at(node.args[3], k, 1), padding = at(node.args[4], k, 0);
      const std::int64_t dilation = at(node.args[5], k, 1);
      if (!transposed) {
        hints.push_back(w.slide(x, kernel, stride, padding, dilation, false));
        continue;
      }
      const std::int64_t extra =
          at(node.args[7], k, 0) + dilation * (kernel - 1) + 1 - 2 * padding - stride;
      hints.push_back(pool.add(pool.mul(x, pool.constant(stride)), pool.constant(extra)));
    }
    return hints;
  }
  // (self, kernel_size, stride, padding, dilation or ceil_mode, ...)
  const bool max_pool = op.find("max_pool") != std::string_view::npos;
  const bool avg_pool = op.find("avg_pool") != std::string_view::npos;
  if ((max_pool || avg_pool) && op.find("adaptive") == std::string_view::npos) {
    const std::size_t spatial = op.find("1d") != std::string_view::npos   ? 1
                                : op.find("3d") != std::string_view::npos ? 3
                                                                          : 2;
    const std::size_t ceil_at = max_pool ? 5 : 4;
    const bool ceil = node.args.size() > ceil_at && node.args[ceil_at].number != 0;
    for (std::size_t k = 0; k < spatial && w.input().size() >= spatial; ++k) {
      const Expr x = w.input()[w.input().size() - spatial + k];
      const std::int64_t kernel = at(node.args[1], k, 1);
      hints.push_back(w.slide(x, kernel, at(node.args[2], k, kernel), at(node.args[3], k, 0),
                              max_pool ? at(node.args[4], k, 1) : 1, ceil));
    }
  }
  return hints;
}

}  // namespace fairlead
