"""Reading by index: index, gather, select, masks."""

import torch

from . import Case


def f(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype)


def i(high, *shape, low=0, dtype=torch.int64):
    return torch.randint(low, high, shape, dtype=dtype)


def m(*shape):
    return torch.rand(*shape) > 0.5


CASES = [
    Case("aten.embedding.default", torch.nn.functional.embedding, lambda: (i(10, 2, 5), f(10, 4))),
    Case(
        "aten.embedding.default",
        torch.nn.functional.embedding,
        lambda: (i(10, 5, dtype=torch.int32), f(10, 4)),
        "int32",
    ),
    Case("aten.index.Tensor", lambda x, k: x[k], lambda: (f(5, 3, 4), i(5, 7)), "first"),
    Case("aten.index.Tensor", lambda x, k: x[:, k], lambda: (f(2, 5, 4), i(5, 7, low=-5)), "negative"),
    Case("aten.index.Tensor", lambda x, k: x[:, k], lambda: (f(2, 5, 4), i(5, 3, 7)), "of two dimensions"),
    Case("aten.index.Tensor", lambda x, k, j: x[k, j], lambda: (f(5, 6, 4), i(5, 7), i(6, 7)), "two"),
    Case(
        "aten.index.Tensor",
        lambda x, k, j: x[k[:, None], j],
        lambda: (f(5, 6, 4), i(5, 3), i(6, 7)),
        "broadcast",
    ),
    Case(
        "aten.index.Tensor",
        lambda x, k, j: x[k[:, None, None], None, j[None, None, :]],
        lambda: (f(5, 6, 4), i(5, 3), i(6, 7)),
        "as in masks",
    ),
    Case(
        "aten.index.Tensor",
        lambda x, k, j: x[:, k, j],
        lambda: (f(2, 5, 6, 4), i(5, 7), i(6, 7)),
        "two in the middle",
    ),
    Case("aten.index.Tensor", lambda x, k, j: x[k, :, j], lambda: (f(5, 2, 6, 4), i(5, 7), i(6, 7)), "apart"),
    Case(
        "aten.index.Tensor",
        lambda x, k, j: x[:, k, :, j],
        lambda: (f(2, 5, 3, 6), i(5, 7, 2), i(6, 2)),
        "apart and broadcast",
    ),
    Case(
        "aten.index.Tensor",
        lambda x, k: x[torch.arange(x.shape[0]), k],
        lambda: (f(3, 6, 4), i(6, 3)),
        "row by row",
    ),
    Case(
        "aten.index.Tensor",
        lambda x, k: torch.ops.aten.index(x, [k]),
        lambda: (f(5, 3), torch.tensor(2)),
        "0-d",
    ),
    Case(
        "aten.index.Tensor",
        lambda x, k, j: torch.ops.aten.index(x, [k, None, j]),
        lambda: (f(5, 3, 4), torch.tensor(2), i(4, 6)),
        "0-d with another",
    ),
    Case("aten.index.Tensor", lambda x, k: x[k], lambda: (i(9, 5, 3), i(5, 7)), "integers"),
    Case("aten.index.Tensor", lambda x, k: x[k], lambda: (m(5, 3), i(5, 7)), "bools"),
    Case("aten.index.Tensor", lambda x, k, j: x[k, j], lambda: (m(5, 6), i(5, 7), i(6, 7)), "bools, two"),
    Case("aten.index.Tensor", lambda x, k: x[k], lambda: (f(5, 3, dtype=torch.float16), i(5, 7)), "half"),
    Case("aten.index.Tensor", lambda x, k: x[k.int()], lambda: (f(5, 3), i(5, 7)), "int32"),
    Case("aten.index.Tensor", lambda x, k: x[k], lambda: (f(5, 3, 4), m(5)), "mask"),
    Case("aten.index.Tensor", lambda x, k: x[k], lambda: (f(5, 3, 4), m(5, 3)), "mask of two dimensions"),
    Case("aten.index.Tensor", lambda x, k: x[:, k], lambda: (f(2, 5, 3, 4), m(5, 3)), "mask in the middle"),
    Case("aten.index.Tensor", lambda x, k: x[..., k], lambda: (f(2, 5, 3), m(3)), "mask at the end"),
    Case("aten.index.Tensor", lambda x: x[x > 0], lambda: (f(5, 3),), "mask of its own"),
    Case(
        "aten.index.Tensor",
        lambda x, k: x[k].sum(0) / x[k].shape[0],
        lambda: (f(5, 3), m(5)),
        "count as a number",
    ),
    Case("aten.index.Tensor", lambda x, k: x[k, 1:], lambda: (f(5, 3), m(5)), "mask and slice"),
    Case(
        "aten.index.Tensor",
        lambda x, k, j: x[k, j],
        lambda: (f(5, 3, 4), m(5), torch.tensor([1])),
        "mask and index",
    ),
    Case(
        "aten.index.Tensor",
        lambda x, k, j: x[k, :, j],
        lambda: (f(5, 3, 4), m(5), torch.tensor(1)),
        "mask and index, apart",
    ),
    Case("aten.index.Tensor", lambda x, k: x[k.to(torch.uint8)], lambda: (f(5, 3), m(5)), "uint8 mask"),
    Case("aten.index.Tensor", lambda x: x[x > 100], lambda: (f(5, 3),), "no true place"),
    Case(
        "aten._unsafe_index.Tensor",
        lambda x, k: torch.ops.aten._unsafe_index(x, [None, k]),
        lambda: (f(2, 5), i(5, 3)),
    ),
    Case("aten.index_select.default", lambda x, k: x.index_select(1, k), lambda: (f(2, 5, 4), i(5, 7))),
    Case("aten.index_select.default", lambda x, k: x.index_select(-1, k), lambda: (m(2, 5), i(5, 7)), "bools"),
    Case(
        "aten.index_select.default",
        lambda x, k: x.index_select(0, k),
        lambda: (f(5, 2), torch.tensor(3)),
        "0-d index",
    ),
    Case("aten.gather.default", lambda x, k: x.gather(1, k), lambda: (f(4, 5), i(5, 4, 3))),
    Case(
        "aten.gather.default",
        lambda x, k: x.gather(-1, k),
        lambda: (f(4, 5, 3), i(3, 2, 5, 6)),
        "smaller index",
        fixed=True,
    ),
    Case("aten.gather.default", lambda x, k: x.gather(0, k), lambda: (m(4, 5), i(4, 3, 5)), "bools"),
    Case(
        "aten.gather.default",
        lambda x, k: x.gather(0, k),
        lambda: (f(4, 5, dtype=torch.float16), i(4, 3, 5)),
        "half",
    ),
    Case(
        "aten.gather.default",
        lambda x, k: x.gather(0, k),
        lambda: (f(4), torch.tensor(2)),
        "0-d index",
        fixed=True,
    ),
    Case(
        "aten.gather.default",
        lambda x, k: torch.take_along_dim(x, k, 1),
        lambda: (f(4, 5), i(5, 4, 3)),
        "take_along_dim",
    ),
    Case("aten.take.default", torch.take, lambda: (f(4, 5), i(20, 3, 2))),
    Case("aten.masked_select.default", torch.masked_select, lambda: (f(4, 5), m(4, 5))),
    Case("aten.masked_select.default", torch.masked_select, lambda: (f(4, 5), m(5)), "broadcast"),
    Case("aten.masked_select.default", torch.masked_select, lambda: (i(9, 1, 5), m(4, 1)), "both broadcast"),
    Case("aten.nonzero.default", torch.nonzero, lambda: (i(2, 4, 5),)),
    Case("aten.nonzero.default", lambda x: torch.nonzero(x > 0, as_tuple=True), lambda: (f(4, 5),), "as tuple"),
    Case("aten.nonzero.default", torch.nonzero, lambda: (i(2, 4, dtype=torch.int16),), "int16"),
    Case("aten.nonzero.default", torch.nonzero, lambda: (i(2, 4).double(),), "float64"),
    Case("aten.nonzero.default", lambda x: torch.nonzero(x)[:, 0] * 2, lambda: (i(2, 4, 5),), "used further"),
]
