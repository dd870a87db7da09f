"""Cases of create_ops.cpp and convert_ops.cpp: tensors from sizes and numbers, and changes of type."""

import math

import torch

from . import Case

INF, NAN = math.inf, math.nan


def f(*shape, dtype=torch.float32):
    return lambda: (torch.randn(*shape).to(dtype),)


def row(*values, dtype=torch.float32):
    return lambda: (torch.tensor(values, dtype=dtype).repeat(2, 1),)


n = lambda x: x.shape[0]  # noqa: E731

CASES = [
    Case("aten.arange.default", lambda x: torch.arange(n(x)), f(5)),
    Case("aten.arange.default", lambda x: torch.arange(n(x), dtype=torch.float32), f(5), "float32"),
    Case("aten.arange.default", lambda x: torch.arange(n(x), dtype=torch.float16), f(5), "float16"),
    Case("aten.arange.default", lambda x: torch.arange(n(x), dtype=torch.int32), f(5), "int32"),
    Case("aten.arange.start", lambda x: torch.arange(2, n(x) + 4), f(5)),
    Case("aten.arange.start", lambda x: torch.arange(-1.5, n(x)), f(5), "float"),
    Case("aten.arange.start_step", lambda x: torch.arange(0, 2 * n(x), 3), f(5)),
    Case("aten.arange.start_step", lambda x: torch.arange(n(x), 0, -1), f(5), "down"),
    Case("aten.arange.start_step", lambda x: torch.arange(0, n(x), 2, dtype=torch.float32), f(5), "float32"),
    Case("aten.arange.start_step", lambda x: torch.arange(0.0, n(x), 0.5), f(5), "half steps"),
    Case("aten.empty.memory_format", lambda x: torch.empty(n(x), 2).zero_(), f(5)),
    Case("aten.empty_like.default", lambda x: torch.empty_like(x).fill_(2), f(5)),
    Case("aten.empty_strided.default", lambda x: torch.empty_strided((n(x), 2), (2, 1)).fill_(2), f(5)),
    Case("aten.empty_permuted.default", lambda x: torch.empty_permuted((n(x), 2), (1, 0)).fill_(2), f(5)),
    Case("aten.eye.default", lambda x: torch.eye(n(x)), f(5)),
    Case("aten.eye.default", lambda x: torch.eye(n(x), dtype=torch.bool), f(5), "bool"),
    Case("aten.eye.m", lambda x: torch.eye(n(x), 3, dtype=torch.int64), f(5)),
    Case("aten.fill.Scalar", lambda x: torch.fill(x, 3), f(5)),
    Case("aten.fill.Tensor", lambda x: torch.fill(x, x.sum()), f(5)),
    Case("aten.full.default", lambda x: torch.full((n(x), 2), 2.5), f(5)),
    Case("aten.full.default", lambda x: torch.full((2, n(x)), 7), f(5), "int64"),
    Case("aten.full.default", lambda x: torch.full((2, n(x)), 2**62 + 1), f(5), "large"),
    Case("aten.full.default", lambda x: torch.full((2, n(x)), True), f(5), "bool"),
    Case("aten.full.default", lambda x: torch.full((2,), n(x)), f(5), "size"),
    Case("aten.full.default", lambda x: torch.full((n(x), 2), -INF, dtype=torch.bfloat16), f(5), "bfloat16"),
    Case(
        "aten.full.default",
        lambda x: torch.full((n(x), 2), torch.finfo(torch.float16).min, dtype=torch.float16),
        f(5),
        "float16",
    ),
    Case("aten.full_like.default", lambda x: torch.full_like(x, NAN), f(5)),
    Case("aten.linspace.default", lambda x: torch.linspace(0, 1, n(x)), f(5)),
    Case("aten.linspace.default", lambda x: torch.linspace(-1, n(x), 7), f(5), "size"),
    Case("aten.linspace.default", lambda x: torch.linspace(0, 10, n(x), dtype=torch.int64), f(5), "int64"),
    Case("aten.linspace.default", lambda x: torch.linspace(3, 9, 1) + x, f(5), "one"),
    Case("aten.linspace.Scalar_Tensor", lambda x: torch.linspace(0, x.sum(), n(x)), f(5)),
    Case("aten.linspace.Tensor_Scalar", lambda x: torch.linspace(x.sum(), 1, n(x)), f(5)),
    Case("aten.linspace.Tensor_Tensor", lambda x: torch.linspace(x.min(), x.max(), n(x)), f(5)),
    Case("aten.logspace.default", lambda x: torch.logspace(0, 2, n(x)), f(5)),
    Case("aten.logspace.Scalar_Tensor", lambda x: torch.logspace(0, x.abs().max(), n(x), base=2), f(5)),
    Case("aten.logspace.Tensor_Scalar", lambda x: torch.logspace(x.abs().max(), 1, n(x), base=2), f(5)),
    Case("aten.logspace.Tensor_Tensor", lambda x: torch.logspace(x.min(), x.max(), n(x), base=2), f(5)),
    Case("aten.new_empty.default", lambda x: x.new_empty(n(x), 2).fill_(1), f(5)),
    Case("aten.new_empty_strided.default", lambda x: x.new_empty_strided((n(x), 2), (2, 1)).fill_(1), f(5)),
    Case("aten.new_full.default", lambda x: x.new_full((n(x), 2), 3), f(5)),
    Case("aten.new_ones.default", lambda x: x.new_ones(n(x), 2, dtype=torch.bool), f(5)),
    Case("aten.new_zeros.default", lambda x: x.new_zeros((n(x), 2)), f(5)),
    Case("aten.ones.default", lambda x: torch.ones(n(x), 2, dtype=torch.int64), f(5)),
    Case("aten.ones_like.default", lambda x: torch.ones_like(x), f(5, dtype=torch.bfloat16)),
    Case("aten.scalar_tensor.default", lambda x: torch.ops.aten.scalar_tensor(n(x) * 0.5) + x, f(5)),
    Case("aten.zero.default", lambda x: torch.ops.aten.zero(x), f(5)),
    Case("aten.zeros.default", lambda x: torch.zeros(n(x), 2), f(5)),
    Case("aten.zeros.default", lambda x: torch.zeros(n(x), 0), f(5), "empty"),
    Case("aten.zeros_like.default", lambda x: torch.zeros_like(x, dtype=torch.bool), f(5)),
    Case("aten.lift_fresh.default", lambda x: torch.tensor([n(x), n(x) * 2]), f(5)),
    Case("aten.lift_fresh.default", lambda x: torch.tensor([[n(x) * 0.5], [3.0]]), f(5), "float"),
]

TYPES = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.int64,
    torch.int32,
    torch.int8,
    torch.uint8,
    torch.bool,
]
for source in TYPES:
    for target in TYPES:
        if source == target:
            continue
        values = (0, 1, 2, 100) if source in (torch.uint8, torch.bool) else (-3, 0, 1, 100)
        if source.is_floating_point and target != torch.uint8:
            values += (2.75, -2.75)
        if source.is_floating_point and (target == torch.bool or target.is_floating_point):
            values += (NAN, INF)
        if target == torch.uint8:
            values = tuple(v for v in values if v >= 0)
        label = f"{str(source)[6:]} to {str(target)[6:]}"
        CASES.append(Case("aten._to_copy.default", lambda x, t=target: x.to(t), row(*values, dtype=source), label))
CASES += [
    Case("aten.copy.default", lambda x: torch.ops.aten.copy(x, x[0]), f(3, 4)),
    Case(
        "aten.copy.default",
        lambda x: torch.ops.aten.copy(torch.zeros(n(x), 4, dtype=torch.int64), x * 3),
        f(3, 4),
        "int64",
    ),
    Case("aten.view.dtype", lambda x: x.view(torch.uint8), row(-3, 5, dtype=torch.int8)),
    Case("aten.view.dtype", lambda x: (x > 0).view(torch.uint8), f(3), "bool"),
    Case("aten.view.dtype", lambda x: x.view(torch.int32), f(3), "bits", error="cannot read the bytes"),
]
