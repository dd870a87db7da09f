// Losses.
#include <algorithm>
#include <numeric>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"

namespace fairlead::onnx {
namespace {

// PyTorch's enumeration of reductions.
enum Reduction : std::int64_t { kNone = 0, kMean = 1, kSum = 2 };

Ints all_axes(int rank) {
  Ints axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// The loss per element, reduced as argument `at` says.
void reduced(Lowering& b, Num loss, std::size_t at) {
  const std::int64_t reduction = b.constant_int(at, kMean);
  const int rank = std::max(b.rank(0), b.rank(1));
  if (reduction == kNone || rank == 0) return b.result(loss);
  b.result(b.reduce(reduction == kMean ? "ReduceMean" : "ReduceSum", loss, all_axes(rank), false));
}

// aten::mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor
void lower_mse(Lowering& b) {
  const Num error = arg(b, 0) - arg(b, 1);
  reduced(b, error * error, 2);
}

// aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.) -> Tensor
void lower_smooth_l1(Lowering& b) {
  const double beta = b.number(3, 1);
  const Num error = node("Abs", arg(b, 0) - arg(b, 1));
  if (beta == 0) return reduced(b, error, 2);
  reduced(b, where(error < beta, error * error * (0.5 / beta), error - 0.5 * beta), 2);
}

// aten::huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.) -> Tensor
void lower_huber(Lowering& b) {
  const double delta = b.number(3, 1);
  const Num error = node("Abs", arg(b, 0) - arg(b, 1));
  reduced(b, where(error <= delta, error * error * 0.5, (error - 0.5 * delta) * delta), 2);
}

// aten::soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor: log(1 +
// exp(-t*x))
void lower_soft_margin(Lowering& b) { reduced(b, log1p(node("Exp", -(arg(b, 0) * arg(b, 1)))), 2); }

// aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean)
// -> Tensor
//
// The logarithms stop at -100, as PyTorch's do.
void lower_bce(Lowering& b) {
  const Num x = arg(b, 0), t = arg(b, 1);
  const Num yes = max(node("Log", x), -100.0), no = max(node("Log", 1.0 - x), -100.0);
  Num loss = (t - 1.0) * no - t * yes;
  if (b.has(2)) loss = loss * arg(b, 2);
  reduced(b, loss, 3);
}

// aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None,
//   Tensor? pos_weight=None, int reduction=Mean) -> Tensor
void lower_bce_logits(Lowering& b) {
  const Num x = arg(b, 0), t = arg(b, 1);
  // -log(sigmoid(x)) = log(1 + exp(-|x|)) + max(-x, 0)
  Num yes = log1p(node("Exp", -node("Abs", x))) + max(-x, 0.0);
  if (b.has(3)) yes = yes * ((arg(b, 3) - 1.0) * t + 1.0);
  Num loss = (1.0 - t) * x + yes;
  if (b.has(2)) loss = loss * arg(b, 2);
  reduced(b, loss, 4);
}

// aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt
// ignore_index)
//   -> (Tensor output, Tensor total_weight); nll_loss2d_forward alike, with classes at dimension 1
void lower_nll(Lowering& b) {
  const std::int64_t reduction = b.constant_int(3);
  const bool single = b.rank(0) == 1;  // one sample without a batch dimension
  Val x = b.in(0, work_dtype(b.out_dtype()));
  Val target = b.in(1, Dtype::kInt64);
  int rank = b.rank(0) - 1;  // of the target
  if (single) {
    x = b.unsqueeze(x, {0});
    if (b.rank(1) == 0) target = b.unsqueeze(target, {0});
    rank = 1;
  }
  const Dtype d = b.dtype_of(x);
  const Val ignored = b.op("Equal", {target, b.size_scalar(b.integer(4))});
  const Val safe = b.op("Where", {ignored, b.size_scalar(b.expr(0)), target});
  const Val picked = b.op("GatherElements", {x, b.unsqueeze(safe, {1})}, {attr("axis", 1)});
  Num loss = -Num{&b, b.squeeze(picked, {1})};
  Num weight = {&b, b.scalar(1, d)};
  if (b.has(2)) {
    weight = {&b, b.op("Gather", {b.in(2, d), safe}, {attr("axis", 0)})};
    loss = loss * weight;
  }
  loss = {&b, b.op("Where", {ignored, b.scalar(0, d), loss})};
  const Val counted = b.op("Where", {ignored, b.scalar(0, d), weight});
  const Num total = {&b, b.reduce("ReduceSum", counted, all_axes(rank), false)};
  if (reduction == kNone) {
    b.result(0, single && b.out_rank() == 0 ? b.squeeze(loss, {0}) : loss.v);
  } else {
    const Num sum = {&b, b.reduce("ReduceSum", loss, all_axes(rank), false)};
    b.result(0, reduction == kMean ? sum / total : sum);
  }
  if (b.result_used(1)) {
    b.result(1, reduction == kNone ? b.expand(b.scalar(0, d), {}, b.out_shape(1)) : total.v);
  }
}

// aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1,
//   Tensor? weight=None, int reduction=Mean) -> Tensor
void lower_multi_margin(Lowering& b) {
  const bool single = b.rank(0) == 1;
  Num x = arg(b);
  Val target = b.in(1, Dtype::kInt64);
  if (single) {
    x = {&b, b.unsqueeze(x, {0})};
    target = b.op("Reshape", {target, b.ints({1})});
  }
  const Dtype d = x.dtype();
  const Val column = b.unsqueeze(target, {1});
  const Num own = {&b, b.op("GatherElements", {x, column}, {attr("axis", 1)})};
  Num gap = max(b.number(3, 1) - own + x, 0.0);
  if (b.number(2, 1) == 2) gap = gap * gap;
  if (b.has(4)) gap = gap * Num{&b, b.op("Gather", {b.in(4, d), column}, {attr("axis", 0)})};
  const Expr classes = b.shape(0).back();
  const Val each =
      b.op("Range", {b.size_scalar(b.expr(0)), b.size_scalar(classes), b.size_scalar(b.expr(1))});
  const Val others = b.op("Where", {b.op("Equal", {each, column}), b.scalar(0, d), gap});
  const Num loss =
      Num{&b, b.reduce("ReduceSum", others, {1}, false)} / Num{&b, b.size_scalar(classes, d)};
  const std::int64_t reduction = b.constant_int(5, kMean);
  if (reduction == kNone)
    return b.result(single ? b.reshape(loss, {b.expr(1)}, b.out_shape()) : loss.v);
  b.result(b.reduce(reduction == kMean ? "ReduceMean" : "ReduceSum", loss, {0}, false));
}

constexpr OpRow kRows[] = {
    {"aten.binary_cross_entropy.default", lower_bce, "Log, Mul, ReduceMean", ""},
    {"aten.binary_cross_entropy_with_logits.default", lower_bce_logits, "Exp, Log, Mul, ReduceMean",
     ""},
    {"aten.huber_loss.default", lower_huber, "Abs, Where, ReduceMean", ""},
    {"aten.mse_loss.default", lower_mse, "Sub, Mul, ReduceMean", ""},
    {"aten.multi_margin_loss.default", lower_multi_margin, "GatherElements, ReduceSum", ""},
    {"aten.nll_loss2d_forward.default", lower_nll, "GatherElements, ReduceSum", ""},
    {"aten.nll_loss_forward.default", lower_nll, "GatherElements, ReduceSum", ""},
    {"aten.smooth_l1_loss.default", lower_smooth_l1, "Abs, Where, ReduceMean", ""},
    {"aten.soft_margin_loss.default", lower_soft_margin, "Exp, Log, ReduceMean", ""},
};

}  // namespace

std::span<const OpRow> loss_ops() { return kRows; }

}  // namespace fairlead::onnx
