"""Normalisations and norms."""

import torch
import torch.nn.functional as F

from . import Case


def f(*shape, dtype=torch.float32):
    return lambda: (torch.randn(*shape).to(dtype),)


def w(*shape, dtype=torch.float32):
    return torch.linspace(0.5, 1.5, torch.Size(shape).numel()).reshape(shape).to(dtype)


LAYER = "aten.layer_norm.default"
GROUP = "aten.group_norm.default"
BATCH = "aten.native_batch_norm.default"
INSTANCE = "aten.instance_norm.default"
VECTOR = "aten.linalg_vector_norm.default"
HALF, F64 = torch.float16, torch.float64

CASES = [
    Case(LAYER, lambda x: F.layer_norm(x, (8,), w(8), w(8)), f(2, 3, 8)),
    Case(LAYER, lambda x: F.layer_norm(x, (3, 8)), f(2, 3, 8), "two dimensions, no weight"),
    Case(LAYER, lambda x: F.layer_norm(x, x.shape[1:]), f(2, 3, 8), "shape that varies"),
    Case(LAYER, lambda x: F.layer_norm(x, (8,), None, w(8), 1e-3), f(2, 8), "bias only"),
    Case(
        LAYER,
        lambda x: F.layer_norm(x, (8,), w(8, dtype=HALF)),
        f(2, 8, dtype=HALF),
        "float16",
        tolerance=1e-2,
    ),
    Case(
        "aten.native_layer_norm.default",
        lambda x: torch.native_layer_norm(x, (8,), w(8), w(8), 1e-5),
        f(2, 3, 8),
    ),
    Case(
        "aten.native_layer_norm.default",
        lambda x: torch.native_layer_norm(x, (8,), w(8), w(8), 1e-5)[0],
        f(2, 3, 8),
        "first",
    ),
    Case("aten.rms_norm.default", lambda x: F.rms_norm(x, (8,), w(8)), f(2, 3, 8)),
    Case("aten.rms_norm.default", lambda x: F.rms_norm(x, (3, 8), None, 1e-3), f(2, 3, 8), "two dimensions"),
    Case(
        "aten.rms_norm.default",
        lambda x: F.rms_norm(x * 1e-3, (8,)),
        f(2, 8, dtype=HALF),
        "float16",
        tolerance=1e-2,
    ),
    Case(GROUP, lambda x: F.group_norm(x, 2, w(6), w(6)), f(2, 6, 4, 5)),
    Case(GROUP, lambda x: F.group_norm(x, 3, eps=1e-3), f(2, 6), "two dimensions"),
    Case(GROUP, lambda x: F.group_norm(x, 1, w(6)), f(2, 6, 5), "one group"),
    Case(GROUP, lambda x: F.group_norm(x, 3), f(2, 6, 5, dtype=torch.float64), "float64"),
    Case(GROUP, lambda x: F.group_norm(x, 3), f(2, 6, 5, dtype=torch.bfloat16), "bfloat16", tolerance=3e-2),
    Case(LAYER, lambda x: F.layer_norm(x, (8,)), f(2, 8, dtype=torch.bfloat16), "bfloat16", tolerance=3e-2),
    Case(GROUP, lambda x: F.group_norm(x, 3), f(2, 6, 5, dtype=HALF), "float16", tolerance=1e-2),
    Case(
        "aten.native_group_norm.default",
        lambda x: torch.native_group_norm(x, w(6), w(6), x.shape[0], 6, x.shape[2], 2, 1e-5),
        f(2, 6, 5),
    ),
    Case(BATCH, lambda x: F.batch_norm(x, w(3), w(3), w(3), w(3)), f(2, 3, 4, 5)),
    Case(BATCH, lambda x: F.batch_norm(x, w(3), w(3)), f(2, 3, 4), "no weight"),
    Case(BATCH, lambda x: F.batch_norm(x, w(3), w(3), eps=1e-2), f(4, 3), "two dimensions"),
    Case(
        BATCH,
        lambda x: F.batch_norm(x, w(3, dtype=F64), w(3, dtype=F64)),
        f(2, 3, 4, 5, dtype=F64),
        "float64",
    ),
    Case(BATCH, lambda x: F.batch_norm(x, None, None, w(3), w(3), True), f(2, 3, 4, 5), "batch statistics"),
    Case(
        BATCH,
        lambda x: F.batch_norm(x, w(3), w(3), training=True),
        f(2, 3, 4, 5),
        "training",
        error="training",
    ),
    Case(
        "aten._native_batch_norm_legit_no_training.default",
        lambda x: torch.ops.aten._native_batch_norm_legit_no_training(x, w(3), w(3), w(3), w(3), 0.1, 1e-5)[0],
        f(2, 3, 4),
        fixed=True,
    ),
    Case(
        "aten._native_batch_norm_legit.no_stats",
        lambda x: torch.ops.aten._native_batch_norm_legit.no_stats(x, w(3), w(3), True, 0.1, 1e-5),
        f(2, 3, 4),
        fixed=True,
    ),
    Case(INSTANCE, lambda x: F.instance_norm(x, weight=w(3), bias=w(3)), f(2, 3, 4, 5)),
    Case(INSTANCE, lambda x: F.instance_norm(x), f(2, 3, 4), "no weight"),
    Case(
        INSTANCE,
        lambda x: F.instance_norm(x, w(3), w(3), use_input_stats=False),
        f(2, 3, 4),
        "running statistics",
    ),
    Case(
        "aten._weight_norm_interface.default",
        lambda x, g: torch._weight_norm(x, g, 0),
        lambda: (torch.randn(4, 3, 5), torch.rand(4, 1, 1) + 0.5),
        fixed=True,
    ),
    Case(
        "aten._weight_norm_interface.default",
        lambda x, g: torch._weight_norm(x, g, 2),
        lambda: (torch.randn(4, 3, 5), torch.rand(1, 1, 5) + 0.5),
        "last",
        fixed=True,
    ),
    Case(VECTOR, lambda x: F.normalize(x, dim=-1), f(3, 4), "normalize"),
    Case(VECTOR, lambda x: torch.linalg.vector_norm(x), f(3, 4, 5)),
    Case(VECTOR, lambda x: torch.linalg.vector_norm(x, 1, dim=-1, keepdim=True), f(3, 4, 5), "order 1, keepdim"),
    Case(VECTOR, lambda x: torch.linalg.vector_norm(x, 3, dim=(0, -1)), f(3, 4, 5), "order 3"),
    Case(VECTOR, lambda x: torch.linalg.vector_norm(x, float("inf"), dim=1), f(3, 4, 5), "inf"),
    Case(VECTOR, lambda x: torch.linalg.vector_norm(x, float("-inf"), dim=1), f(3, 4, 5), "-inf"),
    Case(
        VECTOR,
        lambda x: torch.linalg.vector_norm(x, 0, dim=1),
        lambda: (torch.randn(3, 6).relu(),),
        "order 0",
    ),
    Case(VECTOR, lambda x: torch.linalg.vector_norm(x, 0.5, dim=1), f(3, 4), "order 0.5"),
    Case(VECTOR, lambda x: torch.linalg.vector_norm(x, 2, dim=1, dtype=torch.float64), f(3, 4), "dtype"),
    Case(
        VECTOR,
        lambda x: torch.linalg.vector_norm(x * 100, dim=1),
        f(3, 40, dtype=HALF),
        "float16",
        tolerance=1e-2,
    ),
    Case(VECTOR, lambda x: torch.linalg.vector_norm(x[0]), f(3), "no dimensions"),
    Case("aten.norm.ScalarOpt_dim", lambda x: torch.ops.aten.norm.ScalarOpt_dim(x, 2, [-1], True), f(3, 4)),
    Case("aten.norm.Scalar", lambda x: torch.ops.aten.norm.Scalar(x, 3), f(3, 4)),
]
