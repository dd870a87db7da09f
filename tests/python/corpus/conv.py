"""Convolutions."""

import torch
import torch.nn.functional as F

from . import Case


def conv(dims, groups=1, bias=True, dtype=torch.float32, size=7, **options):
    """A convolution of `dims` spatial dimensions from 4 channels to 6."""
    torch.manual_seed(1)
    weight = torch.randn(6, 4 // groups, *[3, 2, 3][:dims]).to(dtype)
    b = torch.randn(6).to(dtype) if bias else None
    fn = [F.conv1d, F.conv2d, F.conv3d][dims - 1]
    return (
        lambda x: fn(x, weight, b, groups=groups, **options),
        lambda: (torch.randn(2, 4, *[size, size + 1, size + 2][:dims]).to(dtype),),
    )


def transposed(dims, groups=1, bias=True, **options):
    torch.manual_seed(1)
    weight = torch.randn(4, 6 // groups, *[3, 2, 3][:dims])
    b = torch.randn(6) if bias else None
    fn = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][dims - 1]
    return (
        lambda x: fn(x, weight, b, groups=groups, **options),
        lambda: (torch.randn(2, 4, *[5, 6, 7][:dims]),),
    )


OP = "aten.convolution.default"


def inside(transposed, *, stride=1, dtype=torch.float32):
    """What convolution calls; programs made elsewhere have it."""
    weight = (4, 6, 3, 2) if transposed else (6, 4, 3, 2)
    return (
        lambda x, w, b: torch.ops.aten._convolution(
            x, w, b, [stride, 1], [1, 0], [1, 1], transposed, [0, 0], 1, False, False, False, False
        ),
        lambda: tuple(torch.randn(*s).to(dtype) for s in ((2, 4, 7, 8), weight, (6,))),
    )


INSIDE = "aten._convolution.default"

CASES = [
    Case(OP, *conv(1), "1d"),
    Case(OP, *conv(1, stride=2, padding=1, dilation=2), "1d strided dilated"),
    Case(OP, *conv(2), "2d"),
    Case(OP, *conv(2, bias=False, padding=(1, 0), stride=(2, 1)), "2d without bias"),
    Case(OP, *conv(2, groups=2, dilation=(2, 1)), "2d groups"),
    Case(OP, *conv(2, padding="same"), "2d same"),
    Case(OP, *conv(2, dtype=torch.float16), "2d float16", tolerance=1e-2),
    Case(OP, *conv(2, dtype=torch.float64), "2d float64"),
    Case(OP, *conv(2, dtype=torch.bfloat16), "2d bfloat16", tolerance=3e-2),
    Case(OP, *conv(3, stride=2, padding=1), "3d"),
    Case(
        OP,
        lambda x, w: F.conv2d(x, w),
        lambda: (torch.randn(2, 3, 6, 6), torch.randn(4, 3, 2, 2)),
        "weight from outside",
        tolerance=1e-3,  # the kernel is free too: thousands of products a sum at the larger sizes
    ),
    Case(OP, *conv(2, padding=1, size=2), "small"),
    Case(OP, lambda x: F.conv2d(x, torch.ones(2, 3, 2, 2)), lambda: (torch.randn(3, 6, 6),), "without batch"),
    Case(OP, *transposed(1, stride=2), "transposed 1d"),
    Case(OP, *transposed(2, stride=2, padding=1, output_padding=1), "transposed 2d"),
    Case(OP, *transposed(2, groups=2, dilation=2, bias=False), "transposed 2d groups"),
    Case(OP, *transposed(3, stride=2, padding=1), "transposed 3d"),
    Case(INSIDE, *inside(False, stride=2), tolerance=1e-3),
    Case(INSIDE, *inside(True), "transposed", tolerance=1e-3),
    Case(INSIDE, *inside(False, dtype=torch.float16), "float16", tolerance=2e-2),
]
