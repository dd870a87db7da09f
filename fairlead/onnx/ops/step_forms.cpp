// A Scan whose state is what was combined so far.
#include "fairlead/onnx/ops/step_forms.h"

#include <algorithm>
#include <numeric>

#include "fairlead/onnx/ops/index_forms.h"

namespace fairlead::onnx {

bool may_be_zero(Lowering& b, Expr e) {
  if (is_const(e)) return e->value <= 0;
  if (e->kind == ExprKind::kSymbol) {
    return b.pool().symbols()[static_cast<std::size_t>(e->value)].kind != SymbolKind::kSize;
  }
  const auto zero = [&](Expr part) { return may_be_zero(b, part); };
  if (e->kind == ExprKind::kMul) {
    return e->value <= 0 || std::any_of(e->args.begin(), e->args.end(), zero);
  }
  if (e->kind == ExprKind::kMin) return std::any_of(e->args.begin(), e->args.end(), zero);
  if (e->kind == ExprKind::kMax) return std::all_of(e->args.begin(), e->args.end(), zero);
  return e->kind != ExprKind::kAdd || std::any_of(e->args.begin(), e->args.end(), zero);
}

Products products(Lowering& b, Val x, const Shape& shape, std::int64_t axis) {
  if (axis != 0 && b.avoids(Fault::kScanMovesNothing)) {
    Ints perm(shape.size());
    std::iota(perm.begin(), perm.end(), std::int64_t{0});
    std::rotate(perm.begin(), perm.begin() + axis, perm.begin() + axis + 1);
    Shape moved;
    for (const std::int64_t k : perm) moved.push_back(shape[static_cast<std::size_t>(k)]);
    const Products found = products(b, b.transpose(x, perm), moved, 0);
    return {found.whole, b.transpose(found.running, inverse(perm))};
  }
  const Dtype d = b.dtype_of(x);
  Shape rest = shape;
  rest.erase(rest.begin() + axis);
  const Val ones = b.expand(b.scalar(1, d), {}, rest);
  // Where there may be no step, there is one more.
  const bool more =
      b.avoids(Fault::kScanOfNothing) && may_be_zero(b, shape[static_cast<std::size_t>(axis)]);
  if (more) x = b.concat({b.unsqueeze(ones, {axis}), x}, axis);
  const std::vector<TensorInfo> parameters(2, {"", d, std::nullopt});
  const auto body = b.body(parameters, [&](const Inputs& in) -> Inputs {
    const Val so_far = b.op("Mul", {in[0], in[1]});
    return {so_far, b.op("Identity", {so_far})};
  });
  const std::vector<std::int64_t> axes = {axis};
  const Inputs out = b.ops("Scan", {ones, x}, {d, d},
                           {attr("num_scan_inputs", 1),
                            {"body", body},
                            attr("scan_input_axes", axes),
                            attr("scan_output_axes", axes)});
  if (!more) return {out[0], out[1]};
  const Val places =
      b.op("Range", {b.size_scalar(b.expr(1)),
                     b.size_scalar(b.pool().add(shape[static_cast<std::size_t>(axis)], b.expr(1))),
                     b.size_scalar(b.expr(1))});
  return {out[0], b.op("Gather", {out[1], places}, {attr("axis", axis)})};
}

}  // namespace fairlead::onnx
