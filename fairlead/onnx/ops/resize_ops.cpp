// Interpolation of images and signals to another size.
#include <cmath>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/kernels.h"

namespace fairlead::onnx {
namespace {

// One spatial dimension to resize.
struct Axis {
  std::int64_t axis = 0;
  Expr in = nullptr, out = nullptr;
  bool scaled = false;  // a scale factor was given, and its inverse is the step between samples
  double scale = 0;     // where it is constant
  Val scale_value;      // where it is not: float64
  // out = factor * in, by a whole number that agrees with the scale; 0 where it does not.
  std::int64_t factor = 0;
};

// Where an overload keeps its scale factors: one argument per dimension, or one list for all.
struct Scales {
  std::size_t at;
  bool list;
};

std::vector<Axis> read_axes(Lowering& b, std::size_t count, Scales scales) {
  std::vector<Axis> axes;
  ExprPool& p = b.pool();
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t position = b.shape(0).size() - count + k;
    Axis a;
    a.axis = static_cast<std::int64_t>(position);
    a.in = b.shape(0)[position];
    a.out = b.out_shape()[position];
    const auto& args = b.node().args;
    const Arg* scale = nullptr;
    if (scales.list && b.has(scales.at) && k < args[scales.at].items.size())
      scale = &args[scales.at].items[k];
    if (!scales.list && b.has(scales.at + k)) scale = &args[scales.at + k];
    if (scale != nullptr && scale->kind != ArgKind::kNone) {
      a.scaled = true;
      if (scale->kind == ArgKind::kFloat && scale->expr != nullptr) {
        if (scales.list) b.must_be_constant("the scale factor", scale->expr);
        a.scale_value = b.in(scales.at + k, Dtype::kFloat64);
      } else {
        if (scale->kind == ArgKind::kInt && !is_const(scale->expr)) {
          b.unsupported("a scale factor that varies");
        }
        a.scale =
            scale->kind == ArgKind::kInt ? static_cast<double>(scale->expr->value) : scale->number;
      }
    }
    if (!is_const(a.in, 0) && is_const(p.mod(a.out, a.in), 0)) {
      const Expr factor = p.floordiv(a.out, a.in);
      if (is_const(factor) && (!a.scaled || a.scale == static_cast<double>(factor->value)))
        a.factor = factor->value;
    }
    axes.push_back(a);
  }
  return axes;
}

// The distance between samples, in elements of the input: rank 0, in the precision PyTorch computes
// in.
Val step_of(Lowering& b, const Axis& a, bool align_corners, Dtype d) {
  ExprPool& p = b.pool();
  if (align_corners) {
    const Val gaps = b.size_scalar(p.max(p.sub(a.out, p.constant(1)), p.constant(1)), d);
    const Val step = b.op("Div", {b.size_scalar(p.sub(a.in, p.constant(1)), d), gaps});
    if (is_const(a.out)) return a.out->value > 1 ? step : b.scalar(0, d);
    return b.op("Where", {b.op("Greater", {b.size_scalar(a.out), b.size_scalar(b.expr(1))}), step,
                          b.scalar(0, d)});
  }
  if (a.scale_value.present()) return b.cast(b.op("Reciprocal", {a.scale_value}), d);
  if (a.scaled && a.scale > 0) return b.scalar(1 / a.scale, d);
  return b.op("Div", {b.size_scalar(a.in, d), b.size_scalar(a.out, d)});
}

Val places(Lowering& b, Expr count, Dtype d) {
  const Val i =
      b.op("Range", {b.size_scalar(b.expr(0)), b.size_scalar(count), b.size_scalar(b.expr(1))});
  return b.cast(i, d);
}

// ---- nearest ------------------------------------------------------------------------------------

// PyTorch multiplies by the rounded step 1/k, and for a few k (41, 47..) lands below a whole
// number.
bool repeats_exactly(std::int64_t factor) {
  const float step = 1 / static_cast<float>(factor);
  for (std::int64_t k = 0; k < 4096; ++k) {
    if (std::floor(static_cast<float>(k * factor) * step) != static_cast<float>(k)) return false;
  }
  return true;
}

void nearest(Lowering& b, std::size_t count, Scales scales, bool exact) {
  const std::vector<Axis> axes = read_axes(b, count, scales);
  const Dtype d = b.out_dtype();
  const bool kernel = d == Dtype::kFloat32 || d == Dtype::kFloat16 || d == Dtype::kUint8;
  Ints resized;
  TensorData factors;
  auto bytes = std::make_shared<std::vector<std::byte>>();
  bool whole = kernel;
  for (const Axis& a : axes) {
    whole = whole && a.factor > 0 && (exact || repeats_exactly(a.factor));
    resized.push_back(a.axis);
    const float factor = static_cast<float>(a.factor);
    const auto* begin = reinterpret_cast<const std::byte*>(&factor);
    bytes->insert(bytes->end(), begin, begin + sizeof(factor));
  }
  if (whole) {
    factors.dtype = Dtype::kFloat32;
    factors.dims = {static_cast<std::int64_t>(count)};
    factors.owned = bytes;
    return b.result(
        b.op("Resize", {b.in(0), {}, b.constant(std::move(factors))},
             {attr("mode", "nearest"), attr("coordinate_transformation_mode", "asymmetric"),
              attr("nearest_mode", "floor"), attr("axes", resized)}));
  }
  Val x = b.in(0);
  const Dtype f = d == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
  for (const Axis& a : axes) {
    if (a.factor == 1) continue;
    Val place = places(b, a.out, f);
    if (exact) place = b.op("Add", {place, b.scalar(0.5, f)});
    place = b.cast(b.op("Floor", {b.op("Mul", {place, step_of(b, a, false, f)})}), Dtype::kInt64);
    place = b.op("Min", {place, b.size_scalar(b.pool().sub(a.in, b.expr(1)))});
    x = b.op("Gather", {x, place}, {attr("axis", a.axis)});
  }
  b.result(x);
}

// aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None,
//   float? scales_w=None) -> Tensor
template <std::size_t kCount>
void lower_nearest(Lowering& b) {
  nearest(b, kCount, {2, false}, false);
}
// aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, ...) ->
// Tensor
template <std::size_t kCount>
void lower_nearest_exact(Lowering& b) {
  nearest(b, kCount, {2, false}, true);
}
// aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) ->
// Tensor
template <std::size_t kCount>
void lower_nearest_vec(Lowering& b) {
  nearest(b, kCount, {2, true}, false);
}
template <std::size_t kCount>
void lower_nearest_exact_vec(Lowering& b) {
  nearest(b, kCount, {2, true}, true);
}

// ---- linear and cubic ---------------------------------------------------------------------------

// A value per sample along `axis`, shaped to broadcast over the dimensions after it.
Val along(Lowering& b, Val v, std::int64_t axis, std::int64_t rank) {
  Ints after;
  for (std::int64_t k = 1; k < rank - axis; ++k) after.push_back(k);
  return after.empty() ? v : b.unsqueeze(v, after);
}

// The samples of one axis as a weighted sum of `taps` neighbours each, exactly as PyTorch places
// them.
Val sample_axis(Lowering& b, Val x, const Axis& a, bool align_corners, bool cubic) {
  const Dtype d = b.dtype_of(x);
  const auto number = [&](double v) { return b.scalar(v, d); };
  Val place = places(b, a.out, d);
  const Val step = step_of(b, a, align_corners, d);
  if (align_corners) {
    place = b.op("Mul", {place, step});
  } else {
    place = b.op("Sub", {b.op("Mul", {b.op("Add", {place, number(0.5)}), step}), number(0.5)});
    if (!cubic) place = b.op("Max", {place, number(0)});
  }
  const Val low = b.op("Floor", {place});
  const Val t = b.op("Sub", {place, low});
  const Val last = b.size_scalar(b.pool().sub(a.in, b.expr(1)));
  const Val zero = b.size_scalar(b.expr(0));
  std::vector<std::pair<std::int64_t, Val>> taps;
  if (cubic) {
    constexpr double kA = -0.75;
    // Within distance 1: ((A+2)s - (A+3))ss + 1; from 1 to 2: ((As - 5A)s + 8A)s - 4A.
    const auto inner = [&](Val s) {
      const Val m = b.op("Sub", {b.op("Mul", {s, number(kA + 2)}), number(kA + 3)});
      return b.op("Add", {b.op("Mul", {b.op("Mul", {m, s}), s}), number(1)});
    };
    const auto outer = [&](Val s) {
      Val m = b.op("Sub", {b.op("Mul", {s, number(kA)}), number(5 * kA)});
      m = b.op("Add", {b.op("Mul", {m, s}), number(8 * kA)});
      return b.op("Sub", {b.op("Mul", {m, s}), number(4 * kA)});
    };
    const Val u = b.op("Sub", {number(1), t});
    taps = {{-1, outer(b.op("Add", {t, number(1)}))},
            {0, inner(t)},
            {1, inner(u)},
            {2, outer(b.op("Add", {u, number(1)}))}};
  } else {
    taps = {{0, b.op("Sub", {number(1), t})}, {1, t}};
  }
  const Val base = b.cast(low, Dtype::kInt64);
  Val sum;
  for (const auto& [offset, weight] : taps) {
    Val at = offset == 0 ? base : b.op("Add", {base, b.size_scalar(b.expr(offset))});
    at = b.op("Max", {b.op("Min", {at, last}), zero});
    const Val part = b.op("Mul", {b.op("Gather", {x, at}, {attr("axis", a.axis)}),
                                  along(b, weight, a.axis, b.rank(0))});
    sum = sum.present() ? b.op("Add", {sum, part}) : part;
  }
  return sum;
}

// Resize knows PyTorch's placement where no scale factor moves it; otherwise the samples are
// composed.
void interpolate(Lowering& b, std::size_t count, bool cubic, std::size_t align, Scales scales) {
  if (!is_float(b.out_dtype())) b.unsupported("interpolation of integers");
  const std::vector<Axis> axes = read_axes(b, count, scales);
  const bool align_corners = b.flag(align);
  const Dtype d = work_dtype(b.out_dtype());
  Val x = b.in(0, d);
  bool native = d == Dtype::kFloat32;
  bool same = true;
  Ints resized;
  Shape sizes;
  for (const Axis& a : axes) {
    native = native && (align_corners || !a.scaled || a.factor > 0);
    same = same && (a.factor == 1 || (align_corners && a.in == a.out));
    resized.push_back(count == 1 ? 3 : a.axis);
    sizes.push_back(a.out);
  }
  if (same) return b.result(x);
  if (!native) {
    for (const Axis& a : axes) {
      if (a.factor != 1) x = sample_axis(b, x, a, align_corners, cubic);
    }
    return b.result(x);
  }
  // The runtime has kernels for two dimensions and three: a signal is an image of one row.
  if (count == 1) x = b.unsqueeze(x, {2});
  Attributes attributes = {
      attr("mode", cubic ? "cubic" : "linear"),
      attr("coordinate_transformation_mode", align_corners ? "align_corners" : "half_pixel"),
      attr("axes", resized),
  };
  if (cubic) attributes.push_back(attr("cubic_coeff_a", -0.75F));
  x = b.op("Resize", {x, {}, {}, b.shape_tensor(sizes)}, std::move(attributes));
  b.result(count == 1 ? b.squeeze(x, {2}) : x);
}

// aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners,
//   float? scales_h=None, float? scales_w=None) -> Tensor
template <std::size_t kCount>
void lower_linear(Lowering& b) {
  interpolate(b, kCount, false, 2, {3, false});
}
// aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners,
//   float[]? scale_factors) -> Tensor
template <std::size_t kCount>
void lower_linear_vec(Lowering& b) {
  interpolate(b, kCount, false, 2, {3, true});
}
void lower_bicubic(Lowering& b) { interpolate(b, 2, true, 2, {3, false}); }
void lower_bicubic_vec(Lowering& b) { interpolate(b, 2, true, 2, {3, true}); }

// ---- antialiased --------------------------------------------------------------------------------

// A filter of |s|: the triangle, or the cubic with A = -0.5 that antialiasing uses.
Val filter(Lowering& b, Val s, bool cubic) {
  const Dtype d = b.dtype_of(s);
  const auto number = [&](double v) { return b.scalar(v, d); };
  s = b.op("Abs", {s});
  if (!cubic) return b.op("Max", {b.op("Sub", {number(1), s}), number(0)});
  constexpr double kA = -0.5;
  Val inner = b.op("Sub", {b.op("Mul", {s, number(kA + 2)}), number(kA + 3)});
  inner = b.op("Add", {b.op("Mul", {b.op("Mul", {inner, s}), s}), number(1)});
  Val outer = b.op("Sub", {b.op("Mul", {s, number(kA)}), number(5 * kA)});
  outer = b.op("Add", {b.op("Mul", {outer, s}), number(8 * kA)});
  outer = b.op("Sub", {b.op("Mul", {outer, s}), number(4 * kA)});
  const Val far = b.op("Where", {b.op("Less", {s, number(2)}), outer, number(0)});
  return b.op("Where", {b.op("Less", {s, number(1)}), inner, far});
}

// [out, in]: how much each input element adds to each sample. The filter is as wide as the step, is
// cut to whole elements within the input, and sums to one.
Val filter_matrix(Lowering& b, const Axis& a, bool align_corners, bool cubic, Dtype d) {
  const auto number = [&](double v) { return b.scalar(v, d); };
  const Val step = step_of(b, a, align_corners, d);
  const Val width = b.op("Max", {step, number(1)});
  const Val support = b.op("Mul", {width, number(cubic ? 2 : 1)});
  const Val centre =
      b.unsqueeze(b.op("Mul", {b.op("Add", {places(b, a.out, d), number(0.5)}), step}), {1});
  const Val first =
      b.op("Floor",
           {b.op("Max", {b.op("Add", {b.op("Sub", {centre, support}), number(0.5)}), number(0)})});
  const Val end = b.op("Floor", {b.op("Add", {b.op("Add", {centre, support}), number(0.5)})});
  const Val j = places(b, a.in, d);
  const Val distance = b.op("Div", {b.op("Add", {b.op("Sub", {j, centre}), number(0.5)}), width});
  const Val inside = b.op("And", {b.op("GreaterOrEqual", {j, first}), b.op("Less", {j, end})});
  const Val weights = b.op("Where", {inside, filter(b, distance, cubic), number(0)});
  return b.op("Div", {weights, b.reduce("ReduceSum", weights, {1}, true)});
}

// aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners,
//   float? scales_h=None, float? scales_w=None) -> Tensor: a product with one matrix per dimension
void antialiased(Lowering& b, bool cubic, Scales scales) {
  if (!is_float(b.out_dtype())) b.unsupported("interpolation of integers");
  const Dtype d = work_dtype(b.out_dtype());
  const std::vector<Axis> axes = read_axes(b, 2, scales);
  const bool align_corners = b.flag(2);
  Val x = b.in(0, d);
  if (axes[1].factor != 1) {
    const Val across = filter_matrix(b, axes[1], align_corners, cubic, d);
    x = b.op("MatMul", {x, b.transpose(across, {1, 0})});
  }
  if (axes[0].factor != 1) {
    Val down = filter_matrix(b, axes[0], align_corners, cubic, d);
    // PyTorch steps through the rows by the strides of the columns: of a result of one column every
    // row is its first, unless there are as many as before.
    const Expr width = axes[1].out;
    if (!is_const(width) || width->value == 1) {
      const Val single = b.op(
          "And",
          {b.op("Equal", {b.size_scalar(width), b.size_scalar(b.expr(1))}),
           b.op("Not", {b.op("Equal", {b.size_scalar(axes[0].in), b.size_scalar(axes[0].out)})})});
      const Val first = b.slice(down, 0, b.ints({0}), b.ints({1}));
      down = b.op("Where", {single, first, down});
    }
    x = b.op("MatMul", {down, x});
  }
  b.result(x);
}
void lower_bilinear_aa(Lowering& b) { antialiased(b, false, {3, false}); }
void lower_bilinear_aa_vec(Lowering& b) { antialiased(b, false, {3, true}); }
void lower_bicubic_aa(Lowering& b) { antialiased(b, true, {3, false}); }
void lower_bicubic_aa_vec(Lowering& b) { antialiased(b, true, {3, true}); }

constexpr OpRow kRows[] = {
    {"aten._upsample_bicubic2d_aa.default", lower_bicubic_aa, "MatMul", "no integers"},
    {"aten._upsample_bicubic2d_aa.vec", lower_bicubic_aa_vec, "MatMul", "no integers"},
    {"aten._upsample_bilinear2d_aa.default", lower_bilinear_aa, "MatMul", "no integers"},
    {"aten._upsample_bilinear2d_aa.vec", lower_bilinear_aa_vec, "MatMul", "no integers"},
    {"aten._upsample_nearest_exact1d.default", lower_nearest_exact<1>, "Resize, or Gather", ""},
    {"aten._upsample_nearest_exact1d.vec", lower_nearest_exact_vec<1>, "Resize, or Gather", ""},
    {"aten._upsample_nearest_exact2d.default", lower_nearest_exact<2>, "Resize, or Gather", ""},
    {"aten._upsample_nearest_exact2d.vec", lower_nearest_exact_vec<2>, "Resize, or Gather", ""},
    {"aten._upsample_nearest_exact3d.default", lower_nearest_exact<3>, "Resize, or Gather", ""},
    {"aten._upsample_nearest_exact3d.vec", lower_nearest_exact_vec<3>, "Resize, or Gather", ""},
    {"aten.upsample_bicubic2d.default", lower_bicubic, "Resize, or Gather and Mul", "no integers"},
    {"aten.upsample_bicubic2d.vec", lower_bicubic_vec, "Resize, or Gather and Mul", "no integers"},
    {"aten.upsample_bilinear2d.default", lower_linear<2>, "Resize, or Gather and Mul",
     "no integers"},
    {"aten.upsample_bilinear2d.vec", lower_linear_vec<2>, "Resize, or Gather and Mul",
     "no integers"},
    {"aten.upsample_linear1d.default", lower_linear<1>, "Resize, or Gather and Mul", "no integers"},
    {"aten.upsample_linear1d.vec", lower_linear_vec<1>, "Resize, or Gather and Mul", "no integers"},
    {"aten.upsample_nearest1d.default", lower_nearest<1>, "Resize, or Gather", ""},
    {"aten.upsample_nearest1d.vec", lower_nearest_vec<1>, "Resize, or Gather", ""},
    {"aten.upsample_nearest2d.default", lower_nearest<2>, "Resize, or Gather", ""},
    {"aten.upsample_nearest2d.vec", lower_nearest_vec<2>, "Resize, or Gather", ""},
    {"aten.upsample_nearest3d.default", lower_nearest<3>, "Resize, or Gather", ""},
    {"aten.upsample_nearest3d.vec", lower_nearest_vec<3>, "Resize, or Gather", ""},
    {"aten.upsample_trilinear3d.default", lower_linear<3>, "Resize, or Gather and Mul",
     "no integers"},
    {"aten.upsample_trilinear3d.vec", lower_linear_vec<3>, "Resize, or Gather and Mul",
     "no integers"},
};

}  // namespace

std::span<const OpRow> resize_ops() { return kRows; }

}  // namespace fairlead::onnx
