// Normalisations.
#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

// aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None,
//   float eps=1e-05, bool cudnn_enable=True) -> Tensor
void lower_layer_norm(Lowering& b) {
  const auto dims = b.constant_ints(1);
  const Val weight = b.has(2) ? b.in(2) : b.filled(1, b.out_dtype(), dims);
  b.result(b.op("LayerNormalization", {b.in(0), weight, b.in(3)},
                {attr("axis", -static_cast<std::int64_t>(dims.size())),
                 attr("epsilon", static_cast<float>(b.number(4, 1e-5)))}));
}

// aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor
void lower_rms_norm(Lowering& b) {
  const Dtype d = b.out_dtype();
  const auto dims = b.constant_ints(1);
  std::vector<std::int64_t> axes;
  for (std::size_t k = dims.size(); k > 0; --k) axes.push_back(-static_cast<std::int64_t>(k));
  const double eps = b.has(3) ? b.number(3)
                     : d == Dtype::kFloat64 ? 2.220446049250313e-16
                     : d == Dtype::kFloat16 ? 0.0009765625
                     : d == Dtype::kBfloat16 ? 0.0078125
                                             : 1.1920928955078125e-07;
  const Val x = b.in(0);
  const Val mean = b.reduce("ReduceMean", b.op("Mul", {x, x}), axes, true);
  const Val scale = b.op("Sqrt", {b.op("Add", {mean, b.scalar(eps, d)})});
  const Val y = b.op("Div", {x, scale});
  b.result(b.has(2) ? b.op("Mul", {y, b.in(2)}) : y);
}

constexpr OpRow kRows[] = {
    {"aten.layer_norm.default", lower_layer_norm, "LayerNormalization", ""},
    {"aten.rms_norm.default", lower_rms_norm, "ReduceMean, Sqrt, Div, Mul", ""},
};

}  // namespace

std::span<const OpRow> norm_ops() { return kRows; }

}  // namespace fairlead::onnx
