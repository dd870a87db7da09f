"""Grids."""

import torch
import torch.nn.functional as F

from . import Case


def sample(mode, padding, corners, dims=2, dtype=torch.float32):
    shape = [5, 6, 7][:dims]
    return (
        lambda x, g: F.grid_sample(x, g, mode, padding, corners),
        lambda: (
            torch.randn(2, 3, *shape).to(dtype),
            (torch.rand(2, *[4, 3, 2][:dims], dims) * 3 - 1.5).to(dtype),
        ),
    )


GRID = "aten.grid_sampler_2d.default"
VOLUME = "aten.grid_sampler_3d.default"
AFFINE = "aten.affine_grid_generator.default"

CASES = [
    Case(GRID, *sample(mode, padding, corners), f"{mode}, {padding}{', corners' if corners else ''}")
    for mode in ("bilinear", "nearest", "bicubic")
    for padding in ("zeros", "border", "reflection")
    for corners in (False, True)
]
CASES += [
    Case(GRID, *sample("bilinear", "zeros", False, dtype=torch.float64), "float64"),
    Case(GRID, *sample("bilinear", "zeros", False, dtype=torch.float16), "float16", tolerance=5e-2),
    Case(VOLUME, *sample("bilinear", "zeros", False, 3), min_opset=20),
    Case(VOLUME, *sample("nearest", "border", True, 3), "nearest", min_opset=20),
    Case(VOLUME, *sample("bilinear", "reflection", True, 3), "reflection", min_opset=20),
    Case(AFFINE, lambda t: F.affine_grid(t, (2, 3, 4, 5), False), lambda: (torch.randn(2, 2, 3),)),
    Case(AFFINE, lambda t: F.affine_grid(t, (2, 3, 4, 1), True), lambda: (torch.randn(2, 2, 3),), "corners"),
    Case(
        AFFINE,
        lambda t, x: F.affine_grid(t, x.shape, False),
        lambda: (torch.randn(2, 2, 3), torch.randn(2, 3, 4, 5)),
        "size of another",
    ),
    Case(AFFINE, lambda t: F.affine_grid(t, (2, 3, 4, 5, 6), True), lambda: (torch.randn(2, 3, 4),), "volume"),
]
