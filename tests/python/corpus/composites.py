"""Cases of rows that PyTorch takes apart before a recording sees them: recorded whole, as exported programs have them."""

import math

import torch
import torch.nn.functional as F

from . import Case

NAN, INF = math.nan, math.inf
T = torch.Tensor


def f(*shapes, dtype=torch.float32):
    return lambda: tuple(torch.randn(*s).to(dtype) for s in shapes)


def whole(op, function, make, name="", call=None):
    """`function` is what the model calls, `call` how (the function itself unless said)."""
    return Case(op, call or (lambda *args: function(*args)), make, name, keep=function)


X, XY = f((3, 4)), f((3, 4), (3, 4))
corners = lambda: (torch.tensor([[NAN, INF, -INF, 1.0, 0.0]]).repeat(2, 1),)  # noqa: E731
near = lambda: (torch.tensor([1.0, NAN, INF, 5.0]), torch.tensor([1.0 + 1e-7, NAN, INF, 6.0]))  # noqa: E731
bits = lambda: (torch.arange(8), torch.arange(8) * 3)  # noqa: E731

CASES = [
    whole("aten.cdist.default", torch._VF.cdist, f((3, 4), (5, 4)), call=torch.cdist),
    whole("aten.clip.default", torch.clip, X, call=lambda x: torch.clip(x, -0.5, 0.5)),
    whole("aten.clip.Tensor", torch.clip, f((3, 4), (4,), (4,))),
    whole("aten.cross.default", torch.cross, f((3, 4), (3, 4))),
    whole("aten.divide.Tensor", torch.divide, XY),
    whole("aten.dropout.default", torch.dropout, X, call=lambda x: torch.dropout(x, 0.5, False)),
    whole("aten.float_power.Tensor_Scalar", torch.float_power, X, call=lambda x: torch.float_power(x, 2)),
    whole("aten.float_power.Scalar", torch.float_power, X, call=lambda x: torch.float_power(2, x)),
    whole("aten.float_power.Tensor_Tensor", torch.float_power, lambda: (torch.rand(3) + 1, torch.randn(3))),
    whole("aten.ger.default", torch.ger, f((3,), (4,))),
    whole("aten.isclose.default", torch.isclose, near),
    whole("aten.isclose.default", torch.isclose, near, "nan", lambda x, y: torch.isclose(x, y, equal_nan=True)),
    whole("aten.isfinite.default", torch.isfinite, corners),
    whole("aten.isfinite.default", torch.isfinite, lambda: (torch.arange(4),), "int64"),
    whole("aten.log_sigmoid.default", F.logsigmoid, X),
    whole("aten.max.other", torch.max, XY),
    whole("aten.min.other", torch.min, XY),
    whole("aten.multiply.Tensor", torch.multiply, XY),
    whole("aten.nanmean.default", torch.nanmean, corners, call=lambda x: torch.nanmean(x[:, :1] * 0 + 1, 1)),
    whole("aten.outer.default", torch.outer, f((3,), (4,))),
    whole("aten.positive.default", torch.positive, X),
    whole("aten.prelu.default", torch.prelu, f((3, 4, 5), (4,))),
    whole("aten.relu6.default", torch._C._nn.relu6, X),
    whole("aten.selu.default", torch.selu, X),
    whole("aten.square.default", torch.square, X),
    whole("aten.square.default", torch.square, lambda: (torch.arange(4),), "int64"),
    whole("aten.subtract.Tensor", torch.subtract, XY, call=lambda x, y: torch.subtract(x, y, alpha=2)),
    whole("aten.true_divide.Tensor", torch.true_divide, XY),
    whole("aten.type_as.default", T.type_as, lambda: (torch.randn(3), torch.arange(3))),
    whole("aten.__and__.Tensor", T.__and__, bits),
    whole("aten.__and__.Scalar", T.__and__, bits, call=lambda x, y: T.__and__(x + y, 5)),
    whole("aten.__or__.Tensor", T.__or__, bits),
    whole("aten.__or__.Scalar", T.__or__, bits, call=lambda x, y: T.__or__(x + y, 5)),
    whole("aten.__xor__.Tensor", T.__xor__, bits),
    whole("aten.__xor__.Scalar", T.__xor__, bits, call=lambda x, y: T.__xor__(x + y, 5)),
]
for name in ("var", "std", "var_mean", "std_mean"):
    fn = getattr(torch, name)
    CASES += [
        whole(f"aten.{name}.default", fn, X, call=lambda x, fn=fn: fn(x, False)),
        whole(f"aten.{name}.dim", fn, X, call=lambda x, fn=fn: fn(x, [1], unbiased=True, keepdim=True)),
    ]
for overload, call in {
    "Scalar": lambda x: torch.where(x > 0, 1.5, 2.5),
    "ScalarSelf": lambda x: torch.where(x > 0, 1.5, x),
    "ScalarOther": lambda x: torch.where(x > 0, x, -1),
}.items():
    CASES.append(whole(f"aten.where.{overload}", torch.where, X, call=call))
