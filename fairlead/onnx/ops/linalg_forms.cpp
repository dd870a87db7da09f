// What linear systems and factors share.
#include "fairlead/onnx/ops/linalg_forms.h"

namespace fairlead::onnx {

Val as_batch(Lowering& b, Val x, const Shape& shape) {
  Shape flat(shape.end() - 2, shape.end());
  Expr batch = b.expr(1);
  for (std::size_t k = 0; k + 2 < shape.size(); ++k) batch = b.pool().mul(batch, shape[k]);
  flat.insert(flat.begin(), batch);
  return shape.size() == 3 ? x : b.op("Reshape", {x, b.shape_tensor(flat)});
}

Val unbatched(Lowering& b, Val x, const Shape& shape) {
  return shape.size() == 3 ? x : b.op("Reshape", {x, b.shape_tensor(shape)});
}

Val at(Lowering& b, Val x, Val place, std::int64_t axis) {
  return b.op("Gather", {x, place}, {attr("axis", axis)});
}

Inputs loop(Lowering& b, Val steps, const Inputs& carried, const Step& step,
            const GoesOn& goes_on) {
  std::vector<TensorInfo> parameters = {{"", Dtype::kInt64, Shape{}}, {"", Dtype::kBool, Shape{}}};
  std::vector<Dtype> dtypes;
  for (const Val v : carried) {
    parameters.push_back({"", b.dtype_of(v), std::nullopt});
    dtypes.push_back(b.dtype_of(v));
  }
  const auto body = b.body(parameters, [&](const Inputs& in) {
    const Inputs next = step(in[0], {in.begin() + 2, in.end()});
    Inputs out = {goes_on ? goes_on(next) : in[1]};
    out.insert(out.end(), next.begin(), next.end());
    return out;
  });
  Inputs inputs = {steps, b.scalar(1, Dtype::kBool)};
  inputs.insert(inputs.end(), carried.begin(), carried.end());
  return b.ops("Loop", inputs, dtypes, {{"body", body}});
}

void no_info(Lowering& b, std::size_t k) {
  if (b.result_count() > k && b.result_used(k)) {
    b.result(k, b.expand(b.scalar(0, b.out_dtype(k)), {}, b.out_shape(k)));
  }
}

void not_used(Lowering& b, std::size_t first, std::size_t last) {
  for (std::size_t k = first; k <= last; ++k) {
    if (k < b.result_count() && b.result_used(k)) b.unsupported("the factors themselves");
  }
}

}  // namespace fairlead::onnx
