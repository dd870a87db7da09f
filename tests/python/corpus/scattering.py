"""Writing by index: index_put, scatter and relatives, and the scatters that writes through views become."""

import torch

from . import Case
from .indexing import f, i, m


def order(n, *shape):
    """Distinct indices below n along the last dimension: a write to each place once."""
    return lambda: torch.rand(*shape[:-1], n).argsort(-1)[..., : shape[-1]]


def put(*index, accumulate=False):
    return lambda x, v, *k: torch.ops.aten.index_put(x, [None if j is None else k[j] for j in index], v, accumulate)


def reduce(how, include=True, dim=0):
    return lambda x, k, s: x.scatter_reduce(dim, k, s, how, include_self=include)


def index_reduce(how, include=True):
    return lambda x, k, s: x.index_reduce(0, k, s, how, include_self=include)


PUT, TWO, ADD = "aten.index_put.default", "aten.scatter_reduce.two", "aten.index_add.default"

CASES = [
    Case(PUT, put(0), lambda: (f(6, 3), f(4, 3), order(6, 4)())),
    Case(PUT, put(0), lambda: (f(6, 3), f(3), order(6, 4)()), "values broadcast"),
    Case(PUT, put(0), lambda: (f(6, 3), torch.tensor(2.0), order(6, 4)()), "one value"),
    Case(PUT, put(0, accumulate=True), lambda: (f(6, 3), f(9, 3), i(6, 9)), "accumulate"),
    Case(PUT, put(0, accumulate=True), lambda: (f(6, 3), torch.tensor(1.0), i(6, 9)), "accumulate one value"),
    Case(PUT, put(0, accumulate=True), lambda: (i(9, 6), i(9, 9), i(6, 9)), "accumulate integers"),
    Case(
        PUT,
        put(0, accumulate=True),
        lambda: (f(6).half(), f(9).half(), i(6, 9)),
        "accumulate half",
        tolerance=4e-3,
    ),
    Case(PUT, put(None, 0), lambda: (f(2, 6, 3), f(2, 4, 3), order(6, 4)()), "gap"),
    Case(PUT, put(0, 1), lambda: (f(4, 6, 3), f(4, 3), torch.arange(4), order(6, 4)()), "two"),
    Case(
        PUT,
        put(None, 0, 1),
        lambda: (f(2, 4, 6, 3), f(2, 4, 3), torch.arange(4), order(6, 4)()),
        "gap and two",
    ),
    Case(PUT, put(0, None, 1), lambda: (f(4, 2, 6), f(4, 2), torch.arange(4), order(6, 4)()), "apart"),
    Case(
        PUT,
        lambda x, v, k: torch.ops.aten.index_put(x, [torch.arange(x.shape[0])[:, None], k], v),
        lambda: (f(4, 6, 3), f(4, 2, 3), order(6, 4, 2)()),
        "broadcast",
    ),
    Case(PUT, put(0), lambda: (f(6, 3), f(4, 3), order(6, 4)() - 6), "negative"),
    Case(PUT, put(0), lambda: (m(6), m(4), order(6, 4)()), "bools"),
    Case(PUT, put(0), lambda: (f(6, 3), torch.tensor(0.5), m(6)), "mask, one value"),
    Case(PUT, put(0), lambda: (f(6, 3), torch.tensor(0.5), m(6, 3)), "mask of two dimensions, one value"),
    Case(PUT, put(0), lambda: (m(6, 3), torch.tensor(True), m(6)), "mask, bools"),
    Case(
        PUT,
        lambda x, v: torch.ops.aten.index_put(x, [x > 0], v[: (x > 0).sum()]),
        lambda: (f(6), f(40)),
        "mask, many values",
        fixed=True,
    ),
    Case(
        PUT,
        lambda x, y: torch.ops.aten.index_put(x, [x > 0], y[x > 0]),
        lambda: (f(6, 3), f(6, 3)),
        "mask, masked values",
    ),
    Case(PUT, put(0), lambda: (f(6, 3), f(3), m(6)), "mask, a row"),
    Case(PUT, put(None, 0), lambda: (f(2, 6, 3), f(3), m(6)), "gap and mask"),
    Case(PUT, put(0, 1), lambda: (f(6, 4, 3), f(3), m(6), torch.tensor([1])), "mask and index"),
    Case(PUT, put(0, accumulate=True), lambda: (f(6, 3), torch.tensor(0.5), m(6)), "mask, accumulate"),
    Case(
        "aten._unsafe_index_put.default",
        lambda x, v, k: torch.ops.aten._unsafe_index_put(x, [k], v),
        lambda: (f(6, 3), f(4, 3), order(6, 4)()),
    ),
    Case(
        "aten._index_put_impl.default",
        lambda x, v, k: torch.ops.aten._index_put_impl_(x.clone(), [k], v),
        lambda: (f(6, 3), f(4, 3), order(6, 4)()),
    ),
    Case(
        "aten.index_copy.default",
        lambda x, k, s: x.index_copy(1, k, s),
        lambda: (f(2, 6), order(6, 4)(), f(2, 4)),
    ),
    Case(
        "aten.index_copy.default",
        lambda x, k, s: x.index_copy(0, k, s),
        lambda: (m(6, 2), order(6, 4)(), m(4, 2)),
        "bools",
    ),
    Case(ADD, lambda x, k, s: x.index_add(0, k, s), lambda: (f(6, 2), i(6, 9), f(9, 2))),
    Case(ADD, lambda x, k, s: x.index_add(-1, k, s, alpha=2.5), lambda: (f(2, 6), i(6, 9), f(2, 9)), "alpha"),
    Case(ADD, lambda x, k, s: x.index_add(0, k, s, alpha=2), lambda: (i(9, 6), i(6, 9), i(9, 9)), "integers"),
    Case(
        ADD,
        lambda x, k, s: x.index_add(0, k.int(), s),
        lambda: (f(6, 2).half(), i(6, 9), f(9, 2).half()),
        "half",
        tolerance=4e-3,
    ),
    Case("aten.index_fill.int_Scalar", lambda x, k: x.index_fill(1, k, 7), lambda: (f(2, 6), i(6, 3))),
    Case(
        "aten.index_fill.int_Scalar",
        lambda x, k: x.index_fill(0, k, True),
        lambda: (m(6, 2), i(6, 3)),
        "bools",
    ),
    Case(
        "aten.index_fill.int_Tensor",
        lambda x, k, v: x.index_fill(1, k, v),
        lambda: (f(2, 6), i(6, 3), torch.tensor(3.0)),
    ),
    Case("aten.index_reduce.default", index_reduce("prod"), lambda: (f(6, 2), i(6, 9), f(9, 2))),
    Case(
        "aten.index_reduce.default",
        index_reduce("mean", False),
        lambda: (f(6, 2), i(6, 9), f(9, 2)),
        "mean, without self",
    ),
    Case(
        "aten.index_reduce.default",
        index_reduce("amax", False),
        lambda: (f(6, 2), i(6, 9), f(9, 2)),
        "amax, without self",
    ),
    Case("aten.index_reduce.default", index_reduce("amin"), lambda: (f(6, 2), i(6, 9), f(9, 2)), "amin"),
    Case("aten.scatter.src", lambda x, k, s: x.scatter(1, k, s), lambda: (f(4, 6), order(6, 4, 3)(), f(4, 3))),
    Case(
        "aten.scatter.src",
        lambda x, k, s: x.scatter(1, k, s),
        lambda: (f(4, 6), order(6, 3, 3)(), f(4, 5)),
        "larger source",
    ),
    Case(
        "aten.scatter.src",
        lambda x, k, s: x.scatter(-1, k, s),
        lambda: (m(4, 6), order(6, 4, 3)(), m(4, 3)),
        "bools",
    ),
    Case("aten.scatter.value", lambda x, k: x.scatter(1, k, 1.5), lambda: (f(4, 6), i(6, 4, 3))),
    Case("aten.scatter.value", lambda x, k: x.scatter(-1, k, 1), lambda: (i(9, 4, 6), i(6, 4, 3)), "integers"),
    Case(
        "aten.scatter.value",
        lambda x, k: torch.zeros_like(x).scatter_(1, k, True),
        lambda: (m(4, 6), i(6, 4, 3)),
        "in place, bools",
    ),
    Case(
        "aten.scatter.reduce",
        lambda x, k, s: x.scatter(1, k, s, reduce="add"),
        lambda: (f(4, 6), i(6, 4, 9), f(4, 9)),
    ),
    Case(
        "aten.scatter.reduce",
        lambda x, k, s: x.scatter(1, k, s, reduce="multiply"),
        lambda: (f(4, 6), i(6, 4, 9), f(4, 9)),
        "multiply",
    ),
    Case(
        "aten.scatter.value_reduce",
        lambda x, k: x.scatter(1, k, 2.0, reduce="add"),
        lambda: (f(4, 6), i(6, 4, 9)),
    ),
    Case(
        "aten.scatter_add.default",
        lambda x, k, s: x.scatter_add(0, k, s),
        lambda: (f(4, 6), i(4, 9, 6), f(9, 6)),
    ),
    Case(
        "aten.scatter_add.default",
        lambda x, k, s: x.scatter_add(0, k, s),
        lambda: (i(9, 4), i(4, 9), i(9, 9)),
        "integers",
    ),
    Case(
        "aten.scatter_add.default",
        lambda x, k, s: x.scatter_add(0, k, s),
        lambda: (f(4).half(), i(4, 9), f(9).half()),
        "half",
    ),
    *[
        Case(
            TWO,
            reduce(how, include),
            lambda: (f(4, 6), i(4, 9, 6), f(9, 6)),
            how + ("" if include else ", without self"),
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
        for include in (True, False)
    ],
    *[
        Case(TWO, reduce(how, False), lambda: (i(9, 4), i(4, 9), i(9, 9)), how + ", integers, without self")
        for how in ("sum", "mean", "amax", "amin")
    ],
    Case(TWO, reduce("amax", True, -1), lambda: (f(4, 6).half(), i(6, 4, 9), f(4, 9).half()), "amax, half"),
    Case(
        "aten.masked_scatter.default",
        lambda x, k, s: x.masked_scatter(k, s),
        lambda: (f(4, 6), m(4, 6), f(24)),
    ),
    Case(
        "aten.masked_scatter.default",
        lambda x, s: x.masked_scatter(x > 0, s),
        lambda: (f(4, 6), f(4, 6)),
        "same size",
    ),
    Case(
        "aten.masked_scatter.default",
        lambda x, k: x.masked_scatter(k[..., None].expand(*k.shape, x.shape[-1]), x * 2),
        lambda: (f(2, 4, 6), m(2, 4)),
        "rows",
    ),
    Case(
        "aten.masked_scatter.default",
        lambda x, k: x.masked_scatter(k[:, None], x + 1),
        lambda: (f(4, 6), m(4)),
        "broadcast",
    ),
    Case(
        "aten.masked_scatter.default",
        lambda x, k, s: x.masked_scatter((k == 1).unsqueeze(-1).expand_as(x), s),
        lambda: (f(2, 4, 6), torch.tensor([[1, 0, 1, 0], [0, 1, 1, 0]]), f(40, 6)),
        "rows of another tensor",
        fixed=True,
    ),
    Case(
        "aten.masked_scatter.default",
        lambda x, k: x.masked_scatter(k[..., None], x.flip(0)),
        lambda: (f(2, 4, 6), m(2, 4)),
        "broadcast rows",
    ),
    Case("aten.put.default", lambda x, k, s: x.put(k, s), lambda: (f(4, 6), order(24, 5)(), f(5))),
    Case(
        "aten.put.default",
        lambda x, k, s: x.put(k, s, accumulate=True),
        lambda: (f(4, 6), i(24, 9), f(9)),
        "accumulate",
    ),
    Case(
        "aten.slice_scatter.default",
        lambda x, s: x.slice_scatter(s, 1, 1, 1 + s.shape[1]),
        lambda: (f(2, 9), f(2, 3)),
    ),
    Case(
        "aten.slice_scatter.default",
        lambda x, s: x.slice_scatter(s, 0, -2),
        lambda: (f(9, 2), f(2, 2)),
        "from the end",
    ),
    Case(
        "aten.slice_scatter.default",
        lambda x: x.slice_scatter(x[::3] * 2, 0, 0, 1000, 3),
        lambda: (f(9, 2),),
        "step",
    ),
    Case(
        "aten.slice_scatter.default",
        lambda x: x.slice_scatter(x[1::2] * 2, 0, 1, 1000, 2),
        lambda: (i(9, 9),),
        "step, integers",
    ),
    Case("aten.select_scatter.default", lambda x, s: x.select_scatter(s, 1, 2), lambda: (f(2, 5, 3), f(2, 3))),
    Case(
        "aten.select_scatter.default",
        lambda x, s: x.select_scatter(s, -1, -1),
        lambda: (f(2, 5, 3), f(2, 5)),
        "last",
    ),
    Case(
        "aten.select_scatter.default",
        lambda x, s: x.select_scatter(s, 0, 0),
        lambda: (m(5, 3), m(3)),
        "bools",
    ),
    Case("aten.diagonal_scatter.default", lambda x: x.diagonal_scatter(x[0] * 2), lambda: (f(5, 5),)),
    Case(
        "aten.diagonal_scatter.default",
        lambda x, s: x.diagonal_scatter(s, 1, 0, 2),
        lambda: (f(4, 3, 6), f(3, 4)),
        "offset",
        fixed=True,
    ),
    Case(
        "aten.as_strided_scatter.default",
        lambda x, s: torch.as_strided_scatter(x, s, (3, 2), (4, 1), 1),
        lambda: (f(3, 4), f(3, 2)),
        fixed=True,
    ),
]
