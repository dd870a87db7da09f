"""Cases of reduce_ops.cpp and product_ops.cpp: reductions, products and distances."""

import math

import torch

from . import Case

INF, NAN = math.inf, math.nan


def f(*shapes, dtype=torch.float32):
    return lambda: tuple(torch.randn(s).to(dtype) for s in shapes)


def i(*shapes, dtype=torch.int64):
    return lambda: tuple(torch.randint(-5, 6, s).to(dtype) for s in shapes)


def table(*rows, dtype=torch.float32):
    return lambda: (torch.tensor(rows, dtype=dtype),)


CASES = []
add = CASES.append


def reduction(name, dim, default="default", integers=True, halves=True, keepdim=True, whole=None, tolerance=1e-4):
    """One dim, negative dims, keepdim, several dims, everything, other dtypes, 0-d and empty tensors."""
    fn = getattr(torch, name)
    if name == "count_nonzero":
        fn = lambda x, dim: torch.count_nonzero(x, dim if isinstance(dim, tuple) else (dim,))  # noqa: E731
    op = f"aten.{name}.{dim}"
    listed = dim not in ("dim_int",)
    add(Case(op, lambda x: fn(x, 1), f((3, 4, 5)), tolerance=tolerance))
    add(Case(op, lambda x: fn(x, -1), f((3, 4, 5)), "negative", tolerance=tolerance))
    if keepdim:
        add(Case(op, lambda x: fn(x, 0, keepdim=True), f((3, 4)), "keepdim", tolerance=tolerance))
    if listed and name not in ("any", "all"):
        add(Case(op, lambda x: fn(x, (0, -1)), f((3, 4, 5)), "two", tolerance=tolerance))
    add(Case(op, lambda x: fn(x, 0), lambda: (torch.tensor(2.0),), "0-d", fixed=True, tolerance=tolerance))
    if name not in ("amax", "amin"):
        add(Case(op, lambda x: fn(x[:, :0], 1), f((3, 4)), "empty"))
    if integers:
        for dtype in (torch.int64, torch.int32, torch.uint8, torch.bool):
            add(
                Case(
                    op,
                    lambda x: fn(x, 1),
                    lambda dtype=dtype: (torch.randint(0, 3, (3, 4)).to(dtype),),
                    str(dtype)[6:],
                )
            )
    if halves:
        for dtype, limit in {torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.float64: 1e-6}.items():
            add(Case(op, lambda x: fn(x, 1), f((3, 4), dtype=dtype), str(dtype)[6:], tolerance=limit))
    if default:
        other = f"aten.{name}.{default}"
        add(Case(other, lambda x: fn(x), f((3, 4, 5)), "all", tolerance=tolerance))
        add(
            Case(
                other,
                lambda x: fn(x),
                lambda: (torch.tensor(2.0),),
                "all 0-d",
                fixed=True,
                tolerance=tolerance,
            )
        )


reduction("sum", "dim_IntList")
reduction("mean", "dim", integers=False)
reduction("prod", "dim_int")
reduction("amax", "default", default="")
reduction("amin", "default", default="")
reduction("any", "dim")
reduction("all", "dim")
reduction("logsumexp", "default", default="", integers=False)
reduction("nansum", "default", default="", integers=False)
reduction("count_nonzero", "dim_IntList", default="", keepdim=False)

CASES += [
    Case("aten.sum.dim_IntList", lambda x: x.sum(1, dtype=torch.float64), i((3, 4)), "dtype"),
    Case("aten.sum.dim_IntList", lambda x: x.sum(1), table([1.0, INF], [NAN, 1.0], [INF, -INF]), "corners"),
    Case("aten.sum.default", lambda x: (x > 0).sum(), f((3, 4)), "bool"),
    Case("aten.mean.dim", lambda x: x.mean(1, dtype=torch.float32), i((3, 4)), "dtype"),
    Case("aten.mean.default", lambda x: x.mean(), f((3, 4), dtype=torch.bfloat16), "bfloat16", tolerance=1e-1),
    Case(
        "aten.prod.dim_int",
        lambda x: x.prod(1),
        table([2**31, 2**31 + 1], [3, -5], dtype=torch.int64),
        "exact",
        fixed=True,
    ),
    Case("aten.prod.dim_int", lambda x: x.prod(-1, keepdim=True), i((2, 3)), "exact keepdim", fixed=True),
    Case("aten.prod.default", lambda x: x.prod(), i((3, 4)), "int64", fixed=True),
    Case("aten.amax.default", lambda x: x.amax(1), i((3, 4), dtype=torch.int16), "int16"),
    Case("aten.amax.default", lambda x: x.amax(), f((3, 4)), "all"),
    Case("aten.amax.default", lambda x: x.amax(1), table([2**62 + 1, 2**62], dtype=torch.int64), "large"),
    Case("aten.amin.default", lambda x: x.amin((1, 2)), f((3, 4, 5)), "inner"),
    Case("aten.aminmax.default", torch.aminmax, f((3, 4))),
    Case("aten.aminmax.default", lambda x: torch.aminmax(x, dim=1, keepdim=True), i((3, 4)), "dim"),
    Case("aten.max.default", torch.max, f((3, 4))),
    Case("aten.max.default", torch.max, i((3, 4)), "int64"),
    Case("aten.max.default", torch.max, f((3, 4), dtype=torch.bfloat16), "bfloat16"),
    Case("aten.max.default", lambda x: torch.max(x > 0), f((3, 4)), "bool"),
    Case("aten.min.default", torch.min, f((3, 4))),
    Case("aten.min.default", torch.min, i((3, 4), dtype=torch.int32), "int32"),
    Case("aten.any.dims", lambda x: torch.any(x > 0, (0, 2)), f((3, 4, 5))),
    Case("aten.all.dims", lambda x: torch.all(x > 0, (0, -1), keepdim=True), f((3, 4, 5))),
    Case("aten.any.default", torch.any, table([0.0, NAN]), "nan"),
    Case("aten.any.default", lambda x: torch.any(x[:0] > 0), f((3, 4)), "empty"),
    Case("aten.all.default", lambda x: torch.all(x[:0] > 0), f((3, 4)), "empty"),
    Case("aten._is_all_true.default", lambda x: torch._is_all_true(x > 0), f((3, 4))),
    Case("aten._is_any_true.default", lambda x: torch._is_any_true(x > 9), f((3, 4))),
    Case(
        "aten.logsumexp.default",
        lambda x: x.logsumexp(1),
        table([-INF, -INF], [INF, 1.0], [1e3, 1e3], [-INF, 1.0]),
        "corners",
    ),
    Case("aten.nansum.default", lambda x: x.nansum(1), table([1.0, NAN], [NAN, NAN]), "nan"),
    Case("aten.count_nonzero.default", torch.count_nonzero, table([0.0, NAN, 2.0])),
]
for name in ("var", "std", "var_mean", "std_mean"):
    fn, op = getattr(torch, name), f"aten.{name}.correction"
    CASES += [
        Case(op, lambda x, fn=fn: fn(x), f((3, 4))),
        Case(op, lambda x, fn=fn: fn(x, 1), f((3, 4, 5)), "dim"),
        Case(op, lambda x, fn=fn: fn(x, (0, -1), correction=0, keepdim=True), f((3, 4, 5)), "biased"),
        Case(op, lambda x, fn=fn: fn(x, 1, correction=2), f((3, 4), dtype=torch.float64), "float64"),
        Case(
            op,
            lambda x, fn=fn: fn(x, -1, unbiased=False),
            f((3, 4), dtype=torch.bfloat16),
            "bfloat16",
            tolerance=1e-1,
        ),
        Case(op, lambda x, fn=fn: fn(x, 1), f((3, 1)), "one", fixed=True),
        Case(
            op,
            lambda x, fn=fn: fn(x, 1, correction=0),
            lambda: (torch.randn(3, 4) + 1e3,),
            "far",
            tolerance=1e-3,
        ),
    ]

CASES += [
    Case("aten.addmv.default", lambda x, m, v: torch.addmv(x, m, v, beta=0.5, alpha=2), f((3,), (3, 4), (4,))),
    Case("aten.addr.default", lambda x, v, w: torch.addr(x, v, w, beta=0.5, alpha=2), f((3, 4), (3,), (4,))),
    Case(
        "aten.addbmm.default",
        lambda x, v, w: torch.addbmm(x, v, w, beta=0.5, alpha=2),
        f((3, 5), (2, 3, 4), (2, 4, 5)),
    ),
    Case("aten.dist.default", torch.dist, f((3, 4), (4,))),
    Case("aten.dist.default", lambda x, y: torch.dist(x, y, 3), f((3, 4), (4,)), "3"),
    Case("aten.linalg_cross.default", torch.linalg.cross, f((4, 3), (4, 3))),
    Case("aten.linalg_cross.default", lambda x, y: torch.linalg.cross(x, y, dim=0), f((3, 4), (3, 1)), "dim"),
    Case("aten.linalg_cross.default", lambda x, y: torch.cross(x, y, dim=1), i((4, 3), (4, 3)), "int64"),
    Case("aten._euclidean_dist.default", torch.cdist, f((30, 4), (27, 4)), tolerance=1e-3),
    Case("aten.vdot.default", lambda x, y: torch.ops.aten.vdot.default(x, y), f((5,), (5,))),
]
for p in (0.0, 1.0, 2.0, 3.0, INF):
    CASES.append(
        Case(
            "aten._cdist_forward.default",
            lambda x, y, p=p: torch.cdist(x, y, p),
            f((2, 3, 4), (2, 5, 4)),
            f"{p}",
        )
    )
CASES += [
    Case("aten.addmm.default", lambda x, y, z: torch.addmm(x, y, z, beta=0.5, alpha=2), f((5,), (3, 4), (4, 5))),
    Case(
        "aten.addmm.default",
        lambda x, y, z: torch.addmm(x, y, z, beta=0),
        f((3, 5), (3, 4), (4, 5)),
        "no self",
    ),
    Case("aten.addmm.default", torch.addmm, i((5,), (3, 4), (4, 5)), "int64"),
    Case("aten.baddbmm.default", torch.baddbmm, f((2, 3, 5), (2, 3, 4), (2, 4, 5))),
    Case("aten.dot.default", torch.dot, f((4,), (4,))),
    Case("aten.mv.default", torch.mv, f((3, 4), (4,))),
    Case("aten.mv.default", torch.mv, f((3, 4), (4,), dtype=torch.bfloat16), "bfloat16", tolerance=1e-1),
    Case(
        "aten.norm.ScalarOpt_dim_dtype",
        lambda x: torch.ops.aten.norm.ScalarOpt_dim_dtype(x, 2, [1], False, dtype=torch.float32),
        f((3, 4)),
    ),
    Case(
        "aten.norm.ScalarOpt_dtype",
        lambda x: torch.ops.aten.norm.ScalarOpt_dtype(x, 2, dtype=torch.float32),
        f((3, 4)),
    ),
]
