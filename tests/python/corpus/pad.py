"""Padding."""

import torch
import torch.nn.functional as F

from . import Case


def pad(pads, *shape, mode="constant", value=None, dtype=torch.float32):
    return lambda x: F.pad(x, pads, mode, value), lambda: ((torch.randn(*shape) * 5).to(dtype),)


CIRCULAR = "aten.copy.default"
CONSTANT = "aten.constant_pad_nd.default"

CASES = [
    Case(CONSTANT, *pad((1, 2), 3, 4)),
    Case(CONSTANT, *pad((1, 2, 0, 3), 2, 3, 4, value=1.5), "two dimensions, value"),
    Case(CONSTANT, *pad((-1, 2, 1, -1), 2, 3, 4), "negative"),
    Case(CONSTANT, *pad((-1, -1), 2, 5), "cut"),
    Case(CONSTANT, *pad((0, 0, 1, 0), 2, 3, value=float("-inf")), "infinity"),
    Case(CONSTANT, *pad((1, 1), 2, 3, value=7, dtype=torch.int64), "int64"),
    Case(CONSTANT, *pad((1, 1), 2, 3, value=7, dtype=torch.int16), "int16"),
    Case(CONSTANT, *pad((1, 1), 2, 3, value=True, dtype=torch.bool), "bool"),
    Case(CONSTANT, *pad((1, 1), 2, 3, dtype=torch.float16), "float16"),
    Case(CONSTANT, *pad((1, 1), 2, 3, dtype=torch.bfloat16), "bfloat16"),
    Case(CONSTANT, lambda x: F.pad(x[:0], (1, 1)), lambda: (torch.randn(2, 3),), "empty"),
    Case(
        CONSTANT,
        lambda x: F.pad(x, (0, (-x.shape[1]) % 4)),
        lambda: (torch.randn(3, 6),),
        "to a multiple",
        fixed=True,
    ),
    Case(CONSTANT, lambda x: F.pad(x, (x.shape[0], 0)), lambda: (torch.randn(3, 6),), "by a size"),
    Case("aten.reflection_pad1d.default", *pad((2, 1), 2, 3, 6, mode="reflect")),
    Case("aten.reflection_pad2d.default", *pad((2, 1, 0, 3), 2, 3, 6, 7, mode="reflect")),
    Case("aten.reflection_pad3d.default", *pad((2, 1, 0, 3, 1, 1), 1, 2, 4, 6, 7, mode="reflect")),
    Case(
        "aten.reflection_pad1d.default",
        *pad((2, 1), 3, 6, mode="reflect", dtype=torch.float64),
        "without batch",
    ),
    Case("aten.replication_pad1d.default", *pad((2, 8), 2, 3, 6, mode="replicate")),
    Case("aten.replication_pad2d.default", *pad((2, 1, 0, 9), 2, 3, 6, 7, mode="replicate")),
    Case("aten.replication_pad3d.default", *pad((2, 1, 0, 3, 1, 1), 1, 2, 4, 6, 7, mode="replicate")),
    Case("aten.replication_pad1d.default", *pad((-1, 2), 2, 3, 6, mode="replicate"), "negative"),
    Case(
        "aten.replication_pad1d.default",
        lambda x: F.pad(x, (x.shape[0], 0), "replicate"),
        lambda: (torch.randn(2, 3, 6),),
        "by a size",
    ),
    Case(CIRCULAR, *pad((2, 1), 2, 3, 6, mode="circular"), "circular"),
    Case(CIRCULAR, *pad((2, 1, 0, 3), 2, 3, 6, 7, mode="circular"), "circular, two dimensions"),
]
