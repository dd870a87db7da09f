// Products of matrices, attention, and what looks vectors up.
#include "fairlead/aten/rules/shape_call.h"

namespace fairlead {
namespace {

[[nodiscard]] bool are_values(const ShapeCall& call, std::size_t a, std::size_t b) {
  return call.is_value(a) && call.is_value(b);
}

// matmul(self, other): vectors take part as a row and a column, which the result does not have
ResultShapes product(const ShapeCall& call, std::size_t left, std::size_t right) {
  if (!are_values(call, left, right)) return {};
  const std::vector<Expr> a = list_of(call.shape(left)), b = list_of(call.shape(right));
  if (a.empty() || b.empty()) return {};
  const auto before = [](const std::vector<Expr>& s) {
    return std::vector<Expr>(s.begin(), s.size() < 2 ? s.begin() : s.end() - 2);
  };
  std::vector<Expr> shape = broadcast(call.pool, before(a), before(b));
  if (a.size() > 1) shape.push_back(a[a.size() - 2]);
  if (b.size() > 1) shape.push_back(b.back());
  return {shape};
}

ResultShapes matmul(const ShapeCall& call) { return product(call, 0, 1); }

ResultShapes added_product(const ShapeCall& call) { return product(call, 1, 2); }

// linear(input, weight, bias)
ResultShapes linear(const ShapeCall& call) {
  if (!are_values(call, 0, 1) || call.rank(0) == 0 || call.rank(1) == 0) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  shape.pop_back();
  if (call.rank(1) == 2) shape.push_back(call.shape(1)[0]);
  return {shape};
}

ResultShapes outer(const ShapeCall& call) {
  if (!are_values(call, 0, 1) || call.rank(0) != 1 || call.rank(1) != 1) return {};
  return {{call.shape(0)[0], call.shape(1)[0]}};
}

ResultShapes added_outer(const ShapeCall& call) {
  if (!are_values(call, 1, 2) || call.rank(1) != 1 || call.rank(2) != 1) return {};
  return {{call.shape(1)[0], call.shape(2)[0]}};
}

// addbmm(self, batch1, batch2): summed over the batch
ResultShapes summed_product(const ShapeCall& call) {
  if (!are_values(call, 1, 2) || call.rank(1) != 3 || call.rank(2) != 3) return {};
  return {{call.shape(1)[1], call.shape(2)[2]}};
}

// scaled_dot_product_attention(query, key, value, ...): as many rows as queries, as long as values
ResultShapes attention(const ShapeCall& call) {
  if (!are_values(call, 0, 2) || call.rank(0) < 2 || call.rank(2) != call.rank(0)) return {};
  std::vector<Expr> shape = list_of(call.shape(0));
  shape.back() = call.shape(2)[call.rank(2) - 1];
  for (std::size_t k = 0; k + 2 < shape.size(); ++k) {
    if (is_const(shape[k], 1)) shape[k] = nullptr;  // keys and values may have more
  }
  return {shape};
}

// embedding(weight, indices)
ResultShapes embedding(const ShapeCall& call) {
  if (!are_values(call, 0, 1) || call.rank(0) != 2) return {};
  std::vector<Expr> shape = list_of(call.shape(1));
  shape.push_back(call.shape(0)[1]);
  return {shape};
}

// cdist(x1, x2)
ResultShapes distances(const ShapeCall& call) {
  if (!are_values(call, 0, 1) || call.rank(0) < 2 || call.rank(1) < 2) return {};
  const std::vector<Expr> a = list_of(call.shape(0)), b = list_of(call.shape(1));
  std::vector<Expr> shape =
      broadcast(call.pool, {a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
  shape.push_back(a[a.size() - 2]);
  shape.push_back(b[b.size() - 2]);
  return {shape};
}

constexpr ShapeRow kRows[] = {
    {"aten._cdist_forward.default", distances},
    {"aten._euclidean_dist.default", distances},
    {"aten._int_mm.default", matmul},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", attention},
    {"aten.addbmm.default", summed_product},
    {"aten.addmm.default", added_product},
    {"aten.addmv.default", added_product},
    {"aten.addr.default", added_outer},
    {"aten.baddbmm.default", added_product},
    {"aten.bmm.default", matmul},
    {"aten.cdist.default", distances},
    {"aten.embedding.default", embedding},
    {"aten.ger.default", outer},
    {"aten.linear.default", linear},
    {"aten.matmul.default", matmul},
    {"aten.mm.default", matmul},
    {"aten.mv.default", matmul},
    {"aten.outer.default", outer},
    {"aten.scaled_dot_product_attention.default", attention},
};

}  // namespace

std::span<const ShapeRow> product_shapes() { return kRows; }

}  // namespace fairlead
