// Complex values as pairs of real tensors.
#include "fairlead/onnx/lowering.h"

namespace fairlead::onnx {

Val Lowering::part(std::size_t i, int k) { return part_of(arg(i).value, k); }

Val Lowering::part_of(ValueId id, int k) {
  if (const auto it = parts_.find(id); it != parts_.end())
    return it->second[static_cast<std::size_t>(k)];
  std::array<Val, 2> parts;
  if (const Constant* c = graph_.constant(id); c != nullptr && !values_[id].present()) {
    check_bytes(*c);
    // The bytes alternate between the parts: each is a view with every stride doubled.
    const fairlead::Value& value = graph_.values[id];
    TensorData data;
    data.dtype = part_dtype(value.dtype);
    data.dims = c->dims;
    std::int64_t step = 2;
    data.strides.resize(c->dims.size());
    for (std::size_t d = c->dims.size(); d-- > 0;) {
      data.strides[d] = c->strides.empty() ? step : c->strides[d] * 2;
      step *= c->dims[d];
    }
    for (std::size_t p = 0; p < 2; ++p) {
      TensorData half = data;
      half.data = c->data + p * dtype_size(data.dtype);
      if (c->owned) {
        half.owned = std::make_shared<const std::vector<std::byte>>(
            c->owned->begin() + static_cast<std::ptrdiff_t>(p * dtype_size(data.dtype)),
            c->owned->end());
      }
      parts[p] = constant(std::move(half), value.name + (p == 0 ? ".real" : ".imag"));
    }
  } else {
    for (std::int64_t p = 0; p < 2; ++p) {
      parts[static_cast<std::size_t>(p)] =
          op("Gather", {values_[id], size_scalar(expr(p))}, {attr("axis", -1)});
    }
  }
  parts_[id] = parts;
  return parts[static_cast<std::size_t>(k)];
}

void Lowering::result_parts(std::size_t k, Val re, Val im) {
  const ValueId id = node_->outputs.at(k);
  if (id == kNoValue) return;
  const Dtype d = part_dtype(graph_.values[id].dtype);
  parts_[id] = {cast(re, d), cast(im, d)};
}

void Lowering::run_by_parts(LowerFn lower) {
  for (part_ = 0; part_ < 2; ++part_) lower(*this);
  part_ = -1;
}

}  // namespace fairlead::onnx
