// Reading by index.
#include <algorithm>

#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

// aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, ...) -> Tensor
void lower_embedding(Lowering& b) {
  b.result(b.op("Gather", {b.in(0), b.in(1, Dtype::kInt64)}, {attr("axis", 0)}));
}

// aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
//
// One integer index is a Gather. Several are broadcast together and become a GatherND on a tensor whose
// indexed dimensions were moved to the front; their result goes back to the place of the first where
// they stood side by side. A boolean index is first turned into the integer indices of its true places.
void lower_index(Lowering& b) {
  const auto& items = b.node().args[1].items;
  struct Index {
    std::int64_t axis;
    Val value;
    Shape shape;
  };
  std::vector<Index> indices;
  std::int64_t axis = 0;
  bool boolean = false;
  for (const Arg& item : items) {
    if (item.kind != ArgKind::kValue) {
      ++axis;
      continue;
    }
    const auto& value = b.graph().values[item.value];
    const Val v = b.ins(1)[static_cast<std::size_t>(&item - items.data())];
    if (value.dtype == Dtype::kBool || value.dtype == Dtype::kUint8) {
      boolean = true;
      const Val places = b.op("NonZero", {b.cast(v, Dtype::kBool)});  // [rank, n]
      const Expr count = b.pool().symbol("?", SymbolKind::kData);
      for (std::size_t k = 0; k < value.shape.size(); ++k) {
        indices.push_back({axis++, b.op("Gather", {places, b.size_scalar(b.expr(static_cast<std::int64_t>(k)))},
                                        {attr("axis", 0)}), {count}});
      }
    } else {
      indices.push_back({axis++, b.cast(v, Dtype::kInt64), value.shape});
    }
  }
  if (indices.size() == 1) {
    return b.result(b.op("Gather", {b.in(0), indices[0].value}, {attr("axis", indices[0].axis)}));
  }
  // Broadcast the indices together.
  std::size_t wide = 0;
  for (const Index& i : indices) wide = std::max(wide, i.shape.size());
  bool equal = true;
  for (const Index& i : indices) equal = equal && i.shape == indices[0].shape;
  Inputs parts;
  if (equal) {
    for (const Index& i : indices) parts.push_back(b.unsqueeze(i.value, {-1}));
  } else {
    Val sum = indices[0].value;
    for (std::size_t k = 1; k < indices.size(); ++k) sum = b.op("Add", {sum, indices[k].value});
    const Val target = b.op("Shape", {sum});
    for (const Index& i : indices) parts.push_back(b.unsqueeze(b.op("Expand", {i.value, target}), {-1}));
  }
  const Val together = b.concat(parts, -1);
  // Indexed dimensions to the front. Negative indices are allowed by GatherND.
  std::vector<std::int64_t> perm;
  for (const Index& i : indices) perm.push_back(i.axis);
  for (std::int64_t k = 0; k < b.rank(0); ++k) {
    if (std::find(perm.begin(), perm.end(), k) == perm.end()) perm.push_back(k);
  }
  const Val gathered = b.op("GatherND", {b.transpose(b.in(0), perm), together});
  bool adjacent = true;
  for (std::size_t k = 1; k < indices.size(); ++k) {
    adjacent = adjacent && indices[k].axis == indices[k - 1].axis + 1;
  }
  const std::int64_t front = adjacent ? indices[0].axis : 0;
  if (front == 0) return b.result(gathered);
  // [wide..., before..., after...] -> [before..., wide..., after...]
  const std::int64_t w = static_cast<std::int64_t>(boolean ? 1 : wide);
  std::vector<std::int64_t> back;
  for (std::int64_t k = 0; k < front; ++k) back.push_back(w + k);
  for (std::int64_t k = 0; k < w; ++k) back.push_back(k);
  for (std::int64_t k = w + front; k < b.out_rank(); ++k) back.push_back(k);
  b.result(b.transpose(gathered, back));
}

constexpr OpRow kRows[] = {
    {"aten.embedding.default", lower_embedding, "Gather", ""},
    {"aten.index.Tensor", lower_index, "Gather, GatherND, NonZero", ""},
};

}  // namespace

std::span<const OpRow> index_ops() { return kRows; }

}  // namespace fairlead::onnx
