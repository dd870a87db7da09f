// Packed sequences: rows of several sequences of unequal lengths, step by step, longest first.
//
//   lengths 3, 1:  rows (step 0, sequence 0), (0, 1), (1, 0), (2, 0); batch sizes 2, 1, 1
//
// The places (step, sequence) of the rows are where a mask [steps, sequences] is true, in order.
#include "fairlead/onnx/ops/packed_forms.h"

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/index_forms.h"

namespace fairlead::onnx {
namespace {

// 0, 1, ... of a length that is computed, int64 [1].
Val range_of(Lowering& b, Val length) {
  const Val end = b.squeeze(length, {0});
  return b.op("Range", {b.size_scalar(b.expr(0)), end, b.size_scalar(b.expr(1))});
}

Val places_of(Lowering& b, Val mask) { return b.transpose(b.op("NonZero", {mask}), {1, 0}); }

Val count(Lowering& b, Val mask, std::int64_t axis) {
  return b.reduce("ReduceSum", b.cast(mask, Dtype::kInt64), {axis}, false);
}

}  // namespace

Packing packing_of(Lowering& b, Val batch_sizes) {
  Packing p;
  p.sequences = b.slice(batch_sizes, 0, b.ints({0}), b.ints({1}));
  p.steps = b.op("Shape", {batch_sizes});
  const Val each = range_of(b, p.sequences);
  const Val mask = b.op("Less", {b.unsqueeze(each, {0}), b.unsqueeze(batch_sizes, {1})});
  p.places = places_of(b, mask);
  p.lengths = count(b, mask, 0);
  return p;
}

Val unpack(Lowering& b, const Packing& p, Val rows, Val steps, double padding) {
  const Val width = b.op("Shape", {rows}, {attr("start", 1)});
  const Val shape = b.concat({steps, p.sequences, width}, 0);
  const Val empty = b.op("Expand", {b.scalar(padding, b.dtype_of(rows)), shape});
  return scatter_nd(b, empty, p.places, rows);
}

Val pack(Lowering& b, const Packing& p, Val padded) { return b.op("GatherND", {padded, p.places}); }

namespace {

std::vector<std::int64_t> steps_first(int rank) {
  std::vector<std::int64_t> perm = to_front(0, rank);
  std::swap(perm[0], perm[1]);
  return perm;
}

// aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)
void lower_pack(Lowering& b) {
  const Val x = b.flag(2) ? b.transpose(b.in(0), steps_first(b.rank(0))) : b.in(0);
  const Val lengths = b.in(1, Dtype::kInt64);
  const auto mask_of = [&](Val steps) {
    return b.op("Less", {b.unsqueeze(steps, {1}), b.unsqueeze(lengths, {0})});
  };
  // A length beyond the steps that there are takes those: PyTorch does not refuse it.
  const Val there = range_of(b, b.op("Shape", {x}, {attr("start", 0), attr("end", 1)}));
  const Val longest = range_of(b, b.reduce("ReduceMax", lengths, {0}, true));
  b.result(0, b.op("GatherND", {x, places_of(b, mask_of(there))}));
  b.result(1, count(b, mask_of(longest), 1));
}

// aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first,
//   Scalar padding_value, int total_length) -> (Tensor, Tensor)
void lower_pad(Lowering& b) {
  const Packing p = packing_of(b, b.in(1, Dtype::kInt64));
  const Expr total = b.integer(4);
  const Val steps = is_const(total) && total->value <= 0 ? p.steps : b.dim(total);
  const Val padded = unpack(b, p, b.in(0), steps, b.number(3));
  b.result(0, b.flag(2) ? b.transpose(padded, steps_first(b.out_rank())) : padded);
  b.result(1, p.lengths);
}

constexpr OpRow kRows[] = {
    {"aten._pack_padded_sequence.default", lower_pack, "Less, NonZero, GatherND", ""},
    {"aten._pad_packed_sequence.default", lower_pad, "Less, NonZero, ScatterND", ""},
};

}  // namespace

std::span<const OpRow> packed_ops() { return kRows; }

}  // namespace fairlead::onnx
