"""Pools, adaptive pools, and windows taken apart and put together."""

import torch
import torch.nn.functional as F

from . import Case


def f(*shape, dtype=torch.float32):
    return lambda: (torch.randn(*shape).to(dtype),)


MAX = "aten.max_pool2d_with_indices.default"
AVG = "aten.avg_pool2d.default"
ADAPTIVE = "aten._adaptive_avg_pool2d.default"
ADAPTIVE_WHOLE = "aten.adaptive_avg_pool2d.default"  # to a size that is made of sizes
ADAPTIVE_MAX = "aten.adaptive_max_pool2d.default"

CASES = [
    Case(MAX, lambda x: F.max_pool2d(x, 2), f(2, 3, 8, 9)),
    Case(MAX, lambda x: F.max_pool2d(x, 3, 2, 1), f(2, 3, 8, 9), "padded"),
    Case(
        MAX, lambda x: F.max_pool2d(F.pad(-x.abs(), (1, 1, 1, 1)), 3, 2), f(2, 3, 8, 9), "behind a padding with zeros"
    ),
    Case(MAX, lambda x: F.max_pool2d(x, (3, 2), (2, 3), (1, 0), (1, 2)), f(2, 3, 8, 9), "uneven, dilated"),
    Case(MAX, lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), f(2, 3, 8, 9), "ceil"),
    Case(MAX, lambda x: F.max_pool2d(x, 2, 3, 1, ceil_mode=True), f(2, 3, 8, 9), "ceil, stride beyond kernel"),
    Case(MAX, lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), f(2, 3, 8, 9), "indices"),
    Case(MAX, lambda x: F.max_pool2d(x, 3, 2, 1, 2, True, True), f(2, 3, 9, 8), "indices, ceil, dilated"),
    Case(MAX, lambda x: F.max_pool2d(x, 2, return_indices=True), f(3, 8, 9), "indices without batch"),
    Case(MAX, lambda x: F.max_pool2d(x, 2), f(2, 3, 8, 9, dtype=torch.float16), "float16"),
    Case(MAX, lambda x: F.max_pool2d(x, 2, padding=1), f(2, 3, 8, 9, dtype=torch.float64), "float64"),
    Case(MAX, lambda x: F.max_pool1d(x, 3, 2, 1), f(2, 3, 9), "1d"),
    Case(MAX, lambda x: F.max_pool1d(x, 3, 2, 1, 2, True, True), f(2, 3, 9), "1d indices"),
    Case("aten.max_pool3d_with_indices.default", lambda x: F.max_pool3d(x, 2, ceil_mode=True), f(2, 3, 5, 6, 7)),
    Case(
        "aten.max_pool3d_with_indices.default",
        lambda x: F.max_pool3d(x, 3, 2, 1, return_indices=True),
        f(2, 3, 5, 6, 7),
        "indices",
    ),
    Case(AVG, lambda x: F.avg_pool2d(x, 2), f(2, 3, 8, 9)),
    Case(AVG, lambda x: F.avg_pool2d(x, 3, 2, 1), f(2, 3, 8, 9), "padded"),
    Case(AVG, lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), f(2, 3, 8, 9), "padding not counted"),
    Case(AVG, lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), f(2, 3, 8, 10), "ceil"),
    Case(AVG, lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), f(2, 3, 8, 10), "ceil, padding not counted"),
    Case(AVG, lambda x: F.avg_pool2d(x, (2, 3), 2, 1, True, True, 5), f(2, 3, 8, 10), "divisor"),
    Case(AVG, lambda x: F.avg_pool2d(x, 2), f(3, 8, 9), "without batch"),
    Case(
        AVG,
        lambda x: F.avg_pool2d(x, 3, 2, 1, True),
        f(2, 3, 8, 9, dtype=torch.bfloat16),
        "bfloat16",
        tolerance=3e-2,
    ),
    Case(
        MAX,
        lambda x: F.max_pool2d(x, 2, return_indices=True),
        f(2, 3, 8, 9, dtype=torch.bfloat16),
        "bfloat16",
    ),
    Case("aten.avg_pool3d.default", lambda x: F.local_response_norm(x, 3), f(2, 5, 4, 4), "local response"),
    Case(AVG, lambda x: F.avg_pool2d(x, 2), f(2, 3, 8, 9, dtype=torch.float16), "float16", tolerance=1e-2),
    Case(AVG, lambda x: F.avg_pool1d(x, 3, 2, 1, True, False), f(2, 3, 10), "1d"),
    Case("aten.avg_pool3d.default", lambda x: F.avg_pool3d(x, 2, 2, 1), f(2, 3, 5, 6, 7)),
    Case("aten.avg_pool3d.default", lambda x: F.avg_pool3d(x, 3, 2, 1, True, False), f(2, 3, 5, 6, 7), "ceil"),
    Case(ADAPTIVE, lambda x: F.adaptive_avg_pool2d(x, (3, 4)), f(2, 3, 8, 9)),
    Case(ADAPTIVE, lambda x: F.adaptive_avg_pool2d(x, (2, 3)), f(2, 3, 8, 9), "whole windows", fixed=True),
    Case(
        ADAPTIVE,
        lambda x: F.adaptive_avg_pool2d(x, (5, 11)),
        f(2, 3, 8, 9),
        "larger than the input",
        fixed=True,
    ),
    Case(ADAPTIVE_WHOLE, lambda x: F.adaptive_avg_pool2d(x, (None, 4)), f(2, 3, 8, 9), "one dimension kept"),
    Case(ADAPTIVE, lambda x: F.adaptive_avg_pool2d(x, (1, 4)), f(3, 8, 9), "without batch"),
    Case(
        ADAPTIVE_WHOLE,
        lambda x: F.adaptive_avg_pool2d(x, (x.shape[2] // 2, 3)),
        f(2, 3, 8, 9),
        "output that varies",
    ),
    Case(ADAPTIVE, lambda x: F.adaptive_avg_pool1d(x, 5), f(2, 3, 8), "1d"),
    Case("aten._adaptive_avg_pool3d.default", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), f(2, 3, 5, 6, 7)),
    Case(ADAPTIVE_MAX, lambda x: F.adaptive_max_pool2d(x, (3, 4)), f(2, 3, 8, 9)),
    Case(ADAPTIVE_MAX, lambda x: F.adaptive_max_pool2d(x, (3, 4), True), f(2, 3, 8, 9), "indices"),
    Case(ADAPTIVE_MAX, lambda x: F.adaptive_max_pool2d(x, (3, 11), True), f(3, 8, 9), "indices, larger"),
    Case(ADAPTIVE_MAX, lambda x: F.adaptive_max_pool1d(x, 5, True), f(2, 3, 8), "1d"),
    Case(
        "aten.adaptive_max_pool3d.default",
        lambda x: F.adaptive_max_pool3d(x, (2, 3, 4), True),
        f(2, 3, 5, 6, 7),
    ),
    Case("aten.im2col.default", lambda x: F.unfold(x, 3), f(2, 3, 8, 9)),
    Case(
        "aten.im2col.default",
        lambda x: F.unfold(x, (3, 2), 2, (1, 0), (2, 1)),
        f(2, 3, 8, 9),
        "padded, dilated",
    ),
    Case("aten.im2col.default", lambda x: F.unfold(x, 2, stride=2), f(3, 8, 9), "without batch"),
    Case("aten.col2im.default", lambda x: F.fold(x, (5, 6), 2), f(2, 12, 20)),
    Case(
        "aten.col2im.default",
        lambda x: F.fold(x, (5, 6), (3, 2), 1, (1, 0), (2, 2)),
        f(12, 9),
        "padded, no batch",
    ),
    Case("aten.pixel_shuffle.default", lambda x: F.pixel_shuffle(x, 2), f(2, 8, 3, 4)),
    Case("aten.pixel_shuffle.default", lambda x: F.pixel_shuffle(x, 3), f(2, 1, 9, 3, 4), "more dimensions"),
    Case("aten.pixel_unshuffle.default", lambda x: F.pixel_unshuffle(x, 2), f(2, 3, 6, 8)),
    Case("aten.channel_shuffle.default", lambda x: F.channel_shuffle(x, 2), f(2, 6, 4, 5)),
]
