// Sampling at given places: grids.
#include "fairlead/onnx/families.h"
#include "fairlead/onnx/ops/formula.h"

namespace fairlead::onnx {
namespace {

// aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode,
//   bool align_corners) -> Tensor; 3d alike
void lower_grid_sampler(Lowering& b) {
  static constexpr std::string_view kOld[] = {"bilinear", "nearest", "bicubic"};
  static constexpr std::string_view kNew[] = {"linear", "nearest", "cubic"};
  static constexpr std::string_view kPadding[] = {"zeros", "border", "reflection"};
  const std::size_t mode = b.place(2, std::size(kOld));
  const std::size_t padding = b.place(3, std::size(kPadding));
  if (b.rank(0) == 5 && b.opset() < 20) b.unsupported("volumes need opset 20");
  b.result(b.op("GridSample", {b.in(0), b.in(1, b.out_dtype())},
                {attr("mode", b.opset() >= 20 ? kNew[mode] : kOld[mode]),
                 attr("padding_mode", kPadding[padding]), attr("align_corners", b.flag(4))}));
}

// aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor
//
// The centres of the output's elements in [-1, 1], last dimension first, and a 1: times theta.
void lower_affine_grid(Lowering& b) {
  const Shape size = b.integers(1);
  if (size.size() < 3) b.unsupported("expected a batch of pictures");
  const std::size_t count = size.size() - 2;
  const Dtype d = b.out_dtype();
  const bool corners = b.flag(2);
  Shape plane(size.begin() + 2, size.end());
  plane.push_back(b.expr(1));
  Inputs coordinates;
  for (std::size_t k = count; k-- > 0;) {
    const Expr n = size[2 + k];
    const Val i =
        b.op("Range", {b.size_scalar(b.expr(0)), b.size_scalar(n), b.size_scalar(b.expr(1))});
    // With corners (2i - (n-1)) / (n-1), without (2i - (n-1)) / n; one element is the middle.
    const Num last = {&b, b.size_scalar(b.pool().sub(n, b.expr(1)), d)};
    const Num whole = corners ? max(last, 1.0) : Num{&b, b.size_scalar(n, d)};
    const Num place = (Num{&b, b.cast(i, d)} * 2.0 - last) / whole;
    // [n] -> [.., n, .., 1] -> the whole plane
    Ints after;
    for (std::size_t a = k + 1; a <= count; ++a) after.push_back(static_cast<std::int64_t>(a - k));
    Shape from(count - k + 1, b.expr(1));
    from[0] = n;
    coordinates.push_back(b.expand(b.unsqueeze(place, after), from, plane));
  }
  coordinates.push_back(b.expand(b.scalar(1, d), {}, plane));
  const Val base = b.concat(coordinates, -1);  // [.., count + 1]
  Shape full(size.begin() + 2, size.end());
  full.push_back(b.expr(static_cast<std::int64_t>(count) + 1));
  Expr points = b.pool().product(std::span(full.data(), count));
  const Shape flat = {points, full.back()};
  const Val grid = b.op("MatMul", {b.reshape(base, full, flat), b.transpose(b.in(0), {0, 2, 1})});
  b.result(
      b.reshape(grid, {size[0], points, b.expr(static_cast<std::int64_t>(count))}, b.out_shape()));
}

constexpr OpRow kRows[] = {
    {"aten.affine_grid_generator.default", lower_affine_grid, "Range, MatMul", ""},
    {"aten.grid_sampler_2d.default", lower_grid_sampler, "GridSample", ""},
    {"aten.grid_sampler_3d.default", lower_grid_sampler, "GridSample", "opset 20 and later"},
};

}  // namespace

std::span<const OpRow> sample_ops() { return kRows; }

}  // namespace fairlead::onnx
