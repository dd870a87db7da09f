// Reading by index.
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/index_forms.h"

namespace fairlead::onnx {
namespace {

// aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, ...) -> Tensor
void lower_embedding(Lowering& b) {
  b.result(b.op("Gather", {b.in(0), b.in(1, Dtype::kInt64)}, {attr("axis", 0)}));
}

// aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
//
// One integer index is a Gather. Several are broadcast together and become a GatherND on a tensor
// whose indexed dimensions were moved to the front; their result goes back to the place of the
// first where they stood side by side. A boolean index is first turned into the indices of its true
// places.
void lower_index(Lowering& b) {
  const IndexList list = read_indices(b, 1, b.rank(0));
  if (list.items.size() == 1) {
    const Index& only = list.items[0];
    return b.result(b.op("Gather", {b.in(0), only.value}, {attr("axis", only.axis)}));
  }
  const Val gathered = b.op("GatherND", {b.transpose(b.in(0), list.perm), list.together(b)});
  b.result(b.transpose(gathered, list.back(b.out_rank())));
}

// aten::index_select(Tensor self, int dim, Tensor index) -> Tensor: a 0-d index counts as one
void lower_index_select(Lowering& b) {
  Val index = b.in(2, Dtype::kInt64);
  if (b.rank(0) == 0) return b.result(b.in(0));
  if (b.rank(2) == 0) index = b.unsqueeze(index, {0});
  b.result(b.op("Gather", {b.in(0), index}, {attr("axis", b.axis(1))}));
}

// aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor
void lower_gather(Lowering& b) {
  const Val index = b.in(2, Dtype::kInt64);
  if (b.rank(0) > 0 && b.rank(2) > 0) {
    return b.result(b.op("GatherElements", {b.in(0), index}, {attr("axis", b.axis(1))}));
  }
  // A scalar stands for a tensor of one element, and so does a scalar index.
  const Val self = b.rank(0) == 0 ? b.unsqueeze(b.in(0), {0}) : b.in(0);
  b.result(b.op("Gather", {self, index}, {attr("axis", 0)}));
}

// aten::take(Tensor self, Tensor index) -> Tensor
void lower_take(Lowering& b) {
  const Val flat = b.op("Reshape", {b.in(0), b.ints({-1})});
  b.result(b.op("Gather", {flat, b.in(1, Dtype::kInt64)}, {attr("axis", 0)}));
}

// aten::nonzero(Tensor self) -> Tensor
void lower_nonzero(Lowering& b) {
  if (b.rank(0) == 0) b.unsupported("the places of a tensor without dimensions");
  b.result(b.transpose(b.op("NonZero", {b.in(0, Dtype::kBool)}), {1, 0}));
}

// aten::masked_select(Tensor self, Tensor mask) -> Tensor: both are broadcast together
void lower_masked_select(Lowering& b) {
  const Shape both = broadcast(b, b.shape(0), b.shape(1));
  Val self = b.expand(b.in(0), b.shape(0), both);
  Val mask = b.expand(b.in(1, Dtype::kBool), b.shape(1), both);
  if (both.empty()) self = b.unsqueeze(self, {0});
  mask = b.op("Reshape", {mask, b.ints({-1})});
  b.result(b.op("Compress", {self, mask}));
}

constexpr OpRow kRows[] = {
    {"aten._unsafe_index.Tensor", lower_index, "Gather, GatherND, NonZero", ""},
    {"aten.embedding.default", lower_embedding, "Gather", ""},
    {"aten.gather.default", lower_gather, "GatherElements", ""},
    {"aten.index.Tensor", lower_index, "Gather, GatherND, NonZero", "no mask without dimensions"},
    {"aten.index_select.default", lower_index_select, "Gather", ""},
    {"aten.masked_select.default", lower_masked_select, "Compress", ""},
    {"aten.nonzero.default", lower_nonzero, "NonZero", "not of a tensor without dimensions"},
    {"aten.take.default", lower_take, "Gather", ""},
};

}  // namespace

std::span<const OpRow> index_ops() { return kRows; }

}  // namespace fairlead::onnx
