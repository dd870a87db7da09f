"""Interpolation."""

import torch
import torch.nn.functional as F

from . import Case


def f(*shape, dtype=torch.float32):
    return lambda: (torch.randn(*shape).to(dtype),)


def resize(name, *shape, dtype=torch.float32, **options):
    return lambda x: F.interpolate(x, mode=name, **options), f(*shape, dtype=dtype)


NEAREST = "aten.upsample_nearest2d.default"
EXACT = "aten._upsample_nearest_exact2d.default"
LINEAR = "aten.upsample_bilinear2d.default"
CUBIC = "aten.upsample_bicubic2d.default"
IMAGE = (2, 3, 6, 7)

CASES = [
    Case(NEAREST, *resize("nearest", *IMAGE, scale_factor=2), "double"),
    Case(NEAREST, *resize("nearest", *IMAGE, scale_factor=41.0), "unlucky factor", fixed=True),
    Case(NEAREST, *resize("nearest", *IMAGE, scale_factor=1.7), "uneven", fixed=True),
    Case(NEAREST, *resize("nearest", *IMAGE, scale_factor=1.5), "half more"),
    Case(NEAREST, *resize("nearest", *IMAGE, scale_factor=0.4), "smaller", fixed=True),
    Case(NEAREST, *resize("nearest", *IMAGE, size=(13, 5)), "size"),
    Case(
        NEAREST,
        lambda x, y: F.interpolate(x, size=y.shape[2:]),
        lambda: (torch.randn(2, 3, 6, 7), torch.randn(2, 3, 9, 11)),
        "size of another",
    ),
    Case(NEAREST, *resize("nearest", *IMAGE, size=(13, 5), dtype=torch.float16), "float16"),
    Case(NEAREST, *resize("nearest", *IMAGE, scale_factor=3, dtype=torch.float64), "float64"),
    Case("aten.upsample_nearest1d.default", *resize("nearest", 2, 3, 7, scale_factor=2)),
    Case("aten.upsample_nearest1d.default", *resize("nearest", 2, 3, 7, size=10), "size"),
    Case("aten.upsample_nearest3d.default", *resize("nearest", 2, 3, 4, 5, 6, scale_factor=(1, 2, 2))),
    Case("aten.upsample_nearest3d.default", *resize("nearest", 2, 3, 4, 5, 6, size=(3, 7, 9)), "size"),
    Case(EXACT, *resize("nearest-exact", *IMAGE, scale_factor=2), "double"),
    Case(EXACT, *resize("nearest-exact", *IMAGE, size=(13, 4)), "size"),
    Case("aten._upsample_nearest_exact1d.default", *resize("nearest-exact", 2, 3, 7, scale_factor=0.6)),
    Case("aten._upsample_nearest_exact3d.default", *resize("nearest-exact", 2, 3, 4, 5, 6, size=(3, 7, 9))),
    Case(LINEAR, *resize("bilinear", *IMAGE, scale_factor=2), "double"),
    Case(LINEAR, *resize("bilinear", *IMAGE, scale_factor=2, align_corners=True), "double, corners"),
    Case(LINEAR, *resize("bilinear", *IMAGE, size=(13, 5)), "size"),
    Case(LINEAR, *resize("bilinear", *IMAGE, size=(13, 5), align_corners=True), "size, corners"),
    Case(LINEAR, *resize("bilinear", *IMAGE, size=(1, 5), align_corners=True), "one row, corners"),
    Case(LINEAR, *resize("bilinear", *IMAGE, size=(1, 1)), "one pixel"),
    Case(LINEAR, *resize("bilinear", *IMAGE, scale_factor=1.3), "uneven", fixed=True),
    Case(
        LINEAR,
        *resize("bilinear", *IMAGE, scale_factor=1.3, recompute_scale_factor=True),
        "uneven, recomputed",
        fixed=True,
    ),
    Case(LINEAR, *resize("bilinear", *IMAGE, scale_factor=0.5), "half"),
    Case(LINEAR, *resize("bilinear", *IMAGE, size=(13, 5), dtype=torch.float16), "float16", tolerance=1e-2),
    Case(LINEAR, *resize("bilinear", *IMAGE, size=(13, 5), dtype=torch.float64), "float64"),
    Case(
        LINEAR,
        lambda x, y: F.interpolate(x, size=y.shape[2:], mode="bilinear"),
        lambda: (torch.randn(2, 3, 6, 7), torch.randn(2, 3, 9, 11)),
        "size of another",
    ),
    Case("aten.upsample_linear1d.default", *resize("linear", 2, 3, 7, scale_factor=2)),
    Case("aten.upsample_linear1d.default", *resize("linear", 2, 3, 7, size=12, align_corners=True), "corners"),
    Case("aten.upsample_linear1d.default", *resize("linear", 2, 3, 7, scale_factor=1.5), "uneven"),
    Case("aten.upsample_trilinear3d.default", *resize("trilinear", 2, 3, 4, 5, 6, scale_factor=2)),
    Case(
        "aten.upsample_trilinear3d.default",
        *resize("trilinear", 2, 3, 4, 5, 6, size=(5, 3, 8), align_corners=True),
        "corners",
    ),
    Case(CUBIC, *resize("bicubic", *IMAGE, scale_factor=2), "double"),
    Case(LINEAR, *resize("bilinear", *IMAGE, size=(13, 5), dtype=torch.bfloat16), "bfloat16", tolerance=3e-2),
    Case(NEAREST, *resize("nearest", *IMAGE, scale_factor=2, dtype=torch.bfloat16), "bfloat16"),
    Case(CUBIC, *resize("bicubic", *IMAGE, size=(13, 5)), "size"),
    Case(CUBIC, *resize("bicubic", *IMAGE, size=(13, 5), align_corners=True), "size, corners"),
    Case(CUBIC, *resize("bicubic", *IMAGE, scale_factor=1.5), "half more"),
    Case(CUBIC, *resize("bicubic", *IMAGE, scale_factor=1.3), "uneven", fixed=True),
    Case(CUBIC, *resize("bicubic", *IMAGE, size=(13, 5), dtype=torch.float64), "float64"),
    Case("aten._upsample_bilinear2d_aa.default", *resize("bilinear", *IMAGE, size=(3, 4), antialias=True)),
    Case(
        "aten._upsample_bilinear2d_aa.default",
        *resize("bilinear", *IMAGE, size=(13, 4), antialias=True),
        "one larger",
    ),
    # Of a result of one column PyTorch gives the first row for every row.
    Case("aten._upsample_bilinear2d_aa.default", *resize("bilinear", *IMAGE, size=(13, 1), antialias=True), "column"),
    Case(
        "aten._upsample_bilinear2d_aa.default",
        lambda x, y: F.interpolate(x, size=y.shape, mode="bilinear", antialias=True),
        lambda: (torch.randn(*IMAGE), torch.randn(3, 1)),
        "down to a column",
    ),
    Case(
        "aten._upsample_bilinear2d_aa.default",
        *resize("bilinear", *IMAGE, size=(3, 4), antialias=True, align_corners=True),
        "corners",
    ),
    Case(
        "aten._upsample_bilinear2d_aa.default",
        *resize("bilinear", *IMAGE, scale_factor=0.6, antialias=True),
        "scale",
        fixed=True,
    ),
    Case("aten._upsample_bicubic2d_aa.default", *resize("bicubic", *IMAGE, size=(3, 4), antialias=True)),
    Case(
        "aten._upsample_bicubic2d_aa.default",
        *resize("bicubic", *IMAGE, size=(9, 4), antialias=True),
        "one larger",
    ),
]
