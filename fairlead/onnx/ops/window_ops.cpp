// Windows taken apart and put together: unfold, fold, and blocks of pixels as channels.
#include "fairlead/onnx/families.h"

namespace fairlead::onnx {
namespace {

Val range(Lowering& b, Expr end) {
  return b.op("Range", {b.size_scalar(b.expr(0)), b.size_scalar(end), b.size_scalar(b.expr(1))});
}

// [rows, columns]: row*row_step + column*column_step
Val grid(Lowering& b, Expr rows, std::int64_t row_step, Expr columns, std::int64_t column_step) {
  const auto scaled = [&](Val v, std::int64_t step) {
    return step == 1 ? v : b.op("Mul", {v, b.size_scalar(b.expr(step))});
  };
  return b.op("Add", {b.unsqueeze(scaled(range(b, rows), row_step), {1}),
                      scaled(range(b, columns), column_step)});
}

Ints pair(Lowering& b, std::size_t i) {
  Ints list = b.constant_ints(i);
  if (list.size() == 1) list.push_back(list[0]);
  return list;
}

// aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) ->
// Tensor
void lower_im2col(Lowering& b) {
  const auto kernel = pair(b, 1), dilation = pair(b, 2), padding = pair(b, 3), stride = pair(b, 4);
  const bool batched = b.rank(0) == 4;
  Shape shape = b.shape(0);
  Val x = b.in(0);
  if (!batched) {
    shape.insert(shape.begin(), b.expr(1));
    x = b.unsqueeze(x, {0});
  }
  if (padding[0] != 0 || padding[1] != 0) {
    x = b.op("Pad", {x, b.ints({0, 0, padding[0], padding[1], 0, 0, padding[0], padding[1]}),
                     b.scalar(0, b.out_dtype())});
  }
  ExprPool& p = b.pool();
  Shape apart = {shape[0], shape[1], b.expr(kernel[0]), b.expr(kernel[1]), nullptr, nullptr};
  for (std::size_t k = 2; k-- > 0;) {
    const std::int64_t fixed = 2 * padding[k] - dilation[k] * (kernel[k] - 1) - 1;
    const Expr count = p.add(
        p.floordiv(p.add(shape[2 + k], p.constant(fixed)), p.constant(stride[k])), p.constant(1));
    apart[4 + k] = count;
    x = b.op("Gather", {x, grid(b, b.expr(kernel[k]), dilation[k], count, stride[k])},
             {attr("axis", static_cast<std::int64_t>(2 + k))});
  }
  // [n, c, kh, oh, kw, ow] -> [n, c, kh, kw, oh, ow] -> [n, c*kh*kw, oh*ow]
  x = b.transpose(x, {0, 1, 2, 4, 3, 5});
  b.result(b.reshape(x, apart, b.out_shape()));
}

// aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2]
//   padding, int[2] stride) -> Tensor
void lower_col2im(Lowering& b) {
  const bool batched = b.rank(0) == 3;
  Val x = b.in(0);
  if (!batched) x = b.unsqueeze(x, {0});
  const auto padding = pair(b, 4);
  Shape size = b.integers(1);
  if (size.size() == 1) size.push_back(size[0]);
  x = b.op("Col2Im", {x, b.shape_tensor(size), b.ints(pair(b, 2))},
           {attr("dilations", pair(b, 3)), attr("strides", pair(b, 5)),
            attr("pads", Ints{padding[0], padding[1], padding[0], padding[1]})});
  b.result(batched ? x : b.squeeze(x, {0}));
}

// Splits the last three dimensions into five, permutes those and joins them again.
void rearrange(Lowering& b, const Shape& parts, const Ints& order) {
  const Shape& shape = b.shape(0);
  if (shape.size() < 3) b.unsupported("expected pictures");
  const std::size_t lead = shape.size() - 3;
  Shape apart(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(lead));
  apart.insert(apart.end(), parts.begin(), parts.end());
  Ints perm;
  Shape permuted(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(lead));
  for (std::size_t k = 0; k < lead; ++k) perm.push_back(static_cast<std::int64_t>(k));
  for (const std::int64_t k : order) {
    perm.push_back(static_cast<std::int64_t>(lead) + k);
    permuted.push_back(parts[static_cast<std::size_t>(k)]);
  }
  b.result(b.reshape(b.transpose(b.reshape(b.in(0), shape, apart), perm), permuted, b.out_shape()));
}

// aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor
void lower_pixel_shuffle(Lowering& b) {
  const Expr r = b.integer(1);
  const Shape& shape = b.shape(0);
  const std::size_t c = shape.size() - 3;
  rearrange(b, {b.out_shape()[c], r, r, shape[c + 1], shape[c + 2]}, {0, 3, 1, 4, 2});
}

// aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor
void lower_pixel_unshuffle(Lowering& b) {
  const Expr r = b.integer(1);
  const Shape& shape = b.shape(0);
  const std::size_t c = shape.size() - 3;
  rearrange(b, {shape[c], b.out_shape()[c + 1], r, b.out_shape()[c + 2], r}, {0, 2, 4, 1, 3});
}

// aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor
void lower_channel_shuffle(Lowering& b) {
  const Shape& shape = b.shape(0);
  const Expr groups = b.integer(1);
  Shape apart = {shape[0], groups, b.pool().floordiv(shape[1], groups)};
  Shape mixed = {shape[0], apart[2], groups};
  Ints perm = {0, 2, 1};
  for (std::size_t k = 2; k < shape.size(); ++k) {
    apart.push_back(shape[k]);
    mixed.push_back(shape[k]);
    perm.push_back(static_cast<std::int64_t>(k) + 1);
  }
  b.result(b.reshape(b.transpose(b.reshape(b.in(0), shape, apart), perm), mixed, shape));
}

constexpr OpRow kRows[] = {
    {"aten.channel_shuffle.default", lower_channel_shuffle, "Reshape, Transpose", ""},
    {"aten.col2im.default", lower_col2im, "Col2Im", "float64 computes in float32"},
    {"aten.im2col.default", lower_im2col, "Pad, Gather, Transpose", ""},
    {"aten.native_channel_shuffle.default", lower_channel_shuffle, "Reshape, Transpose", ""},
    {"aten.pixel_shuffle.default", lower_pixel_shuffle, "Reshape, Transpose", ""},
    {"aten.pixel_unshuffle.default", lower_pixel_unshuffle, "Reshape, Transpose", ""},
};

}  // namespace

std::span<const OpRow> window_ops() { return kRows; }

}  // namespace fairlead::onnx
