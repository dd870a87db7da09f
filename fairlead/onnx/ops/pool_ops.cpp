// Pooling by windows of a fixed size.
#include <algorithm>
#include <limits>

#include "fairlead/onnx/families.h"
#include "fairlead/onnx/kernels.h"
#include "fairlead/onnx/ops/index_forms.h"

namespace fairlead::onnx {
namespace {

// A list of one integer counts for every spatial dimension; none means `otherwise`.
Ints spatial(Lowering& b, std::size_t i, std::size_t count, const Ints& otherwise) {
  Ints list = b.has(i) ? b.constant_ints(i) : otherwise;
  if (list.empty()) list = otherwise;
  if (list.size() == 1) list.resize(count, list[0]);
  return list;
}

// One window per spatial dimension. Rounding up, PyTorch drops a last window that would start
// beyond the input and its left padding; `overhang` is how far the last window reaches beyond the
// padded input.
struct Windows {
  Ints kernel, stride, padding, dilation;
  Shape in, out, overhang;
  bool ceil = false;
};

Windows read_windows(Lowering& b, std::size_t count, int dilation_arg, std::size_t ceil_arg) {
  Windows w;
  w.kernel = spatial(b, 1, count, {});
  w.stride = spatial(b, 2, count, w.kernel);
  w.padding = spatial(b, 3, count, Ints(count, 0));
  const Ints ones(count, 1);
  w.dilation =
      dilation_arg < 0 ? ones : spatial(b, static_cast<std::size_t>(dilation_arg), count, ones);
  w.ceil = b.flag(ceil_arg);
  const Shape& shape = b.shape(0);
  ExprPool& p = b.pool();
  for (std::size_t k = 0; k < count; ++k) {
    const Expr in = shape[shape.size() - count + k];
    const Expr out = b.out_shape()[shape.size() - count + k];
    const std::int64_t reach = w.dilation[k] * (w.kernel[k] - 1) + 1;
    const Expr needed =
        p.add(p.mul(p.sub(out, p.constant(1)), p.constant(w.stride[k])), p.constant(reach));
    w.in.push_back(in);
    w.out.push_back(out);
    w.overhang.push_back(
        w.ceil ? p.max(p.sub(needed, p.add(in, p.constant(2 * w.padding[k]))), p.constant(0))
               : p.constant(0));
  }
  return w;
}

// Axes, of an input with a batch, along which one window is all of it, where its size is that of
// the input (`F.avg_pool2d(x, x.shape[2:])`) and the other windows are of one element; none for
// windows of another kind.
Ints whole_axes(Lowering& b, std::size_t count) {
  const std::vector<Arg>& kernel = b.node().args[1].items;
  const Shape& shape = b.shape(0);
  Ints axes;
  bool varies = false;
  for (std::size_t k = 0; k < count; ++k) {
    if (kernel.empty()) return {};
    const Arg& size = kernel.size() == 1 ? kernel[0] : kernel[k];
    if (size.kind != ArgKind::kInt) return {};
    varies = varies || !is_const(size.expr);
    if (size.expr == shape[shape.size() - count + k]) {
      axes.push_back(static_cast<std::int64_t>(k) + 2);
    } else if (!is_const(size.expr, 1)) {
      return {};
    }
  }
  if (!varies) return {};
  const Ints padding = spatial(b, 3, count, Ints(count, 0));
  const bool padded = std::any_of(padding.begin(), padding.end(), [](auto p) { return p != 0; });
  // A window of one element that is not at every place has a stride of its own.
  const auto made = [&](std::size_t k) {
    const Expr size = shape[shape.size() - count + k],
               out = b.out_shape()[shape.size() - count + k];
    const bool whole =
        std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(k) + 2) != axes.end();
    return whole ? is_const(out, 1) : out == size;
  };
  for (std::size_t k = 0; k < count; ++k) {
    if (!made(k)) return {};
  }
  return padded ? Ints{} : axes;
}

Val over_whole(Lowering& b, std::string_view type, Val x, Ints axes, std::size_t count) {
  const bool batched = b.rank(0) == static_cast<int>(count) + 2;
  for (std::int64_t& axis : axes) axis -= batched ? 0 : 1;
  return b.reduce(type, x, axes, true);
}

bool hangs_over(const Windows& w) {
  return !std::all_of(w.overhang.begin(), w.overhang.end(), [](Expr e) { return is_const(e, 0); });
}

// A single window that is larger than the input, as classifiers with ceil_mode use to average
// everything: padding the input up to it could take any amount of memory.
bool is_padded(const Windows& w) {
  return std::any_of(w.padding.begin(), w.padding.end(), [](std::int64_t p) { return p != 0; });
}

bool is_large(const Windows& w) {
  return std::any_of(w.kernel.begin(), w.kernel.end(), [](std::int64_t k) { return k >= 32; });
}

bool one_window(const Windows& w) {
  return std::all_of(w.out.begin(), w.out.end(), [](Expr e) { return is_const(e, 1); });
}

// The padding of both sides and the overhang as explicit elements of value `fill`.
Val pad_windows(Lowering& b, Val x, const Windows& w, double fill) {
  const std::size_t count = w.kernel.size(), r = count + 2;
  Shape pads(2 * r, b.expr(0));
  for (std::size_t k = 0; k < count; ++k) {
    pads[2 + k] = b.expr(w.padding[k]);
    pads[r + 2 + k] = b.pool().add(b.expr(w.padding[k]), w.overhang[k]);
  }
  return b.op("Pad", {x, b.shape_tensor(pads), b.scalar(fill, b.dtype_of(x))});
}

Ints both_sides(const Ints& padding) {
  Ints pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

// Positions in the flattened padded plane -> positions in the flattened plane.
Val plane_index(Lowering& b, Val index, const Windows& w, bool padded) {
  const std::size_t count = w.kernel.size();
  ExprPool& p = b.pool();
  Shape size;
  for (std::size_t k = 0; k < count; ++k) {
    size.push_back(padded ? p.add(p.add(w.in[k], p.constant(2 * w.padding[k])), w.overhang[k])
                          : w.in[k]);
  }
  // The runtime counts over batch and channels too.
  index = b.op("Mod", {index, b.size_scalar(at_least_one(b, p.product(size)))});
  if (!padded) return index;
  Val flat;
  Expr below = b.expr(1);  // elements per step of this dimension in the plane without padding
  for (std::size_t k = count; k-- > 0;) {
    Val place = k == 0 ? index : b.op("Mod", {index, b.size_scalar(at_least_one(b, size[k]))});
    index = b.op("Div", {index, b.size_scalar(at_least_one(b, size[k]))});
    place = b.op("Mul",
                 {b.op("Sub", {place, b.scalar(static_cast<double>(w.padding[k]), Dtype::kInt64)}),
                  b.size_scalar(below)});
    flat = flat.present() ? b.op("Add", {flat, place}) : place;
    below = p.mul(below, w.in[k]);
  }
  return flat;
}

// aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2]
//   padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor); 1d and 3d alike
template <std::size_t kCount>
void lower_max_pool(Lowering& b) {
  // Doubles hold the integers that have no kernel of their own.
  const Dtype work =
      is_float(b.out_dtype()) ? b.kernel_dtype("MaxPool", b.out_dtype()) : Dtype::kFloat64;
  if (const Ints axes = whole_axes(b, kCount);
      !axes.empty() && (b.result_count() < 2 || !b.result_used(1))) {
    return b.result(over_whole(b, "ReduceMax", b.in(0, work), axes, kCount));
  }
  const Windows w = read_windows(b, kCount, 4, 5);
  const bool batched = b.rank(0) == static_cast<int>(kCount) + 2;
  Val x = b.in(0, work);
  if (!batched) x = b.unsqueeze(x, {0});
  // The largest of one stands between a Pad and the MaxPool that would take it in.
  if (b.made_by(x, "Pad") && b.avoids(Fault::kPadIntoMaxPool)) x = b.op("Max", {x});
  const bool explicit_padding = hangs_over(w);
  if (explicit_padding) x = pad_windows(b, x, w, -std::numeric_limits<double>::infinity());
  Attributes attributes = {
      attr("kernel_shape", w.kernel),
      attr("strides", w.stride),
      attr("pads", explicit_padding ? Ints(2 * kCount, 0) : both_sides(w.padding)),
      attr("dilations", w.dilation),
  };
  const auto batch = [&](Val v) { return batched ? v : b.squeeze(v, {0}); };
  if (b.result_count() < 2 || !b.result_used(1)) {
    return b.result(batch(b.op("MaxPool", {x}, std::move(attributes))));
  }
  const Inputs both = b.ops("MaxPool", {x}, {work, Dtype::kInt64}, std::move(attributes));
  b.result(0, batch(both[0]));
  b.result(1, batch(plane_index(b, both[1], w, explicit_padding)));
}

// How many elements each window counts, along one dimension: the part of the window within the
// input (and its padding where that counts), never the overhang. Shaped to broadcast over later
// dimensions.
Val counted(Lowering& b, const Windows& w, std::size_t k, bool with_padding, Dtype d) {
  const auto at = [&](std::int64_t v) { return b.scalar(static_cast<double>(v), Dtype::kInt64); };
  const Val places = b.op("Range", {at(0), b.size_scalar(w.out[k]), at(1)});
  Val start = b.op("Sub", {b.op("Mul", {places, at(w.stride[k])}), at(w.padding[k])});
  const Expr limit = with_padding ? b.pool().add(w.in[k], b.expr(w.padding[k])) : w.in[k];
  const Val end = b.op("Min", {b.op("Add", {start, at(w.kernel[k])}), b.size_scalar(limit)});
  if (!with_padding) start = b.op("Max", {start, at(0)});
  Val count = b.cast(b.op("Sub", {end, start}), d);
  const std::size_t later = w.kernel.size() - 1 - k;
  Ints axes;
  for (std::size_t a = 0; a < later; ++a) axes.push_back(static_cast<std::int64_t>(a) + 1);
  return axes.empty() ? count : b.unsqueeze(count, axes);
}

// aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0,
//   bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor
//
// Without overhang and override, AveragePool is the same. Otherwise the mean over the whole window
// of the zero-padded input is scaled to the count that PyTorch divides by.
template <std::size_t kCount>
void lower_avg_pool(Lowering& b) {
  const Dtype d = b.kernel_dtype("AveragePool", b.out_dtype());
  if (const Ints axes = whole_axes(b, kCount); !axes.empty() && !b.has(6)) {
    return b.result(over_whole(b, "ReduceMean", b.in(0, d), axes, kCount));
  }
  const Windows w = read_windows(b, kCount, -1, 4);
  const bool batched = b.rank(0) == static_cast<int>(kCount) + 2;
  const bool with_padding = b.flag(5, true);
  Val x = b.in(0, d);
  if (!batched) x = b.unsqueeze(x, {0});
  const bool plain = !hangs_over(w) && !b.has(6);
  const auto mean_of_all = [&] {
    Ints axes;
    for (std::size_t k = 0; k < kCount; ++k) axes.push_back(static_cast<std::int64_t>(k) + 2);
    return b.reduce("ReduceMean", x, axes, true);
  };
  const auto mean_of_windows = [&] {
    const Val padded = plain ? x : pad_windows(b, x, w, 0);
    Val y = b.op("AveragePool", {padded},
                 {attr("kernel_shape", w.kernel), attr("strides", w.stride),
                  attr("pads", plain ? both_sides(w.padding) : Ints(2 * kCount, 0)),
                  attr("count_include_pad", plain && with_padding)});
    if (plain) return y;
    double whole = 1;
    for (const std::int64_t k : w.kernel) whole *= static_cast<double>(k);
    if (b.has(6)) {
      return b.op("Mul", {y, b.scalar(whole / static_cast<double>(b.constant_int(6)), d)});
    }
    Val divisor = counted(b, w, 0, with_padding, d);
    for (std::size_t k = 1; k < kCount; ++k) {
      divisor = b.op("Mul", {divisor, counted(b, w, k, with_padding, d)});
    }
    return b.op("Div", {b.op("Mul", {y, b.scalar(whole, d)}), divisor});
  };
  Val y;
  if (!plain && !b.has(6) && !is_padded(w) && one_window(w)) {
    y = mean_of_all();
  } else if (plain || b.has(6) || is_padded(w) || !is_large(w)) {
    y = mean_of_windows();
  } else {
    const Val one =
        b.op("Equal", {b.size_scalar(b.pool().product(w.out)), b.size_scalar(b.expr(1))});
    const auto then_branch = b.body({}, [&](const Inputs&) { return Inputs{mean_of_all()}; });
    const auto else_branch = b.body({}, [&](const Inputs&) { return Inputs{mean_of_windows()}; });
    y = b.ops("If", {one}, {d}, {{"then_branch", then_branch}, {"else_branch", else_branch}})[0];
  }
  b.result(batched ? y : b.squeeze(y, {0}));
}

// Its kernels start from the lowest number in place of -inf.
constexpr std::string_view kAllInfinite =
    "ONNX Runtime may give the lowest number for a window of -inf alone";

constexpr OpRow kRows[] = {
    {"aten.avg_pool1d.default", lower_avg_pool<1>, "AveragePool", "float64 computes in float32"},
    {"aten.avg_pool2d.default", lower_avg_pool<2>, "AveragePool", "float64 computes in float32"},
    {"aten.avg_pool3d.default", lower_avg_pool<3>, "AveragePool", "float64 computes in float32"},
    {"aten.max_pool1d.default", lower_max_pool<1>, "MaxPool", kAllInfinite},
    {"aten.max_pool1d_with_indices.default", lower_max_pool<1>, "MaxPool", kAllInfinite},
    {"aten.max_pool2d.default", lower_max_pool<2>, "MaxPool", kAllInfinite},
    {"aten.max_pool2d_with_indices.default", lower_max_pool<2>, "MaxPool", kAllInfinite},
    {"aten.max_pool3d.default", lower_max_pool<3>, "MaxPool", kAllInfinite},
    {"aten.max_pool3d_with_indices.default", lower_max_pool<3>, "MaxPool", kAllInfinite},
};

}  // namespace

std::span<const OpRow> pool_ops() { return kRows; }

}  // namespace fairlead::onnx
