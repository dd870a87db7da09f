"""Cases of math_ops.cpp and compare_ops.cpp: arithmetic, comparison and logic of several tensors."""

import math

import torch

from . import Case

INF, NAN = math.inf, math.nan


def f(*shapes, dtype=torch.float32):
    return lambda: tuple(torch.randn(s).to(dtype) for s in shapes)


def pairs(xs, ys, dtype=torch.float32):
    """Every x with every y."""
    return lambda: (torch.tensor(xs, dtype=dtype)[:, None], torch.tensor(ys, dtype=dtype)[None, :])


def one(*values, dtype=torch.float32):
    return lambda: (torch.tensor(values, dtype=dtype).repeat(2, 1),)


WHOLE = ([-7, -6, -1, 0, 1, 5, 7], [-3, -2, -1, 1, 2, 3])
REAL = (
    [-7.5, -1.0, -0.3, 0.0, 0.3, 1.0, 6.0, 7.5, INF, -INF, NAN],
    [-2.5, -0.1, 0.0, 0.1, 1.5, 3.0, INF, -INF, NAN],
)
FINITE = ([-7.5, -1.0, -0.3, 0.0, 0.3, 1.0, 6.0, 7.5], [-2.5, -0.1, 0.1, 1.5, 3.0])
BITS = ([0, 1, 2, 3, 5, 8, 100, 255], [0, 1, 2, 3, 7, 15])

CASES = []
add = CASES.append

for name, fn in {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}.items():
    op = f"aten.{name}.Tensor"
    add(Case(op, fn, f((3, 4), (3, 4))))
    add(Case(op, fn, f((3, 1, 5), (4, 1)), "broadcast"))
    add(Case(op, fn, pairs(*REAL), "corners"))
    add(Case(op, fn, pairs(*WHOLE, dtype=torch.int64), "int64"))
    add(Case(op, fn, lambda: (torch.randn(3, 4), torch.arange(4)), "mixed"))
    add(Case(op, fn, lambda: (torch.randn(3, 4).half(), torch.randn(3, 4)), "half with float"))
    add(Case(op, fn, f((3, 4), (3, 4), dtype=torch.bfloat16), "bfloat16", tolerance=1e-1))
    add(Case(op, fn, f((3, 4), (3, 4), dtype=torch.float64), "float64", tolerance=1e-9))
    add(Case(op, lambda x, y, fn=fn: fn(x[:, :0], y), f((3, 4), (1,)), "empty"))
    add(Case(op, lambda x, fn=fn: fn(x, 2.5), f((3, 4)), "number"))
    add(Case(op, lambda x, fn=fn: fn(x, 3), lambda: (torch.arange(6),), "integer"))
    add(Case(op, lambda x, fn=fn: fn(x, 0.5), lambda: (torch.arange(6),), "integer with float"))
    add(Case(op, lambda x, fn=fn: fn(x, x.shape[0]), f((3, 4)), "size"))

CASES += [
    Case("aten.add.Tensor", lambda x, y: torch.add(x, y, alpha=-2), pairs(*WHOLE, dtype=torch.int64), "alpha"),
    Case(
        "aten.add.Tensor",
        lambda x, y: torch.add(x, y, alpha=0.5),
        f((3, 4), (4,), dtype=torch.float16),
        "alpha half",
        tolerance=1e-2,
    ),
    Case("aten.add.Tensor", lambda x, y: (x > 0) + (y > 0), f((3, 4), (4,)), "bool"),
    Case("aten.add.Tensor", lambda x, y: x + (y > 0), f((3, 4), (4,)), "float and bool"),
    Case("aten.add.Scalar", lambda x: torch.ops.aten.add.Scalar(x, 2, 3), f((3, 4))),
    Case("aten.sub.Scalar", lambda x: torch.ops.aten.sub.Scalar(x, 2, 3), f((3, 4))),
    Case("aten.mul.Scalar", lambda x: torch.ops.aten.mul.Scalar(x, 2.5), f((3, 4))),
    Case("aten.div.Scalar", lambda x: torch.ops.aten.div.Scalar(x, 4), lambda: (torch.arange(6),)),
    Case("aten.mul.Tensor", lambda x, y: (x > 0) * (y > 0), f((3, 4), (4,)), "bool"),
    Case("aten.sub.Tensor", lambda x, y: torch.sub(x, y, alpha=3), f((3, 4), (4,)), "alpha"),
    Case("aten.rsub.Scalar", lambda x: 1 - x, f((3, 4))),
    Case("aten.rsub.Scalar", lambda x: torch.rsub(x, 5, alpha=2), lambda: (torch.arange(6),), "alpha"),
    Case("aten.rsub.Scalar", lambda x: 1.5 - x, lambda: (torch.arange(6),), "integer"),
    Case("aten.rsub.Tensor", lambda x, y: torch.ops.aten.rsub.Tensor(x, y, alpha=2), f((3, 4), (4,))),
]

for mode in ("floor", "trunc", None):
    for kind, make in {
        "float": pairs(*REAL),
        "float64": pairs(*FINITE, dtype=torch.float64),
        "half": pairs(*FINITE, dtype=torch.float16),
        "int64": pairs(*WHOLE, dtype=torch.int64),
        "int32": pairs(*WHOLE, dtype=torch.int32),
        "uint8": pairs([0, 1, 7, 200], [1, 2, 3], dtype=torch.uint8),
    }.items():
        add(
            Case(
                "aten.div.Tensor_mode",
                lambda x, y, mode=mode: torch.div(x, y, rounding_mode=mode),
                make,
                f"{mode} {kind}",
                tolerance=1e-2 if kind == "half" else 1e-4,
            )
        )
    add(
        Case(
            "aten.div.Tensor_mode",
            lambda x, mode=mode: torch.div(x, -3, rounding_mode=mode),
            one(*WHOLE[0], dtype=torch.int64),
            f"{mode} number",
        )
    )
    add(
        Case(
            "aten.div.Scalar_mode",
            lambda x, mode=mode: torch.ops.aten.div.Scalar_mode(x, 0.1, rounding_mode=mode),
            one(1.0, 0.3, -1.0),
            f"{mode}",
        )
    )
for name, overload in {"floor_divide": "default", "remainder": "Tensor", "fmod": "Tensor"}.items():
    fn = getattr(torch, name)
    op = f"aten.{name}.{overload}"
    add(Case(op, fn, pairs(*REAL), "corners"))
    add(Case(op, fn, pairs(*FINITE, dtype=torch.float16), "half", tolerance=1e-2))
    add(Case(op, fn, pairs(*FINITE, dtype=torch.float64), "float64"))
    add(Case(op, fn, pairs(*WHOLE, dtype=torch.int64), "int64"))
    add(Case(op, fn, pairs(*WHOLE, dtype=torch.int16), "int16"))
    add(
        Case(
            op,
            lambda x, y, fn=fn: fn(x, y),
            lambda: (torch.arange(-5, 5), torch.tensor([1.5, -2.5])[:, None]),
            "mixed",
        )
    )
CASES += [
    Case("aten.floor_divide.default", lambda x: x // 2, one(*WHOLE[0], dtype=torch.int64), "number"),
    Case(
        "aten.floor_divide.Tensor",
        lambda x: x.clone().floor_divide_(x.shape[0]),
        one(*WHOLE[0], dtype=torch.int64),
    ),
    Case("aten.floor_divide.default", lambda x: x // 0.1, one(1.0, 0.3, -1.0, 0.0), "tenths"),
    Case("aten.floor_divide.default", lambda x: x // x.shape[0], one(*WHOLE[0], dtype=torch.int64), "size"),
    Case(
        "aten.floor_divide.Scalar",
        lambda x: torch.ops.aten.floor_divide.Scalar(x, 2),
        one(*WHOLE[0], dtype=torch.int64),
    ),
    Case("aten.remainder.Scalar", lambda x: x % 3, one(*WHOLE[0], dtype=torch.int64)),
    Case("aten.remainder.Scalar", lambda x: x % -3, one(*WHOLE[0], dtype=torch.int64), "negative"),
    Case("aten.remainder.Scalar", lambda x: x % 0.7, one(*REAL[0]), "float"),
    Case(
        "aten.remainder.Scalar_Tensor",
        lambda x: torch.ops.aten.remainder.Scalar_Tensor(7, x),
        one(*WHOLE[1], dtype=torch.int64),
    ),
    Case("aten.fmod.Scalar", lambda x: torch.fmod(x, -3), one(*WHOLE[0], dtype=torch.int64)),
    Case("aten.fmod.Scalar", lambda x: torch.fmod(x, 0.7), one(*REAL[0]), "float"),
]

for p in (0, 1, 2, 3, 5, 0.5, -0.5, -1, -2, 1.7):
    add(Case("aten.pow.Tensor_Scalar", lambda x, p=p: x**p, one(0.0, 0.5, 1.0, 2.5, 9.0, INF), f"{p}"))
    add(
        Case(
            "aten.pow.Tensor_Scalar",
            lambda x, p=p: x**p,
            lambda: (torch.rand(3, 4).bfloat16() + 0.5,),
            f"{p} bfloat16",
            tolerance=1e-1,
        )
    )
CASES += [
    Case("aten.pow.Tensor_Scalar", lambda x: x**3, one(-2, 0, 3, 2097151, dtype=torch.int64), "exact"),
    Case("aten.pow.Tensor_Scalar", lambda x: x**7, one(-2, 0, 3, dtype=torch.int8), "int8"),
    Case("aten.pow.Tensor_Scalar", lambda x: x**0.5, one(0, 1, 9, dtype=torch.int64), "int64 root"),
    Case("aten.pow.Tensor_Scalar", lambda x: x ** x.shape[1], one(0.5, 1.5, 2.0), "size"),
    Case("aten.pow.Tensor_Scalar", lambda x: x**3, one(-1.5, -2.0), "negative base"),
    Case("aten.pow.Scalar", lambda x: 2**x, one(0, 1, 5, 40, dtype=torch.int64)),
    Case("aten.pow.Scalar", lambda x: 10000**x, one(0.0, 0.5, 1.0, -1.0), "float"),
    Case("aten.pow.Scalar", lambda x: 0.5**x, one(0, 1, 5, dtype=torch.int64), "float base"),
    Case("aten.pow.Tensor_Tensor", torch.pow, pairs([0.0, 0.5, 2.0, INF], [0.0, 1.0, -1.0, 0.5])),
    Case("aten.pow.Tensor_Tensor", torch.pow, pairs([-3, 0, 1, 2], [0, 1, 3, 5], dtype=torch.int64), "int64"),
    Case(
        "aten.pow.Tensor_Tensor",
        torch.pow,
        pairs([-1, 1, 2], [-1, -2], dtype=torch.int64),
        "negative exponents",
    ),
    Case(
        "aten.pow.Tensor_Tensor",
        torch.pow,
        pairs([0.5, 2.0], [1.0, -1.0], dtype=torch.float16),
        "half",
        tolerance=1e-2,
    ),
]

for name in ("maximum", "minimum", "fmax", "fmin"):
    fn, op = getattr(torch, name), f"aten.{name}.default"
    add(Case(op, fn, pairs(*REAL), "corners"))
    for dtype in (torch.int64, torch.int16, torch.int8, torch.uint8):
        add(Case(op, fn, pairs([0, 1, 7, 100], [1, 2, 3], dtype=dtype), str(dtype)[6:]))
    add(Case(op, fn, pairs(*FINITE, dtype=torch.bfloat16), "bfloat16"))
    add(Case(op, lambda x, y, fn=fn: fn(x > 0, y > 0), f((3, 4), (4,)), "bool"))
CASES += [
    Case("aten.maximum.default", torch.max, f((3, 4), (4,)), "max.other"),
    Case("aten.clamp.default", lambda x: torch.clamp(x, -0.5, 0.5), one(INF, -INF, NAN, 0.1, 3.0)),
    Case("aten.clamp.default", lambda x: torch.clamp(x, min=0.5), f((3, 4)), "min"),
    Case("aten.clamp.default", lambda x: torch.clamp(x, max=0.5), f((3, 4)), "max"),
    Case("aten.clamp.default", lambda x: torch.clamp(x, 2, 1), f((3, 4)), "crossed"),
    Case("aten.clamp.default", lambda x: torch.clamp(x, -2, 2), lambda: (torch.arange(-5, 5),), "int64"),
    *[
        Case(op, function, lambda: (torch.arange(-20, 20) * 1_500_000_001,), "beyond 32 bits")
        for op, function in {
            "aten.clamp.default": lambda x: torch.clamp(x, -5_000_000_000, 3_000_000_000),
            "aten.clamp_min.default": lambda x: x.clamp_min(7),
            "aten.maximum.default": lambda x: torch.maximum(x, x.flip(0) // 3),
            "aten.minimum.default": lambda x: torch.minimum(x, x.flip(0) // 3),
            "aten.sign.default": torch.sign,
            "aten.amax.default": lambda x: x.view(-1, 4).amax(1),
            "aten.amin.default": lambda x: x.view(-1, 4).amin((0, 1), keepdim=True),
            "aten.max.default": lambda x: (x // 2).max(),
            "aten.cummax.default": lambda x: x.cummax(0),
        }.items()
    ],
    Case("aten.clamp.default", lambda x: torch.clamp(x, -2, 2), lambda: (torch.arange(-5, 5).short(),), "int16"),
    Case(
        "aten.clamp.default",
        lambda x: torch.clamp(x, -1.5, 2.5),
        lambda: (torch.arange(-5, 5),),
        "int64 by float",
    ),
    Case("aten.clamp.default", lambda x: torch.clamp(x, -0.5, 0.5), f((3, 4), dtype=torch.bfloat16), "bfloat16"),
    Case(
        "aten.clamp.default",
        lambda x: torch.clamp(x, 0, x.shape[0] - 1),
        lambda: (torch.arange(-5, 5),),
        "size",
    ),
    Case("aten.clamp.Tensor", lambda x, a, c: torch.clamp(x, a, c), f((3, 4), (4,), (3, 1))),
    Case("aten.clamp.Tensor", lambda x, a: torch.clamp(x, min=a), f((3, 4), (4,)), "min"),
    Case("aten.clamp_min.default", lambda x: torch.clamp_min(x, 0.1), one(INF, -INF, NAN, 0.0)),
    Case("aten.clamp_max.default", lambda x: torch.clamp_max(x, 0.1), one(INF, -INF, NAN, 0.0)),
    Case("aten.clamp_min.Tensor", torch.clamp_min, f((3, 4), (4,))),
    Case("aten.clamp_max.Tensor", torch.clamp_max, f((3, 4), (4,))),
    Case(
        "aten.atan2.default",
        torch.atan2,
        pairs([-7.5, -1.0, 0.0, 0.3, INF, -INF, NAN], [-2.5, 0.0, 0.1, INF, -INF]),
    ),
    Case("aten.atan2.default", torch.atan2, pairs([0.0, -0.0, 2.0, -2.0], [0.0, -0.0, 3.0, -3.0]), "signs of zeros"),
    Case("aten.atan2.default", torch.atan2, f((3, 4), (4,), dtype=torch.float64), "float64"),
    Case("aten.atan2.default", torch.atan2, pairs(*WHOLE, dtype=torch.int64), "int64"),
    Case("aten.hypot.default", torch.hypot, pairs([-3.0, 0.0, 1e30, INF], [4.0, 0.0, -1e30])),
    Case("aten.lerp.Scalar", lambda x, y: torch.lerp(x, y, 0.3), f((3, 4), (3, 4))),
    Case("aten.lerp.Tensor", torch.lerp, f((3, 4), (3, 4), (4,))),
    Case("aten.addcmul.default", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), f((3, 4), (4,), (3, 1))),
    Case(
        "aten.addcmul.default",
        lambda x, y, z: torch.addcmul(x, y, z),
        f((3, 4), (4,), (3, 1), dtype=torch.bfloat16),
        "bfloat16",
        tolerance=1e-1,
    ),
    Case(
        "aten.addcdiv.default",
        lambda x, y, z: torch.addcdiv(x, y, z.exp(), value=-2),
        f((3, 4), (4,), (3, 1)),
    ),
    Case("aten.xlogy.Tensor", torch.xlogy, pairs([0.0, 1.0, -2.0, NAN], [0.0, 2.0, -1.0, INF, NAN])),
    Case("aten.xlogy.Tensor", torch.xlogy, pairs([0, 1, 2], [0, 2, 3], dtype=torch.int64), "int64"),
    Case("aten.xlogy.Scalar_Self", lambda x: torch.ops.aten.xlogy.Scalar_Self(2.0, x), one(0.0, 2.0)),
    Case("aten.xlogy.Scalar_Other", lambda x: torch.ops.aten.xlogy.Scalar_Other(x, 2.0), one(0.0, 2.0)),
    Case("aten.special_xlog1py.default", torch.special.xlog1py, pairs([0.0, 1.0, -2.0], [0.0, 2.0, -1.0])),
    Case("aten.copysign.Tensor", torch.copysign, pairs([-7.5, 0.0, 3.0, INF], [-2.0, -0.0, 0.0, 2.0])),
    Case("aten.copysign.Scalar", lambda x: torch.copysign(x, -2), one(-7.5, 3.0)),
    Case(
        "aten.logaddexp.default",
        torch.logaddexp,
        pairs([-100.0, 0.0, 100.0, INF, -INF], [0.0, 1.0, INF, -INF]),
    ),
    Case("aten.logaddexp2.default", torch.logaddexp2, pairs([-10.0, 0.0, 10.0, INF, -INF], [0.0, 1.0, -INF])),
    Case("aten.heaviside.default", torch.heaviside, pairs([-1.0, 0.0, 2.0], [0.5, 2.0])),
]

for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    fn = getattr(torch, name)
    add(Case(f"aten.{name}.Tensor", fn, pairs(*REAL), "corners"))
    add(Case(f"aten.{name}.Tensor", fn, pairs(*WHOLE, dtype=torch.int64), "int64"))
    add(Case(f"aten.{name}.Tensor", fn, pairs([1, 2], [2, 3], dtype=torch.bfloat16), "bfloat16"))
    add(Case(f"aten.{name}.Tensor", lambda x, y, fn=fn: fn(x > 0, y > 0), f((3, 4), (4,)), "bool"))
    add(Case(f"aten.{name}.Tensor", fn, lambda: (torch.arange(6), torch.rand(6) * 6), "mixed"))
    add(Case(f"aten.{name}.Scalar", lambda x, fn=fn: fn(x, 2), one(*WHOLE[0], dtype=torch.int64)))
    add(Case(f"aten.{name}.Scalar", lambda x, fn=fn: fn(x, 1.5), one(*WHOLE[0], dtype=torch.int64), "float"))
    add(
        Case(
            f"aten.{name}.Scalar",
            lambda x, fn=fn: fn(x, x.shape[0]),
            one(*WHOLE[0], dtype=torch.int64),
            "size",
        )
    )
    add(Case(f"aten.{name}.Scalar", lambda x, fn=fn: fn(x > 0, True), f((3, 4)), "bool"))

for name in ("and", "or", "xor"):
    fn = getattr(torch, f"bitwise_{name}")
    for dtype in (torch.int64, torch.int32, torch.uint8):
        add(Case(f"aten.bitwise_{name}.Tensor", fn, pairs(*BITS, dtype=dtype), str(dtype)[6:]))
    add(Case(f"aten.bitwise_{name}.Tensor", lambda x, y, fn=fn: fn(x > 0, y > 0), f((3, 4), (4,)), "bool"))
    scalar = getattr(torch.ops.aten, f"bitwise_{name}")
    add(
        Case(
            f"aten.bitwise_{name}.Scalar",
            lambda x, fn=scalar: fn.Scalar(x, 6),
            one(*BITS[0], dtype=torch.int64),
        )
    )
    add(
        Case(
            f"aten.bitwise_{name}.Scalar_Tensor",
            lambda x, fn=scalar: fn.Scalar_Tensor(6, x),
            one(*BITS[0], dtype=torch.int64),
        )
    )
    fn = getattr(torch, f"logical_{name}")
    add(Case(f"aten.logical_{name}.default", fn, pairs([0.0, 1.0, NAN], [0.0, 2.0])))
    add(Case(f"aten.logical_{name}.default", fn, pairs([0, 1, -3], [0, 2], dtype=torch.int64), "int64"))
for side, sign in {"left": "l", "right": "r"}.items():
    fn = getattr(torch, f"bitwise_{side}_shift")
    packet = getattr(torch.ops.aten, f"bitwise_{side}_shift")
    for dtype in (torch.int64, torch.int32, torch.int8, torch.uint8):
        low = 0 if dtype == torch.uint8 else -9
        make = pairs([low, 0, 1, 5, 100], [0, 1, 3], dtype=dtype)
        add(Case(f"aten.bitwise_{side}_shift.Tensor", fn, make, str(dtype)[6:]))
    add(
        Case(
            f"aten.bitwise_{side}_shift.Tensor_Scalar",
            lambda x, fn=packet: fn.Tensor_Scalar(x, 2),
            one(-9, 0, 5, dtype=torch.int64),
        )
    )
    add(
        Case(
            f"aten.bitwise_{side}_shift.Scalar_Tensor",
            lambda x, fn=packet: fn.Scalar_Tensor(100, x),
            one(0, 1, 5, dtype=torch.int64),
        )
    )
    packet = getattr(torch.ops.aten, f"__{sign}shift__")
    add(
        Case(
            f"aten.__{sign}shift__.Scalar",
            lambda x, fn=packet: fn.Scalar(x, 2),
            one(-9, 0, 5, dtype=torch.int64),
        )
    )
    add(
        Case(
            f"aten.__{sign}shift__.Tensor",
            lambda x, y, fn=packet: fn.Tensor(x, y),
            pairs([-9, 0, 5], [0, 2], dtype=torch.int64),
        )
    )
CASES += [
    Case("aten.where.self", torch.where, lambda: (torch.randn(3, 4) > 0, torch.randn(4), torch.randn(3, 1))),
    Case(
        "aten.where.self",
        lambda c, x: torch.where(c, x, 0),
        lambda: (torch.randn(3, 4) > 0, torch.arange(4)),
        "number",
    ),
    Case(
        "aten.where.self",
        lambda c, x: torch.where(c, x > 0, c),
        lambda: (torch.randn(3, 4) > 0, torch.randn(4)),
        "bool",
    ),
    Case(
        "aten.where.self",
        lambda c, x: torch.where(c, x, -INF),
        lambda: (torch.randn(3, 4) > 0, torch.randn(4).bfloat16()),
        "bfloat16",
    ),
    Case(
        "aten.masked_fill.Scalar",
        lambda c, x: x.masked_fill(c, -INF),
        lambda: (torch.randn(3, 4) > 0, torch.randn(3, 4)),
    ),
    Case(
        "aten.masked_fill.Scalar",
        lambda c, x: x.masked_fill(c, -100),
        lambda: (torch.randn(3, 4) > 0, torch.arange(12).reshape(3, 4)),
        "int64",
    ),
    Case(
        "aten.masked_fill.Tensor",
        lambda c, x, v: x.masked_fill(c, v),
        lambda: (torch.randn(3, 4) > 0, torch.randn(3, 4), torch.tensor(2.0)),
    ),
]
