// Operators whose results are as large as an argument.
#include "fairlead/aten/rules/shape_call.h"

namespace fairlead {
namespace {

ResultShapes first(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  return {list_of(call.shape(0))};
}

ResultShapes first_twice(const ShapeCall& call) {
  if (!call.is_value(0)) return {};
  return {list_of(call.shape(0)), list_of(call.shape(0))};
}

ResultShapes second(const ShapeCall& call) {
  if (!call.is_value(1)) return {};
  return {list_of(call.shape(1))};
}

ResultShapes third(const ShapeCall& call) {
  if (!call.is_value(2)) return {};
  return {list_of(call.shape(2))};
}

constexpr ShapeRow kRows[] = {
    {"aten._conj.default", first},
    {"aten._fft_c2c.default", first},
    {"aten._fused_rms_norm.default", first},
    {"aten._index_put_impl.default", first},
    {"aten._log_softmax.default", first},
    {"aten._native_batch_norm_legit.no_stats", first},
    {"aten._native_batch_norm_legit_no_training.default", first},
    {"aten._neg_view.default", first},
    {"aten._prelu_kernel.default", first},
    {"aten._safe_softmax.default", first},
    {"aten._softmax.default", first},
    {"aten._to_copy.default", first},
    {"aten._unsafe_index_put.default", first},
    {"aten.alias.default", first},
    {"aten.alias_copy.default", first},
    {"aten.as_strided_scatter.default", first},
    {"aten.batch_norm.default", first},
    {"aten.bernoulli.default", first},
    {"aten.bernoulli.p", first},
    {"aten.bucketize.Tensor", first},
    {"aten.channel_shuffle.default", first},
    {"aten.conj.default", first},
    {"aten.contiguous.default", first},
    {"aten.copy.default", first},
    {"aten.cummax.default", first_twice},
    {"aten.cummin.default", first_twice},
    {"aten.cumprod.default", first},
    {"aten.cumsum.default", first},
    {"aten.detach.default", first},
    {"aten.detach_copy.default", first},
    {"aten.diagonal_scatter.default", first},
    {"aten.dropout.default", first},
    {"aten.empty_like.default", first},
    {"aten.fake_quantize_per_channel_affine_cachemask.default", first_twice},
    {"aten.fake_quantize_per_tensor_affine_cachemask.default", first_twice},
    {"aten.fill.Scalar", first},
    {"aten.fill.Tensor", first},
    {"aten.flip.default", first},
    {"aten.full_like.default", first},
    {"aten.gather.default", third},
    {"aten.group_norm.default", first},
    {"aten.hardswish.default", first},
    {"aten.imag.default", first},
    {"aten.index_add.default", first},
    {"aten.index_copy.default", first},
    {"aten.index_fill.int_Scalar", first},
    {"aten.index_fill.int_Tensor", first},
    {"aten.index_put.default", first},
    {"aten.index_reduce.default", first},
    {"aten.instance_norm.default", first},
    {"aten.isin.Tensor_Scalar", first},
    {"aten.isin.Tensor_Tensor", first},
    {"aten.layer_norm.default", first},
    {"aten.lift_fresh.default", first},
    {"aten.lift_fresh_copy.default", first},
    {"aten.linalg_cholesky_ex.default", first},
    {"aten.linalg_inv_ex.default", first},
    {"aten.log_sigmoid.default", first},
    {"aten.log_sigmoid_forward.default", first},
    {"aten.log_softmax.int", first},
    {"aten.logcumsumexp.default", first},
    {"aten.masked_scatter.default", first},
    {"aten.native_batch_norm.default", first},
    {"aten.native_channel_shuffle.default", first},
    {"aten.native_dropout.default", first_twice},
    {"aten.native_group_norm.default", first},
    {"aten.native_layer_norm.default", first},
    {"aten.ones_like.default", first},
    {"aten.prelu.default", first},
    {"aten.put.default", first},
    {"aten.rand_like.default", first},
    {"aten.randint_like.default", first},
    {"aten.randint_like.low_dtype", first},
    {"aten.randn_like.default", first},
    {"aten.real.default", first},
    {"aten.renorm.default", first},
    {"aten.resolve_conj.default", first},
    {"aten.resolve_neg.default", first},
    {"aten.rms_norm.default", first},
    {"aten.roll.default", first},
    {"aten.rrelu_with_noise.default", first},
    {"aten.scatter.reduce", first},
    {"aten.scatter.src", first},
    {"aten.scatter.value", first},
    {"aten.scatter.value_reduce", first},
    {"aten.scatter_add.default", first},
    {"aten.scatter_reduce.two", first},
    {"aten.searchsorted.Tensor", second},
    {"aten.select_scatter.default", first},
    {"aten.slice_scatter.default", first},
    {"aten.softmax.int", first},
    {"aten.sort.default", first_twice},
    {"aten.sort.stable", first_twice},
    {"aten.take.default", second},
    {"aten.to.device", first},
    {"aten.to.dtype", first},
    {"aten.to.dtype_layout", first},
    {"aten.to.other", first},
    {"aten.tril.default", first},
    {"aten.triu.default", first},
    {"aten.type_as.default", first},
    {"aten.zero.default", first},
    {"aten.zeros_like.default", first},
};

}  // namespace

std::span<const ShapeRow> same_shapes() { return kRows; }

}  // namespace fairlead
