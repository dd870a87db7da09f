// Normalisations.
#include <algorithm>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/kernels.h"

namespace fairlead::onnx {
namespace {

// (x - mean) / sqrt(variance + eps) over the axes, and the two statistics with the axes kept.
struct Normal {
  Val y, mean, rstd;
};

Normal normalize(Lowering& b, Val x, const Ints& axes, double eps) {
  const Dtype d = b.dtype_of(x);
  Normal n;
  n.mean = b.reduce("ReduceMean", x, axes, true);
  const Val centred = b.op("Sub", {x, n.mean});
  const Val variance = b.reduce("ReduceMean", b.op("Mul", {centred, centred}), axes, true);
  n.rstd = b.op("Reciprocal", {b.op("Sqrt", {b.op("Add", {variance, b.scalar(eps, d)})})});
  n.y = b.op("Mul", {centred, n.rstd});
  return n;
}

Ints last_axes(int rank, std::size_t count) {
  Ints axes;
  for (std::size_t k = 0; k < count; ++k)
    axes.push_back(rank - static_cast<std::int64_t>(count - k));
  return axes;
}

// A tensor of one value per channel, shaped to stand at axis 1.
Val per_channel(Lowering& b, Val v, int rank) {
  Ints axes;
  for (int k = 1; k < rank - 1; ++k) axes.push_back(k);
  return axes.empty() ? v : b.unsqueeze(v, axes);
}

// y * weight + bias, either of which may be absent.
Val affine(Lowering& b, Val y, Val weight, Val bias) {
  if (weight.present()) y = b.op("Mul", {y, weight});
  return bias.present() ? b.op("Add", {y, bias}) : y;
}

// aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None,
//   float eps=1e-05, bool cudnn_enable=True) -> Tensor
// aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias,
// float eps)
//   -> (Tensor, Tensor, Tensor)
void lower_layer_norm(Lowering& b) {
  const Shape dims = b.integers(1);
  const Dtype d = b.out_dtype();
  const double eps = b.number(4, 1e-5);
  const bool nothing = std::any_of(dims.begin(), dims.end(), [](Expr e) {
    return e->kind == ExprKind::kConst && e->value == 0;
  });
  const bool alone = !b.result_used(1) && !b.result_used(2);
  if (nothing && alone) return b.result(b.in(0, d));  // which ONNX Runtime's kernel refuses
  if (!alone) {
    const Normal n = normalize(b, b.in(0, work_dtype(d)), last_axes(b.rank(0), dims.size()), eps);
    const Dtype w = work_dtype(d);
    b.result(0, affine(b, n.y, b.in(2, w), b.in(3, w)));
    b.result(1, n.mean);
    return b.result(2, n.rstd);
  }
  const Val weight = b.has(2) ? b.in(2, d) : b.expand(b.scalar(1, d), {}, dims);
  b.result(b.op("LayerNormalization", {b.in(0, d), weight, b.in(3, d)},
                {attr("axis", -static_cast<std::int64_t>(dims.size())),
                 attr("epsilon", static_cast<float>(eps))}));
}

// The smallest step at 1, which PyTorch takes for a missing eps.
double machine_epsilon(Dtype d) {
  switch (d) {
    case Dtype::kFloat64:
      return 2.220446049250313e-16;
    case Dtype::kFloat16:
      return 0.0009765625;
    case Dtype::kBfloat16:
      return 0.0078125;
    default:
      return 1.1920928955078125e-07;
  }
}

// aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) ->
// Tensor aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) ->
// (Tensor, Tensor)
void lower_rms_norm(Lowering& b) {
  const Dtype d = work_dtype(b.out_dtype());
  const auto axes = last_axes(b.rank(0), b.integers(1).size());
  const double eps =
      b.has(3) ? b.number(3) : machine_epsilon(d == b.out_dtype() ? d : Dtype::kFloat32);
  const Val x = b.in(0, d);
  if (b.opset() >= 23 && d == Dtype::kFloat32 && !b.result_used(1)) {
    const Shape dims = b.integers(1);
    const Val weight = b.has(2) ? b.in(2, d) : b.expand(b.scalar(1, d), {}, dims);
    return b.result(b.op("RMSNormalization", {x, weight},
                         {attr("axis", -static_cast<std::int64_t>(dims.size())),
                          attr("epsilon", static_cast<float>(eps))}));
  }
  // Pow, ReduceMean, Add, Sqrt, Div, Mul: the spelling that runtimes fuse into one kernel.
  const bool apart = d == Dtype::kFloat64 && b.avoids(Fault::kDoubleNormFused);
  const Val squares = apart ? b.op("Mul", {x, x}) : b.op("Pow", {x, b.scalar(2.0, d)});
  const Val mean = b.reduce("ReduceMean", squares, axes, true);
  const Val scale = b.op("Sqrt", {b.op("Add", {mean, b.scalar(eps, d)})});
  const Val y = b.op("Div", {x, scale});
  b.result(b.has(2) ? b.op("Mul", {y, b.in(2, d)}) : y);
  if (b.result_used(1)) b.result(1, b.op("Reciprocal", {scale}));
}

// x as [n, groups, all the rest], normalised over the rest by InstanceNormalization, which computes
// in float32.
Val group_normalized(Lowering& b, Val x, Expr groups, double eps) {
  const Dtype d = b.dtype_of(x);
  const Shape& shape = b.shape(0);
  Expr rest = b.pool().floordiv(shape[1], groups);
  for (std::size_t k = 2; k < shape.size(); ++k) rest = b.pool().mul(rest, shape[k]);
  const Shape flat = {shape[0], groups, rest};
  x = b.reshape(x, shape, flat);
  if (d == Dtype::kFloat32 && is_const(groups)) {
    const std::int64_t count = groups->value;
    x = b.op("InstanceNormalization",
             {x, b.filled(1, d, std::span(&count, 1)), b.filled(0, d, std::span(&count, 1))},
             {attr("epsilon", static_cast<float>(eps))});
  } else {
    x = normalize(b, x, {2}, eps).y;
  }
  return b.reshape(x, flat, shape);
}

// aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float
//   eps=1e-05, bool cudnn_enabled=True) -> Tensor
void lower_group_norm(Lowering& b) {
  const Dtype d = work_dtype(b.out_dtype());
  const Val y = group_normalized(b, b.in(0, d), b.integer(1), b.number(4, 1e-5));
  const int r = b.rank(0);
  b.result(affine(b, y, b.has(2) ? per_channel(b, b.in(2, d), r) : Val{},
                  b.has(3) ? per_channel(b, b.in(3, d), r) : Val{}));
}

// aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt
// HxW, int group,
//   float eps) -> (Tensor, Tensor, Tensor)
void lower_native_group_norm(Lowering& b) {
  const Dtype d = work_dtype(b.out_dtype());
  const Expr groups = b.integer(6);
  const int r = b.rank(0);
  const Val x = b.in(0, d);
  b.result(0, affine(b, group_normalized(b, x, groups, b.number(7)),
                     b.has(1) ? per_channel(b, b.in(1, d), r) : Val{},
                     b.has(2) ? per_channel(b, b.in(2, d), r) : Val{}));
  if (!b.result_used(1) && !b.result_used(2)) return;
  const Shape& shape = b.shape(0);
  Expr rest = b.pool().floordiv(shape[1], groups);
  for (std::size_t k = 2; k < shape.size(); ++k) rest = b.pool().mul(rest, shape[k]);
  const Normal n = normalize(b, b.reshape(x, shape, {shape[0], groups, rest}), {2}, b.number(7));
  b.result(1, b.squeeze(n.mean, {2}));
  b.result(2, b.squeeze(n.rstd, {2}));
}

// Batch statistics (channel axis 1): what training computes. The running averages are not moved.
void batch_statistics(Lowering& b, Val x, Val weight, Val bias, double eps) {
  const int r = b.rank(0);
  Ints axes = {0};
  for (int k = 2; k < r; ++k) axes.push_back(k);
  const Normal n = normalize(b, x, axes, eps);
  b.result(0, affine(b, n.y, weight.present() ? per_channel(b, weight, r) : weight,
                     bias.present() ? per_channel(b, bias, r) : bias));
  if (b.result_used(1)) b.result(1, b.squeeze(n.mean, axes));
  if (b.result_used(2)) b.result(2, b.squeeze(n.rstd, axes));
}

struct BatchArgs {
  std::size_t mean, variance, eps;
  int training;  // argument, or -1: never
};

void batch_norm(Lowering& b, const BatchArgs& at) {
  const Dtype d = work_dtype(b.out_dtype());
  const Val x = b.in(0, d);
  const double eps = b.number(at.eps);
  if ((at.training >= 0 && b.flag(static_cast<std::size_t>(at.training))) || !b.has(at.mean)) {
    if (b.has(at.mean))
      b.unsupported("training mode moves running averages; call model.eval() first");
    return batch_statistics(b, x, b.in(1, d), b.in(2, d), eps);
  }
  const Shape channels = {b.shape(0)[1]};
  const Val weight = b.has(1) ? b.in(1, d) : b.expand(b.scalar(1, d), {}, channels);
  const Val bias = b.has(2) ? b.in(2, d) : b.expand(b.scalar(0, d), {}, channels);
  const Val mean = b.in(at.mean, d), variance = b.in(at.variance, d);
  b.result(0, b.op("BatchNormalization", {x, weight, bias, mean, variance},
                   {attr("epsilon", static_cast<float>(eps))}));
  // Statistics saved for a backward pass are empty outside training.
  for (std::size_t k = 1; k < b.result_count(); ++k) {
    if (b.result_used(k)) b.result(k, b.expand(b.scalar(0, b.out_dtype(k)), {}, b.out_shape(k)));
  }
}

// aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,
//   Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)
void lower_batch_norm(Lowering& b) { batch_norm(b, {3, 4, 7, 5}); }

// aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor
//   running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)
void lower_batch_norm_eval(Lowering& b) { batch_norm(b, {3, 4, 6, -1}); }

// aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool
//   training, float momentum, float eps) -> (Tensor, Tensor, Tensor)
void lower_batch_norm_no_stats(Lowering& b) {
  const Dtype d = work_dtype(b.out_dtype());
  batch_statistics(b, b.in(0, d), b.in(1, d), b.in(2, d), b.number(5));
}

// aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,
//   Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) ->
//   Tensor
void lower_instance_norm(Lowering& b) {
  const Dtype d = work_dtype(b.out_dtype());
  const double eps = b.number(7, 1e-5);
  if (!b.flag(5)) return batch_norm(b, {3, 4, 7, -1});
  if (b.has(3)) b.unsupported("training mode moves running averages; call model.eval() first");
  const int r = b.rank(0);
  const Val x = b.in(0, d);
  const Shape channels = {b.shape(0)[1]};
  if (d == Dtype::kFloat32) {
    const Val weight = b.has(1) ? b.in(1, d) : b.expand(b.scalar(1, d), {}, channels);
    const Val bias = b.has(2) ? b.in(2, d) : b.expand(b.scalar(0, d), {}, channels);
    return b.result(b.op("InstanceNormalization", {x, weight, bias},
                         {attr("epsilon", static_cast<float>(eps))}));
  }
  Ints axes;
  for (int k = 2; k < r; ++k) axes.push_back(k);
  b.result(affine(b, normalize(b, x, axes, eps).y, b.has(1) ? per_channel(b, b.in(1, d), r) : Val{},
                  b.has(2) ? per_channel(b, b.in(2, d), r) : Val{}));
}

// aten::_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)
void lower_weight_norm(Lowering& b) {
  const Dtype d = work_dtype(b.out_dtype());
  const std::int64_t axis = b.has(2) ? b.axis(2) : 0;
  Ints axes;
  for (int k = 0; k < b.rank(0); ++k) {
    if (k != axis) axes.push_back(k);
  }
  const Val v = b.in(0, d);
  const Val norm = b.reduce("ReduceL2", v, axes, true);
  b.result(0, b.op("Mul", {v, b.op("Div", {b.in(1, d), norm})}));
  if (b.result_used(1)) b.result(1, norm);
}

constexpr OpRow kRows[] = {
    {"aten._fused_rms_norm.default", lower_rms_norm,
     "ReduceMean, Sqrt, Div, Mul; RMSNormalization from opset 23", ""},
    {"aten._native_batch_norm_legit.default", lower_batch_norm, "BatchNormalization",
     "not in training mode"},
    {"aten._native_batch_norm_legit.no_stats", lower_batch_norm_no_stats, "ReduceMean, Sub, Mul",
     ""},
    {"aten._native_batch_norm_legit_no_training.default", lower_batch_norm_eval,
     "BatchNormalization", ""},
    {"aten._weight_norm_interface.default", lower_weight_norm, "ReduceL2, Div, Mul", ""},
    {"aten.batch_norm.default", lower_batch_norm, "BatchNormalization", "not in training mode"},
    {"aten.cudnn_batch_norm.default", lower_batch_norm, "BatchNormalization",
     "not in training mode"},
    {"aten.group_norm.default", lower_group_norm, "InstanceNormalization, Mul, Add", ""},
    {"aten.instance_norm.default", lower_instance_norm, "InstanceNormalization",
     "running averages are not moved"},
    {"aten.layer_norm.default", lower_layer_norm, "LayerNormalization", ""},
    {"aten.native_batch_norm.default", lower_batch_norm, "BatchNormalization",
     "not in training mode"},
    {"aten.native_group_norm.default", lower_native_group_norm, "InstanceNormalization, Mul, Add",
     ""},
    {"aten.native_layer_norm.default", lower_layer_norm, "LayerNormalization", ""},
    {"aten.rms_norm.default", lower_rms_norm,
     "ReduceMean, Sqrt, Div, Mul; RMSNormalization from opset 23", ""},
};

}  // namespace

std::span<const OpRow> norm_ops() { return kRows; }

}  // namespace fairlead::onnx
