"""Orders, extremes, running results, counts and distinct values."""

import torch

from . import Case
from .indexing import f, i, m


def distinct(*shape, dtype=torch.float32):
    """No two equal: their order is decided."""
    n = 1
    for size in shape:
        n *= size
    return torch.randperm(n).reshape(shape).to(dtype)


SORTED = torch.tensor([-1.0, 0.0, 0.0, 0.5, 1.5])

CASES = [
    Case("aten.topk.default", lambda x: x.topk(2), lambda: (f(3, 7),)),
    Case(
        "aten.topk.default", lambda x: x.topk(2, 0, largest=False), lambda: (f(7, 3),), "smallest, first dim"
    ),
    Case("aten.topk.default", lambda x: x.topk(min(4, x.shape[-1])).values, lambda: (f(3, 3),), "at most"),
    Case("aten.topk.default", lambda x: x.topk(x.shape[-1] // 2).values, lambda: (f(3, 8),), "half of them"),
    Case(
        "aten.topk.default", lambda x: x.topk(2, sorted=False).values.sum(-1), lambda: (f(3, 7),), "unsorted"
    ),
    Case(
        "aten.topk.default",
        lambda x: x.topk(2),
        lambda: (distinct(3, 7, dtype=torch.int64),),
        "integers",
        fixed=True,
    ),
    Case(
        "aten.topk.default",
        lambda x: x.topk(2),
        lambda: (distinct(3, 7, dtype=torch.float16),),
        "half",
        fixed=True,
    ),
    Case("aten.sort.default", lambda x: x.sort(), lambda: (f(3, 7),)),
    Case("aten.sort.default", lambda x: x.sort(0, descending=True), lambda: (f(7, 3),), "descending"),
    Case(
        "aten.sort.default",
        lambda x: x.sort(),
        lambda: (distinct(12, dtype=torch.int32),),
        "int32",
        fixed=True,
    ),
    Case(
        "aten.sort.default",
        lambda x: x.sort(),
        lambda: (distinct(12, dtype=torch.uint8),),
        "uint8",
        fixed=True,
    ),
    Case("aten.sort.default", lambda x: x.argsort(-1), lambda: (f(3, 7),), "argsort"),
    Case("aten.sort.default", lambda x: x.argsort(-1).argsort(-1), lambda: (f(3, 7),), "ranks"),
    Case("aten.sort.stable", lambda x: x.sort(dim=-1, stable=True), lambda: (i(3, 3, 9),)),
    Case(
        "aten.sort.stable",
        lambda x: x.sort(dim=-1, stable=True, descending=True),
        lambda: (i(3, 3, 9),),
        "descending",
    ),
    Case("aten.sort.stable", lambda x: torch.argsort(x, stable=True), lambda: (m(12),), "bools"),
    Case("aten.kthvalue.default", lambda x: x.kthvalue(2), lambda: (f(3, 7),)),
    Case(
        "aten.kthvalue.default",
        lambda x: x.kthvalue(x.shape[0], 0, keepdim=True),
        lambda: (f(7, 3),),
        "last, keepdim",
    ),
    Case("aten.median.default", torch.median, lambda: (f(4, 6),)),
    Case(
        "aten.median.default",
        torch.median,
        lambda: (torch.tensor([1.0, float("nan"), 2.0]),),
        "NaN",
        fixed=True,
    ),
    Case("aten.median.dim", lambda x: x.median(-1), lambda: (f(4, 6),)),
    Case("aten.median.dim", lambda x: x.median(0, keepdim=True), lambda: (f(5, 6),), "keepdim"),
    Case("aten.mode.default", lambda x: x.mode(-1).values, lambda: (i(3, 4, 9),)),
    Case("aten.argmax.default", lambda x: x.argmax(-1), lambda: (f(3, 7),)),
    Case("aten.argmax.default", lambda x: x.argmax(), lambda: (f(3, 7),), "of all"),
    Case("aten.argmax.default", lambda x: x.argmax(keepdim=True), lambda: (f(3, 7),), "of all, keepdim"),
    Case("aten.argmax.default", lambda x: x.argmax(0, keepdim=True), lambda: (i(3, 7, 4),), "equals"),
    Case("aten.argmax.default", lambda x: x.int().argmax(-1), lambda: (m(3, 7),), "mask"),
    Case(
        "aten.argmax.default",
        lambda x: x.argmax(-1),
        lambda: (distinct(3, 7, dtype=torch.int16),),
        "int16",
        fixed=True,
    ),
    Case("aten.argmin.default", lambda x: x.argmin(-1), lambda: (f(3, 7),)),
    Case("aten.argmin.default", lambda x: x.argmin(), lambda: (i(3, 7),), "of all, equals"),
    Case("aten.max.dim", lambda x: x.max(-1), lambda: (f(3, 7),)),
    Case("aten.max.dim", lambda x: x.max(0, keepdim=True), lambda: (i(3, 7, 4),), "equals, keepdim"),
    Case("aten.max.dim", lambda x: x.max(-1).values, lambda: (f(3, 7),), "values only"),
    Case("aten.max.dim", lambda x: x.max(-1), lambda: (m(3, 7),), "bools"),
    Case("aten.max.dim", lambda x: x.max(-1), lambda: (f(3, 7).half(),), "half"),
    Case("aten.max.dim", lambda x: x.max(0), lambda: (torch.tensor(3.0),), "0-d"),
    Case("aten.min.dim", lambda x: x.min(-1), lambda: (f(3, 7),)),
    Case("aten.min.dim", lambda x: x.min(1, keepdim=True), lambda: (i(3, 7, 4),), "equals, keepdim"),
    Case("aten.cumsum.default", lambda x: x.cumsum(-1), lambda: (f(3, 7),)),
    Case("aten.cumsum.default", lambda x: x.cumsum(0), lambda: (m(7, 3),), "bools"),
    Case("aten.cumsum.default", lambda x: x.cumsum(-1), lambda: (i(9, 3, 7, dtype=torch.int32),), "int32"),
    Case("aten.cumsum.default", lambda x: x.cumsum(-1, dtype=torch.int32), lambda: (i(9, 3, 7),), "to int32"),
    Case("aten.cumsum.default", lambda x: x.cumsum(-1), lambda: (f(3, 7).half(),), "half"),
    Case("aten.cumsum.default", lambda x: x.cumsum(0), lambda: (torch.tensor(3.0),), "0-d"),
    Case("aten.cumprod.default", lambda x: x.cumprod(-1), lambda: (f(3, 7),)),
    Case("aten.cumprod.default", lambda x: x.cumprod(0), lambda: (i(3, 5, 3),), "integers"),
    Case("aten.cummax.default", lambda x: x.cummax(-1), lambda: (f(3, 7),)),
    Case("aten.cummax.default", lambda x: x.cummax(0), lambda: (i(3, 7, 3),), "equals"),
    Case("aten.cummin.default", lambda x: x.cummin(0), lambda: (i(3, 7, 3),), "equals"),
    Case("aten.cummin.default", lambda x: x.cummin(1), lambda: (f(3, 7, 2),)),
    Case("aten.logcumsumexp.default", lambda x: x.logcumsumexp(-1), lambda: (f(3, 7) * 50,)),
    Case(
        "aten.logcumsumexp.default",
        lambda x: x.logcumsumexp(0),
        lambda: (torch.tensor([float("-inf"), 1.0, 2.0]),),
        "infinity",
    ),
    Case("aten.searchsorted.Tensor", lambda x: torch.searchsorted(SORTED, x), lambda: (f(3, 7),)),
    Case(
        "aten.searchsorted.Tensor",
        lambda x: torch.searchsorted(SORTED, x, right=True),
        lambda: (SORTED.clone(),),
        "right",
    ),
    Case(
        "aten.searchsorted.Tensor",
        lambda s, x: torch.searchsorted(s.sort(-1).values, x),
        lambda: (f(3, 5), f(3, 7)),
        "rows",
    ),
    Case(
        "aten.searchsorted.Tensor",
        lambda s, x: torch.searchsorted(s, x, sorter=s.argsort(-1), side="right", out_int32=True),
        lambda: (f(3, 5), f(3, 7)),
        "sorter",
    ),
    Case("aten.searchsorted.Scalar", lambda s: torch.searchsorted(s.sort(-1).values, 0.5), lambda: (f(5),)),
    Case("aten.bucketize.Tensor", lambda x: torch.bucketize(x, SORTED), lambda: (f(3, 7),)),
    Case(
        "aten.bucketize.Tensor",
        lambda x: torch.bucketize(x, SORTED, right=True, out_int32=True),
        lambda: (SORTED.clone(),),
        "right",
    ),
    Case(
        "aten.bucketize.Tensor",
        lambda x: torch.bucketize(x, torch.tensor([1, 4, 6])),
        lambda: (i(9, 7),),
        "integers",
    ),
    Case(
        "aten.bucketize.Tensor",
        lambda x: torch.bucketize(x, SORTED),
        lambda: (torch.tensor([float("nan"), 0.1]),),
        "NaN",
    ),
    Case("aten.bucketize.Scalar", lambda s: torch.bucketize(0.5, s.sort(-1).values), lambda: (f(5),)),
    Case(
        "aten.histc.default",
        lambda x: torch.histc(x.float(), bins=8, min=0, max=7),
        lambda: (i(8, 20),),
        "experts",
    ),
    Case("aten.histc.default", lambda x: torch.histc(x, bins=5, min=-1, max=1), lambda: (f(40),), "outside"),
    Case("aten.histc.default", lambda x: torch.histc(x, bins=5), lambda: (f(4, 10),), "own range"),
    Case("aten.bincount.default", lambda x: torch.bincount(x, minlength=8), lambda: (i(8, 20),)),
    Case("aten.bincount.default", lambda x: torch.bincount(x), lambda: (i(8, 20),), "longest"),
    Case(
        "aten.bincount.default",
        lambda x, w: torch.bincount(x, w, 8),
        lambda: (i(8, 20), f(20).double()),
        "weights",
    ),
    Case("aten.isin.Tensor_Tensor", torch.isin, lambda: (i(9, 3, 4), i(9, 3))),
    Case(
        "aten.isin.Tensor_Tensor",
        lambda x, y: torch.isin(x, y, invert=True),
        lambda: (i(9, 3, 4), i(9, 2, 2)),
        "invert",
    ),
    Case("aten.isin.Tensor_Scalar", lambda x: torch.isin(x, 3), lambda: (i(9, 3, 4),)),
    Case("aten.isin.Scalar_Tensor", lambda x: torch.isin(3, x), lambda: (i(9, 12),)),
    Case("aten.repeat_interleave.Tensor", lambda x: torch.repeat_interleave(x), lambda: (i(4, 7),)),
    Case(
        "aten.repeat_interleave.Tensor",
        lambda x, n: torch.repeat_interleave(x, n, dim=0),
        lambda: (f(7, 3), i(4, 7)),
        "rows",
    ),
    Case(
        "aten.repeat_interleave.Tensor",
        lambda x, n: torch.repeat_interleave(x, n),
        lambda: (f(7), i(4, 7, dtype=torch.int32)),
        "int32",
    ),
    Case("aten._unique2.default", lambda x: torch.unique(x), lambda: (i(5, 3, 7),)),
    Case(
        "aten._unique2.default",
        lambda x: torch.unique(x, return_inverse=True, return_counts=True),
        lambda: (i(5, 3, 7),),
        "all results",
    ),
    Case(
        "aten._unique2.default",
        lambda x: torch.unique(x, return_counts=True),
        lambda: (i(5, 20).float(),),
        "floats",
    ),
    Case("aten._unique2.default", lambda x: torch.unique(x), lambda: (m(20),), "bools"),
    Case(
        "aten.unique_dim.default",
        lambda x: torch.unique(x, dim=0, return_inverse=True, return_counts=True),
        lambda: (i(2, 9, 2),),
    ),
    Case(
        "aten.unique_dim.default",
        lambda x: torch.unique(x, dim=1, return_counts=True),
        lambda: (i(2, 2, 9),),
        "columns",
    ),
    Case("aten.unique_consecutive.default", lambda x: torch.unique_consecutive(x), lambda: (i(2, 12),)),
    Case(
        "aten.unique_consecutive.default",
        lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True),
        lambda: (i(2, 3, 7),),
        "all results",
    ),
    Case(
        "aten.unique_consecutive.default",
        lambda x: torch.unique_consecutive(x, dim=1, return_counts=True),
        lambda: (i(2, 2, 9),),
        "columns",
    ),
]
