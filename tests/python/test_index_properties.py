"""Views and indexing with generated shapes, indices and dtypes: ONNX Runtime against eager."""

import tempfile
from pathlib import Path

import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from wrapped import Wrap

import fairlead

DTYPES = [torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool]
few = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def agree(fn, *inputs, free=False, tolerance=2e-3):
    options = {} if free else {"dynamic_shapes": tuple({} for _ in inputs)}
    with tempfile.TemporaryDirectory() as folder:
        result = fairlead.export(Wrap(fn).eval(), inputs, Path(folder) / "model.onnx", tolerance=tolerance, **options)
    assert result.discrepancies


shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@st.composite
def tensors(draw, shape=shapes, dtype=None):
    shape = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    kind = draw(st.sampled_from(DTYPES)) if dtype is None else dtype
    torch.manual_seed(draw(st.integers(0, 1000)))
    return (torch.rand(shape) * 100 - (0 if kind == torch.uint8 else 50)).round().to(kind)


@st.composite
def indexed(draw):
    """A tensor, and for each of its dimensions a slice, an integer, an index tensor or a mask."""
    x = draw(tensors())
    wide = draw(st.lists(st.integers(1, 4), max_size=2).map(tuple))
    items, masked = [], False
    dim = 0
    while dim < x.dim():
        size = x.shape[dim]
        kind = draw(st.sampled_from(["slice", "all", "int", "index", "index", "mask", "new"]))
        if kind == "slice":
            start, step = draw(st.integers(-size, size)), draw(st.integers(1, 3))
            items.append(slice(start, draw(st.none() | st.integers(-size, size + 1)), step))
        elif kind == "all":
            items.append(slice(None))
        elif kind == "int":
            items.append(draw(st.integers(-size, size - 1)))
        elif kind == "index":
            shape = tuple(1 if draw(st.booleans()) else n for n in wide)[draw(st.integers(0, len(wide))) :]
            count = torch.Size(shape).numel()
            values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            items.append(torch.tensor(values, dtype=torch.int64).reshape(shape))
        elif kind == "mask" and not masked and wide == ():
            over = draw(st.integers(1, x.dim() - dim))
            items.append(draw(tensors(shape=tuple(x.shape[dim : dim + over]), dtype=torch.bool)))
            masked, dim = True, dim + over - 1
        elif kind == "new":
            items.append(None)
            continue
        else:
            items.append(slice(None))
        dim += 1
    assume(not any(isinstance(item, torch.Tensor) and item.dim() == 0 for item in items))
    return x, items


def split(items):
    """The tensors among the items, and a function that puts tensors back in their places."""
    tensors = [item for item in items if isinstance(item, torch.Tensor)]

    def join(given):
        given = list(given)
        return tuple(given.pop(0) if isinstance(item, torch.Tensor) else item for item in items)

    return tensors, join


@few
@given(indexed())
def test_indexing(case):
    x, items = case
    inner, join = split(items)
    assume(x[tuple(items)].numel() > 0)
    agree(lambda a, *k: a[join(k)], x, *inner)


@few
@given(indexed(), st.booleans())
def test_indexed_writes(case, one):
    x, items = case
    inner, join = split(items)
    read = x[tuple(items)]
    assume(read.numel() > 0)

    def fn(a, *k):
        b = a.clone()
        b[join(k)] = 1 if one else a[join(k)]
        return b

    agree(fn, x, *inner)


@st.composite
def gathered(draw, dtype=None):
    x = draw(tensors(dtype=dtype))
    dim = draw(st.integers(-x.dim(), x.dim() - 1))
    shape = [draw(st.integers(1, n)) for n in x.shape]
    shape[dim] = draw(st.integers(1, 6))
    count = torch.Size(shape).numel()
    values = draw(st.lists(st.integers(0, x.shape[dim] - 1), min_size=count, max_size=count))
    return x, dim, torch.tensor(values).reshape(shape)


@few
@given(gathered())
def test_gather(case):
    x, dim, index = case
    agree(lambda a, k: a.gather(dim, k), x, index)


@few
@given(gathered(torch.float32), st.sampled_from(["sum", "prod", "mean", "amax", "amin"]), st.booleans())
def test_scatter_reduce(case, how, include):
    x, dim, index = case
    src = torch.rand(index.shape) + 0.5
    agree(lambda a, k, s: a.scatter_reduce(dim, k, s, how, include_self=include), x, index, src)


@few
@given(gathered(torch.int64), st.sampled_from(["sum", "amax", "amin"]), st.booleans())
def test_scatter_reduce_of_integers(case, how, include):
    x, dim, index = case
    src = torch.randint(0, 9, index.shape)
    agree(lambda a, k, s: a.scatter_reduce(dim, k, s, how, include_self=include), x, index, src)


@few
@given(gathered())
def test_index_select_and_add(case):
    x, dim, index = case
    index = index.flatten()
    assume(x.dtype != torch.bool)

    def fn(a, k):
        rows = a.index_select(dim, k)
        return rows, a.index_add(dim, k, rows), a.index_fill(dim, k, 3)

    # Half precision adds in another order: at most a few ulps of the sum.
    agree(fn, x if x.dtype != torch.float16 else x / 64, index, tolerance=1e-2)


@few
@given(tensors(), st.data())
def test_view_chains(x, data):
    steps = []
    shape = list(x.shape)
    for _ in range(data.draw(st.integers(1, 5))):
        kind = data.draw(
            st.sampled_from(
                ["permute", "flatten", "unsqueeze", "expand", "flip", "roll", "slice", "transpose", "repeat"]
            )
        )
        rank = len(shape)
        if kind == "permute":
            order = data.draw(st.permutations(range(rank)))
            steps.append(lambda t, o=tuple(order): t.permute(o))
        elif kind == "flatten":
            start = data.draw(st.integers(0, rank - 1))
            steps.append(lambda t, s=start: t.flatten(s))
        elif kind == "unsqueeze" and rank < 5:
            at = data.draw(st.integers(-rank - 1, rank))
            steps.append(lambda t, d=at: t.unsqueeze(d))
        elif kind == "expand" and rank < 5:
            n = data.draw(st.integers(1, 3))
            steps.append(lambda t, n=n: t.expand(n, *t.shape))
        elif kind == "flip":
            dims = data.draw(st.lists(st.integers(0, rank - 1), unique=True, max_size=2))
            steps.append(lambda t, d=tuple(dims): t.flip(d))
        elif kind == "roll":
            by, dim = data.draw(st.integers(-7, 7)), data.draw(st.integers(-rank, rank - 1))
            steps.append(lambda t, b=by, d=dim: t.roll(b, d))
        elif kind == "slice":
            dim = data.draw(st.integers(0, rank - 1))
            start, step = data.draw(st.integers(0, max(shape[dim] - 1, 0))), data.draw(st.integers(1, 3))
            steps.append(lambda t, d=dim, s=start, k=step: t[(slice(None),) * d + (slice(s, None, k),)])
        elif kind == "transpose":
            a, b = data.draw(st.integers(-rank, rank - 1)), data.draw(st.integers(-rank, rank - 1))
            steps.append(lambda t, a=a, b=b: t.transpose(a, b))
        elif kind == "repeat" and rank < 5 and x.numel() < 200:
            steps.append(lambda t, n=rank: t.repeat(2, *[1] * n))
        else:
            continue
        shape = list(run(steps, x).shape)
    assume(steps)
    agree(lambda t: run(steps, t), x)


def run(steps, x):
    for step in steps:
        x = step(x)
    return x


@few
@given(tensors(st.lists(st.integers(2, 6), min_size=2, max_size=4).map(tuple)), st.integers(-4, 4), st.data())
def test_triangles_and_diagonals(x, k, data):
    dims = data.draw(st.permutations(range(x.dim())))[:2]
    assume(x.diagonal(k, *dims).numel() > 0)
    agree(lambda a: (a.tril(k), a.triu(k), a.diagonal(k, *dims)), x)


@few
@given(tensors(), st.data())
def test_windows(x, data):
    dim = data.draw(st.integers(-x.dim(), x.dim() - 1))
    size, step = data.draw(st.integers(1, x.shape[dim])), data.draw(st.integers(1, 3))
    agree(lambda a: a.unfold(dim, size, step), x)


@few
@given(tensors(), st.data())
def test_strides(x, data):
    rank = data.draw(st.integers(1, 3))
    size = [data.draw(st.integers(1, 4)) for _ in range(rank)]
    stride = [data.draw(st.integers(0, 4)) for _ in range(rank)]
    offset = data.draw(st.integers(0, 3))
    assume(offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) < x.numel())
    order = data.draw(st.permutations(range(x.dim())))
    agree(lambda a: a.permute(order).as_strided(size, stride, offset), x)


@few
@given(tensors(dtype=torch.float32), st.data())
def test_orders(x, data):
    x = x.flatten()[torch.randperm(x.numel())].reshape(x.shape) + torch.arange(x.numel()).reshape(x.shape) * 1e-3
    dim = data.draw(st.integers(-x.dim(), x.dim() - 1))
    k, largest, keep = (
        data.draw(st.integers(1, x.shape[dim])),
        data.draw(st.booleans()),
        data.draw(st.booleans()),
    )

    def fn(a):
        return (
            *a.topk(k, dim, largest),
            *a.sort(dim, descending=largest),
            *a.kthvalue(k, dim, keep),
            *a.median(dim, keep),
            a.argmax(dim, keep),
            a.argmin(dim, keep),
            *a.max(dim, keep),
            *a.min(dim, keep),
            *a.cummax(dim),
            *a.cummin(dim),
            a.cumsum(dim),
            a.argmax(),
        )

    agree(fn, x)


@few
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=12),
    st.lists(st.integers(0, 3), min_size=12, max_size=12),
)
def test_counts(values, repeats):
    x, n = torch.tensor(values), torch.tensor(repeats[: len(values)])
    assume(n.sum() > 0)

    def fn(a, r):
        return (
            torch.bincount(a, minlength=3),
            torch.repeat_interleave(a, r),
            *torch.unique(a, return_inverse=True, return_counts=True),
            *torch.unique_consecutive(a, return_inverse=True, return_counts=True),
            torch.isin(a, r),
            torch.histc(a.float(), 5, 0, 4),
        )

    agree(fn, x, n)


@settings(few, max_examples=15)
@given(st.integers(2, 5), st.integers(2, 5), st.integers(2, 4))
def test_free_sizes(a, b, c):
    def fn(x, k, m):
        return (
            x[k],
            x[:, k[:1]],
            x[m],
            x.gather(1, k[None, :, None].expand(x.shape[0], -1, x.shape[2])),
            x.roll(1, 0),
        )

    n = a + b
    agree(fn, torch.rand(n, n, c), torch.randint(0, 2, (b,)), torch.rand(n) > 0.3, free=True)
