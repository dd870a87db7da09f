// Operators that keep, move or combine whole axes of their arguments.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "fairlead/trace/size_hints.h"

namespace fairlead {
namespace {

struct Reader {
  const Graph& graph;
  const Node& node;

  [[nodiscard]] bool is_value(std::size_t k) const {
    return k < node.args.size() && node.args[k].kind == ArgKind::kValue;
  }

  [[nodiscard]] const Shape& shape(std::size_t k) const {
    return graph.values[node.args[k].value].shape;
  }

  // A constant axis of argument 0, counted from its front.
  [[nodiscard]] std::optional<std::size_t> axis(const Arg& arg, std::size_t rank) const {
    if (arg.kind != ArgKind::kInt || !is_const(arg.expr)) return std::nullopt;
    const auto count = static_cast<std::int64_t>(rank);
    const std::int64_t at = arg.expr->value < 0 ? arg.expr->value + count : arg.expr->value;
    if (at < 0 || at >= count) return std::nullopt;
    return static_cast<std::size_t>(at);
  }
};

using Known = std::vector<Expr>;

// permute(self, dims)
Known permuted(const Reader& r) {
  const Shape& x = r.shape(0);
  Known moved;
  for (const Arg& dim : r.node.args[1].items) {
    const auto from = r.axis(dim, x.size());
    if (!from) return {};
    moved.push_back(x[*from]);
  }
  return moved;
}

// transpose(self, dim0, dim1)
Known transposed(const Reader& r) {
  Known x(r.shape(0).begin(), r.shape(0).end());
  const auto one = r.axis(r.node.args[1], x.size()), other = r.axis(r.node.args[2], x.size());
  if (!one || !other) return {};
  std::swap(x[*one], x[*other]);
  return x;
}

// unsqueeze(self, dim), select(self, dim, index)
Known with_one_more(const Reader& r) {
  Known x(r.shape(0).begin(), r.shape(0).end());
  const auto at = r.axis(r.node.args[1], x.size() + 1);
  if (!at) return {};
  x.insert(x.begin() + static_cast<std::ptrdiff_t>(*at), r.graph.pool->constant(1));
  return x;
}

Known with_one_less(const Reader& r) {
  Known x(r.shape(0).begin(), r.shape(0).end());
  const auto at = r.axis(r.node.args[1], x.size());
  if (!at) return {};
  x.erase(x.begin() + static_cast<std::ptrdiff_t>(*at));
  return x;
}

// Products of matrices: rows of one, columns of the other, whatever stands before in either.
Known product(const Reader& r, std::size_t left, std::size_t right, bool turned) {
  if (!r.is_value(left) || !r.is_value(right)) return {};
  const Shape &a = r.shape(left), &b = r.shape(right);
  if (a.size() < 2 || b.size() < 2) return {};
  Known made(a.begin(), a.end());
  if (b.size() > a.size()) made.insert(made.begin(), b.size() - a.size(), nullptr);
  for (std::size_t k = 3; k <= made.size(); ++k) {
    Expr& e = made[made.size() - k];
    if (k <= b.size() && e != b[b.size() - k]) {
      e = e == nullptr || is_const(e, 1) ? b[b.size() - k]
          : is_const(b[b.size() - k], 1) ? e
                                         : nullptr;
    }
  }
  made.back() = turned ? b[b.size() - 2] : b[b.size() - 1];
  return made;
}

// upsample_*(self, output_size, ...)
Known resized(const Reader& r) {
  const Shape& x = r.shape(0);
  const Arg& sizes = r.node.args[1];
  if (sizes.kind != ArgKind::kList || sizes.items.size() + 2 != x.size()) return {};
  Known made(x.begin(), x.begin() + 2);
  for (const Arg& size : sizes.items) {
    if (size.kind != ArgKind::kInt) return {};
    made.push_back(size.expr);
  }
  return made;
}

// grid_sampler(input, grid, ...): the places of the grid
Known sampled(const Reader& r) {
  if (!r.is_value(1)) return {};
  const Shape &x = r.shape(0), &grid = r.shape(1);
  if (x.size() < 3 || grid.size() != x.size()) return {};
  Known made(x.begin(), x.begin() + 2);
  made.insert(made.end(), grid.begin() + 1, grid.end() - 1);
  return made;
}

// What is left are mostly operators that go element by element: each axis is that of the arguments
// with as many axes, where these agree. Sizes given as numbers say more than that.
Known kept(const Reader& r) {
  const bool norm = r.node.op.find("_norm") != std::string::npos;
  std::size_t rank = 0;
  for (std::size_t k = 0; k < r.node.args.size(); ++k) {
    const Arg& arg = r.node.args[k];
    if (arg.kind == ArgKind::kList && !arg.items.empty() && !norm) return {};
    if (r.is_value(k)) rank = std::max(rank, r.shape(k).size());
  }
  Known made(rank, nullptr);
  std::vector<bool> disputed(rank, false);
  for (std::size_t k = 0; k < r.node.args.size(); ++k) {
    if (!r.is_value(k) || r.shape(k).size() != rank) continue;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const Expr own = r.shape(k)[axis];
      if (is_const(own, 1) || own == made[axis]) continue;
      if (made[axis] != nullptr) disputed[axis] = true;
      made[axis] = own;
    }
  }
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (disputed[axis] || (made[axis] != nullptr && is_const(made[axis]))) made[axis] = nullptr;
  }
  return made;
}

}  // namespace

std::vector<Expr> kept_shape(const Graph& graph, const Node& node) {
  const Reader r{graph, node};
  if (!r.is_value(0)) return {};
  const std::string_view op = node.op;
  if (op == "aten.permute.default") return permuted(r);
  if (op == "aten.transpose.int") return transposed(r);
  if (op == "aten.unsqueeze.default") return with_one_more(r);
  if (op == "aten.select.int") return with_one_less(r);
  if (op == "aten.matmul.default" || op == "aten.mm.default" || op == "aten.bmm.default") {
    return product(r, 0, 1, false);
  }
  if (op == "aten.addmm.default" || op == "aten.baddbmm.default") return product(r, 1, 2, false);
  if (op == "aten.linear.default") return product(r, 0, 1, true);
  if (op.starts_with("aten.upsample_") || op.starts_with("aten._upsample_")) return resized(r);
  if (op.starts_with("aten.grid_sampler")) return sampled(r);
  // Axes change places or are combined in these; their sizes are solved.
  static constexpr std::array<std::string_view, 10> kOthers = {
      "aten.t.",   "aten.mT.",      "aten.cdist.", "aten._cdist_forward.", "aten.kron.",
      "aten.swap", "aten.numpy_T.", "aten.pixel_", "aten.movedim",         "aten.bilinear."};
  const auto named = [&](std::string_view other) { return op.starts_with(other); };
  if (std::any_of(kOthers.begin(), kOthers.end(), named)) return {};
  return kept(r);
}

}  // namespace fairlead
