"""Cases of unary_ops.cpp and activation_ops.cpp: functions of one tensor."""

import math

import torch
import torch.nn.functional as F

from . import Case

INF, NAN = math.inf, math.nan
HALF = {torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.float64: 1e-6}


def floats(low, high, dtype=torch.float32):
    """Numbers spread over [low, high], the ends included, as [3, 8]."""
    return lambda: (torch.linspace(low, high, 24).reshape(3, 8).to(dtype),)


def special(*values, dtype=torch.float32):
    return lambda: (torch.tensor(values, dtype=dtype).repeat(2, 1),)


def ints(dtype=torch.int64):
    return lambda: (torch.arange(-12, 12).reshape(3, 8).to(dtype),)


CASES = []


def unary(op, fn, low=-3.0, high=3.0, corners=(INF, -INF, NAN, 0.0), integer=True, single=False, tolerance=1e-4):
    """float32 with corners, the other floats, integers where PyTorch promotes them, a 0-d and an empty tensor."""
    CASES.append(Case(op, fn, floats(low, high), tolerance=tolerance))
    if corners:
        CASES.append(Case(op, fn, special(*corners, 1.0 if low <= 1 <= high else high), "corners", tolerance=tolerance))
    for dtype, limit in HALF.items():
        limit = max(limit, tolerance)
        if single and dtype == torch.float64:
            limit = 1e-4
        CASES.append(Case(op, fn, floats(low, high, dtype), str(dtype)[6:], tolerance=limit))
    CASES.append(
        Case(op, fn, lambda: (torch.tensor(low + 0.75 * (high - low)),), "0-d", fixed=True, tolerance=tolerance)
    )
    CASES.append(Case(op, lambda x: fn(x[:, :0]), floats(low, high), "empty"))
    if integer:
        whole = lambda: (torch.arange(int(max(low, -12)), int(high) + 1).repeat(2, 1),)  # noqa: E731
        CASES.append(Case(op, fn, whole, "int64", tolerance=tolerance))


unary("aten.abs.default", torch.abs)
unary("aten.acos.default", torch.acos, -1, 1, (2.0, -2.0, NAN), single=True)
unary("aten.acosh.default", torch.acosh, 1, 9, (0.5, INF, NAN))
unary("aten.asin.default", torch.asin, -1, 1, (2.0, -2.0, NAN), single=True)
unary("aten.asinh.default", torch.asinh)
unary("aten.atan.default", torch.atan, single=True)
unary("aten.atanh.default", torch.atanh, -0.9, 0.9, (1.0, -1.0, 2.0, NAN))
unary("aten.ceil.default", torch.ceil)
unary("aten.cos.default", torch.cos, -40, 40)
unary("aten.cosh.default", torch.cosh)
unary("aten.deg2rad.default", torch.deg2rad, -360, 360)
unary("aten.digamma.default", torch.digamma, -4.3, 9, (0.0, -2.0, 0.5, 1e6))
unary("aten.erf.default", torch.erf, single=True)
unary("aten.erfc.default", torch.erfc, single=True)
unary("aten.erfinv.default", torch.erfinv, -0.999, 0.999, (1.0, -1.0, 2.0, 0.0), single=True)
unary("aten.exp.default", torch.exp)
unary("aten.exp2.default", torch.exp2)
unary("aten.expm1.default", torch.expm1, corners=(INF, -INF, NAN, 1e-6))
unary("aten.floor.default", torch.floor)
unary("aten.frac.default", torch.frac, integer=False)
unary("aten.lgamma.default", torch.lgamma, -4.3, 9, (0.0, -2.0, 0.5, 1e6, INF))
unary("aten.log.default", torch.log, 0.01, 9, (0.0, -1.0, INF, NAN))
unary("aten.log10.default", torch.log10, 0.01, 9, (0.0, -1.0, INF, NAN))
unary("aten.log1p.default", torch.log1p, -0.9, 9, (-1.0, -2.0, INF, NAN, 1e-9))
unary("aten.log2.default", torch.log2, 0.01, 9, (0.0, -1.0, INF, NAN))
unary("aten.logit.default", torch.logit, 0.01, 0.99, (0.0, 1.0, -1.0, NAN))
unary("aten.nan_to_num.default", torch.nan_to_num)
unary("aten.neg.default", torch.neg)
unary("aten.rad2deg.default", torch.rad2deg)
unary("aten.reciprocal.default", torch.reciprocal, 0.1, 3)
unary("aten.round.default", torch.round, corners=(0.5, 1.5, 2.5, -0.5, -1.5, INF, NAN))
unary("aten.rsqrt.default", torch.rsqrt, 0.1, 9, (0.0, -1.0, INF, NAN))
unary("aten.sgn.default", torch.sgn, corners=(INF, -INF, 0.0))
unary("aten.sigmoid.default", torch.sigmoid)
unary("aten.sign.default", torch.sign, corners=(INF, -INF, 0.0))
unary("aten.signbit.default", torch.signbit, corners=(INF, -INF, 0.0, -0.0))
unary("aten.sin.default", torch.sin, -40, 40)
unary("aten.sinh.default", torch.sinh)
unary("aten.sqrt.default", torch.sqrt, 0, 9, (-1.0, INF, NAN))
unary("aten.tan.default", torch.tan, -1.4, 1.4)
unary("aten.tanh.default", torch.tanh)
unary("aten.trunc.default", torch.trunc)
unary("aten.isinf.default", torch.isinf)
unary("aten.isnan.default", torch.isnan)
unary("aten.isneginf.default", torch.isneginf)
unary("aten.isposinf.default", torch.isposinf)
unary("aten.angle.default", torch.angle)

unary("aten.celu.default", lambda x: torch.celu(x, 0.7), integer=False)
unary("aten.elu.default", F.elu, integer=False)
unary("aten.elu.default", lambda x: F.elu(x, 0.5), integer=False)
unary("aten.gelu.default", F.gelu, integer=False, single=True, corners=(NAN, 0.0))
unary("aten.gelu.default", lambda x: F.gelu(x, approximate="tanh"), integer=False, corners=(INF, NAN, 0.0))
unary("aten.hardshrink.default", F.hardshrink, integer=False)
unary("aten.hardsigmoid.default", F.hardsigmoid, -5, 5, integer=False)
unary("aten.hardswish.default", F.hardswish, -5, 5, integer=False, corners=(INF, NAN, 0.0))
unary("aten.hardtanh.default", lambda x: F.hardtanh(x, -0.5, 2))
unary("aten.leaky_relu.default", lambda x: F.leaky_relu(x, 0.2), integer=False)
unary("aten.log_sigmoid_forward.default", F.logsigmoid, -30, 30, integer=False)
unary("aten.mish.default", F.mish, integer=False, corners=(INF, NAN, 0.0))
unary("aten.relu.default", torch.relu)
unary("aten.silu.default", F.silu, integer=False, corners=(INF, NAN, 0.0))
unary("aten.softplus.default", F.softplus, -30, 30, integer=False)
unary("aten.softplus.default", lambda x: F.softplus(x, 2, 5), -30, 30, integer=False)
unary("aten.softshrink.default", F.softshrink, integer=False)
unary("aten.threshold.default", lambda x: F.threshold(x, 0.5, -7))

CASES += [
    Case("aten.abs.default", torch.abs, ints(torch.int32), "int32"),
    Case("aten.bitwise_not.default", torch.bitwise_not, ints(), "int64"),
    Case("aten.bitwise_not.default", torch.bitwise_not, ints(torch.uint8), "uint8"),
    Case("aten.bitwise_not.default", lambda x: ~(x > 0), ints(), "bool"),
    Case("aten.isnan.default", lambda x: torch.isnan(x > 0), ints(), "bool"),
    Case("aten.log2.default", lambda x: torch.log2(2.0**x).floor(), lambda: (torch.arange(1.0, 25.0),), "whole"),
    Case(
        "aten.log10.default",
        lambda x: torch.log10(x).floor(),
        special(1.0, 10.0, 100.0, 1000.0, 1e6),
        "whole",
    ),
    Case("aten.logical_not.default", torch.logical_not, ints()),
    Case("aten.logical_not.default", torch.logical_not, special(0.0, 0.5, NAN, -0.0), "nan"),
    Case("aten.logit.default", lambda x: torch.logit(x, 1e-3), special(0.0, 1.0, 0.5, 0.9995), "eps"),
    Case(
        "aten.nan_to_num.default",
        lambda x: torch.nan_to_num(x, 1.0, 2.0, -2.0),
        special(NAN, INF, -INF, 5.0),
        "given",
    ),
    Case("aten.neg.default", torch.neg, ints(torch.uint8), "uint8"),
    Case("aten.relu.default", torch.relu, ints(torch.int32), "int32"),
    Case("aten.relu.default", torch.relu, ints(torch.int8), "int8"),
    Case("aten.round.decimals", lambda x: torch.round(x, decimals=2), floats(-9, 9)),
    Case("aten.round.decimals", lambda x: torch.round(x, decimals=-2), floats(-900, 900), "negative"),
    Case("aten.sign.default", lambda x: torch.sign(x > 0), ints(), "bool"),
    Case("aten.sign.default", torch.sign, ints(), "int64"),
    Case("aten.glu.default", F.glu, lambda: (torch.randn(3, 4, 10),)),
    Case(
        "aten.glu.default",
        lambda x: F.glu(x, 1),
        lambda: (torch.randn(3, 4, 5).half(),),
        "dim",
        tolerance=1e-2,
    ),
    Case(
        "aten._prelu_kernel.default",
        lambda x, w: F.prelu(x, w),
        lambda: (torch.randn(3, 4, 5), torch.rand(4)),
    ),
    Case(
        "aten._prelu_kernel.default",
        lambda x, w: F.prelu(x, w),
        lambda: (torch.randn(3, 4), torch.rand(1)),
        "one",
    ),
]
