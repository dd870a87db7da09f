// Padding: constant, reflected, repeated and circular.
#include <algorithm>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/index_forms.h"

namespace fairlead::onnx {
namespace {

// PyTorch lists (before, after) from the last dimension on; ONNX lists all befores, then all
// afters.
struct Pads {
  Shape before, after;
  bool none = true;  // all 0
  bool constant = true;
  bool negative = false;  // a constant below 0
};

Pads read_pads(Lowering& b) {
  const Shape list = b.integers(1);
  const std::size_t r = static_cast<std::size_t>(b.rank(0));
  Pads pads{Shape(r, b.expr(0)), Shape(r, b.expr(0))};
  for (std::size_t k = 0; k < list.size(); ++k) {
    (k % 2 == 0 ? pads.before : pads.after)[r - 1 - k / 2] = list[k];
    pads.none = pads.none && is_const(list[k], 0);
    pads.constant = pads.constant && is_const(list[k]);
    pads.negative = pads.negative || (is_const(list[k]) && list[k]->value < 0);
  }
  return pads;
}

Val pads_tensor(Lowering& b, const Pads& pads) {
  Shape list = pads.before;
  list.insert(list.end(), pads.after.begin(), pads.after.end());
  return b.shape_tensor(list);
}

void pad_constant(Lowering& b, std::size_t value) {
  const Pads pads = read_pads(b);
  if (pads.none) return b.result(b.in(0));
  const Dtype d = b.out_dtype();
  const Val fill = b.has(value) ? b.in(value, d) : b.scalar(0, d);
  b.result(b.op("Pad", {b.in(0), pads_tensor(b, pads), fill}));
}

enum class Mode : std::uint8_t { kReflect, kEdge, kWrap };

// The places to read along one axis, for paddings that Pad does not take.
Val places(Lowering& b, Mode mode, Expr size, Expr before, Expr after) {
  ExprPool& p = b.pool();
  const Val zero = b.size_scalar(b.expr(0)), one = b.size_scalar(b.expr(1));
  const Val last = b.size_scalar(p.sub(size, p.constant(1)));
  const Val i =
      b.op("Range", {b.size_scalar(p.neg(before)), b.size_scalar(p.add(size, after)), one});
  switch (mode) {
    case Mode::kEdge:
      return b.op("Max", {b.op("Min", {i, last}), zero});
    case Mode::kWrap:
      return b.op("Mod", {i, b.size_scalar(at_least_one(b, size))});
    case Mode::kReflect:
      return b.op("Sub", {last, b.op("Abs", {b.op("Sub", {last, b.op("Abs", {i})})})});
  }
  return i;
}

void pad_by(Lowering& b, Mode mode) {
  const Pads pads = read_pads(b);
  if (pads.none) return b.result(b.in(0));
  if (pads.constant && !pads.negative && mode != Mode::kWrap) {
    return b.result(b.op("Pad", {b.in(0), pads_tensor(b, pads)},
                         {attr("mode", mode == Mode::kReflect ? "reflect" : "edge")}));
  }
  Val x = b.in(0);
  for (std::size_t k = 0; k < pads.before.size(); ++k) {
    if (is_const(pads.before[k], 0) && is_const(pads.after[k], 0)) continue;
    x = b.op("Gather", {x, places(b, mode, b.shape(0)[k], pads.before[k], pads.after[k])},
             {attr("axis", static_cast<std::int64_t>(k))});
  }
  b.result(x);
}

// aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor
void lower_constant_pad(Lowering& b) { pad_constant(b, 2); }

// aten::reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor; replication_pad, _pad_circular
// alike
template <Mode kMode>
void lower_pad_by(Lowering& b) {
  pad_by(b, kMode);
}

// aten::pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor
void lower_pad(Lowering& b) {
  const std::string_view mode = b.text(2);
  if (mode == "reflect") return pad_by(b, Mode::kReflect);
  if (mode == "replicate") return pad_by(b, Mode::kEdge);
  if (mode == "circular") return pad_by(b, Mode::kWrap);
  pad_constant(b, 3);
}

constexpr OpRow kRows[] = {
    {"aten._pad_circular.default", lower_pad_by<Mode::kWrap>, "Gather", ""},
    {"aten.constant_pad_nd.default", lower_constant_pad, "Pad", ""},
    {"aten.pad.default", lower_pad, "Pad, Gather", ""},
    {"aten.reflection_pad1d.default", lower_pad_by<Mode::kReflect>, "Pad", ""},
    {"aten.reflection_pad2d.default", lower_pad_by<Mode::kReflect>, "Pad", ""},
    {"aten.reflection_pad3d.default", lower_pad_by<Mode::kReflect>, "Pad", ""},
    {"aten.replication_pad1d.default", lower_pad_by<Mode::kEdge>, "Pad", ""},
    {"aten.replication_pad2d.default", lower_pad_by<Mode::kEdge>, "Pad", ""},
    {"aten.replication_pad3d.default", lower_pad_by<Mode::kEdge>, "Pad", ""},
};

}  // namespace

std::span<const OpRow> pad_ops() { return kRows; }

}  // namespace fairlead::onnx
