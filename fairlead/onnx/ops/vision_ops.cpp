// Torchvision's operators: boxes and regions of images, and convolutions whose samples move.
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"
#include "fairlead/onnx/ops/index_forms.h"

namespace fairlead::onnx {
namespace {

// torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
//
// A box whose second corner is not beyond its first overlaps none in torchvision; the standard's
// operator takes the corners in either order, so such a box is made empty.
void lower_nms(Lowering& b) {
  const Val corners = b.in(0, Dtype::kFloat32);
  const Val first = b.slice(corners, 1, b.ints({0}), b.ints({2}));
  const Val second = b.op("Max", {first, b.slice(corners, 1, b.ints({2}), b.ints({4}))});
  const Val boxes = b.unsqueeze(b.concat({first, second}, 1), {0});
  const Val scores = b.unsqueeze(b.in(1, Dtype::kFloat32), {0, 1});
  const std::int64_t one[] = {1};
  const Val threshold = b.filled(b.number(2), Dtype::kFloat32, one);
  // Each row of the result is (image, class, box).
  const Val kept = b.op("NonMaxSuppression", {boxes, scores, b.dim(b.shape(0)[0]), threshold}, {},
                        Dtype::kInt64);
  b.result(b.op("Gather", {kept, b.size_scalar(b.expr(2))}, {attr("axis", 1)}));
}

// torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height,
//   SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor
//
// The first of a region's five numbers is its image.
void lower_roi_align(Lowering& b) {
  const Dtype d = b.out_dtype() == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
  const Val regions = b.in(1, d);
  const Val images = b.op("Gather", {regions, b.size_scalar(b.expr(0))}, {attr("axis", 1)});
  const Val corners = b.slice(regions, 1, b.ints({1}), b.ints({5}));
  b.result(
      b.op("RoiAlign", {b.in(0, d), corners, b.cast(images, Dtype::kInt64)},
           {attr("coordinate_transformation_mode", b.flag(6) ? "half_pixel" : "output_half_pixel"),
            attr("mode", "avg"), attr("output_height", b.constant_int(3)),
            attr("output_width", b.constant_int(4)),
            attr("sampling_ratio", std::max<std::int64_t>(b.constant_int(5), 0)),
            attr("spatial_scale", static_cast<float>(b.number(2)))}));
}

// Where the samples of a kernel lie along one axis before they move: [kernel, out].
Num sample_grid(Lowering& b, std::int64_t kernel, Expr out, std::int64_t stride,
                std::int64_t padding, std::int64_t dilation, Dtype d) {
  const Val starts = range(b, b.expr(-padding), out, b.expr(stride));
  const Val taps = range(b, b.expr(0), b.expr(kernel), b.expr(dilation));
  return {&b, b.cast(b.op("Add", {b.unsqueeze(taps, {1}), starts}), d)};
}

// The operator of the standard, whose arguments are those of torchvision.
void deform_conv_node(Lowering& b, Dtype d) {
  const auto pair = [&](std::size_t i) { return Ints{b.constant_int(i), b.constant_int(i + 1)}; };
  const Ints pads = pair(7);
  Inputs inputs = {b.in(0, d), b.in(1, d), b.in(2, d), b.in(4, d)};
  if (b.flag(13)) inputs.push_back(b.in(3, d));
  b.result(b.op("DeformConv", inputs,
                {attr("strides", pair(5)), attr("pads", Ints{pads[0], pads[1], pads[0], pads[1]}),
                 attr("dilations", pair(9)), attr("group", b.constant_int(11)),
                 attr("offset_group", b.constant_int(12))}));
}

// torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias,
//   SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h,
//   SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor
//
// Without DeformConv, GridSample takes every sample of the kernel, and the convolution is a product
// with what it found.
void lower_deform_conv(Lowering& b) {
  const Dtype d = b.out_dtype() == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
  if (b.opset() >= 19 && !b.avoids(Fault::kNoDeformConv)) return deform_conv_node(b, d);
  const Shape& image = b.shape(0);
  const Expr batch = image[0], out_h = b.out_shape()[2], out_w = b.out_shape()[3];
  const auto fixed = [&](std::size_t axis) {
    const Expr e = b.shape(1)[axis];
    if (!is_const(e)) b.must_be_constant("the size of the weight", e);
    return e->value;
  };
  const std::int64_t out_channels = fixed(0), per_group = fixed(1), kh = fixed(2), kw = fixed(3);
  const std::int64_t groups = b.constant_int(11), parts = b.constant_int(12);
  if (groups < 1 || parts < 1) b.unsupported("expected one group at least, got none");
  const std::int64_t channels = b.pool().mul(b.expr(per_group), b.expr(groups))->value;
  const std::int64_t taps = kh * kw;
  const auto wide = [&](std::initializer_list<std::int64_t> sizes) {
    Shape shape;
    for (const std::int64_t n : sizes) {
      shape.push_back(n == -1 ? batch : n == -2 ? out_h : n == -3 ? out_w : b.expr(n));
    }
    return b.shape_tensor(shape);
  };
  // offset: [batch, parts, kh, kw, (y, x), out_h, out_w]
  const Val moved = b.op("Reshape", {b.in(2, d), wide({-1, parts, kh, kw, 2, -2, -3})});
  const auto moved_by = [&](std::int64_t k) {
    return Num{&b, b.op("Gather", {moved, b.size_scalar(b.expr(k))}, {attr("axis", 4)})};
  };
  const Num grid_y =
      sample_grid(b, kh, out_h, b.constant_int(5), b.constant_int(7), b.constant_int(9), d);
  const Num grid_x =
      sample_grid(b, kw, out_w, b.constant_int(6), b.constant_int(8), b.constant_int(10), d);
  const Num y = moved_by(0) + Num{&b, b.unsqueeze(grid_y, {1, 3})};  // [.., kh, kw, out_h, out_w]
  const Num x = moved_by(1) + Num{&b, b.unsqueeze(grid_x, {1})};
  // In pixels -> in halves of the image, from its edge to its edge.
  const auto scaled = [&](Num place, Expr size) {
    return (place * 2.0 + 1.0) / Num{&b, b.size_scalar(size, d)} - 1.0;
  };
  const Val places = b.concat(
      {b.unsqueeze(scaled(x, image[3]), {-1}), b.unsqueeze(scaled(y, image[2]), {-1})}, -1);
  const Expr all = b.pool().mul(batch, b.expr(parts));
  const Expr rows = b.pool().mul(b.expr(taps), out_h);
  const Val grid = b.op("Reshape", {places, b.shape_tensor(Shape{all, rows, out_w, b.expr(2)})});
  const Val source =
      b.op("Reshape",
           {b.in(0, d), b.shape_tensor(Shape{all, b.expr(channels / parts), image[2], image[3]})});
  const std::string_view mode = b.opset() >= 20 ? "linear" : "bilinear";
  Num found = {&b,
               b.op("GridSample", {source, grid},
                    {attr("align_corners", 0), attr("mode", mode), attr("padding_mode", "zeros")})};
  found = {&b, b.op("Reshape", {found, wide({-1, parts, channels / parts, taps, -2, -3})})};
  if (b.flag(13)) {
    found = found * Num{&b, b.op("Reshape", {b.in(3, d), wide({-1, parts, 1, taps, -2, -3})})};
  }
  const Expr plane = b.pool().mul(out_h, out_w);
  const Val columns =
      b.op("Reshape",
           {found, b.shape_tensor(Shape{batch, b.expr(groups), b.expr(per_group * taps), plane})});
  const Val weight =
      b.op("Reshape", {b.in(1, d), b.ints({groups, out_channels / groups, per_group * taps})});
  const Val product = b.op("MatMul", {weight, columns});
  const Num result = {&b, b.op("Reshape", {product, b.shape_tensor(b.out_shape())})};
  b.result(result + Num{&b, b.op("Reshape", {b.in(4, d), b.ints({1, out_channels, 1, 1})})});
}

constexpr OpRow kRows[] = {
    {"torchvision.deform_conv2d.default", lower_deform_conv, "GridSample, MatMul", ""},
    {"torchvision.nms.default", lower_nms, "NonMaxSuppression", "float64 computes in float32"},
    {"torchvision.roi_align.default", lower_roi_align, "RoiAlign", ""},
};

}  // namespace

std::span<const OpRow> vision_ops() { return kRows; }

}  // namespace fairlead::onnx
