"""Tensors of a checkpoint that nobody loads: what Transformers' own loading makes of them is remembered, not computed.

A Stored is a tensor without data that knows which parts of which files it consists of. Renaming leaves it as it is;
splitting, stacking, joining, transposing and changing the dtype give another one. What else is done to it is done to
its data, where that is small; otherwise it is an error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fairlead._core import InvalidInput

SMALL = 64 << 20  # bytes of a tensor that may be computed with

Sizes = tuple[int, ...]
aten = torch.ops.aten


def dense(sizes: Sequence[int]) -> Sizes:
    """Strides of elements that lie side by side."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)  # a checkpoint has tens of thousands
class Block:
    """A rectangle of a tensor, and where its elements are: element (i, j) is `first + i*strides[0] + j*strides[1]`."""

    start: Sizes
    sizes: Sizes
    name: str  # of the tensor in the checkpoint
    file: int
    begin: int  # of that tensor in the file, in bytes
    dtype: torch.dtype
    first: int  # element of that tensor
    strides: Sizes

    @property
    def bytes(self) -> int:
        return math.prod(self.sizes) * self.dtype.itemsize

    @property
    def offset(self) -> int:
        return self.begin + self.first * self.dtype.itemsize

    @property
    def in_order(self) -> bool:
        """Whether its elements lie side by side in the file, in the order of the tensor."""
        step = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return False
            step *= size
        return True

    def cut(self, axis: int, start: int, stop: int) -> Block | None:
        """What lies between two places of the tensor, counted from the first of them."""
        low, high = max(self.start[axis], start), min(self.start[axis] + self.sizes[axis], stop)
        if low >= high:
            return None
        first = self.first + (low - self.start[axis]) * self.strides[axis]
        return replace(
            self, start=put(self.start, axis, low - start), sizes=put(self.sizes, axis, high - low), first=first
        )

    def moved(self, axis: int, by: int) -> Block:
        return replace(self, start=put(self.start, axis, self.start[axis] + by))

    def permuted(self, order: Sequence[int]) -> Block:
        def turned(values: Sizes) -> Sizes:
            return tuple(values[axis] for axis in order)

        return replace(self, start=turned(self.start), sizes=turned(self.sizes), strides=turned(self.strides))

    def grown(self, axis: int) -> Block:
        """With one more axis, of one element."""

        def with_one(values: Sizes, value: int) -> Sizes:
            return (*values[:axis], value, *values[axis:])

        return replace(
            self, start=with_one(self.start, 0), sizes=with_one(self.sizes, 1), strides=with_one(self.strides, 1)
        )


def put(values: Sizes, place: int, value: int) -> Sizes:
    return (*values[:place], value, *values[place + 1 :])


def in_order(blocks: list[Block], sizes: Sizes, axis: int = 0) -> Iterator[Block]:
    """Blocks that follow each other in the order of the elements, where need be smaller ones."""
    if len(blocks) == 1 or axis == len(sizes):
        yield from blocks
        return
    edges = sorted({edge for b in blocks for edge in (b.start[axis], b.start[axis] + b.sizes[axis])})
    if len(edges) == 2:  # they part along a later axis: one index after the other
        edges = list(range(edges[0], edges[1] + 1))
    by_edge = sorted(blocks, key=lambda b: b.start[axis])
    for low, high in itertools.pairwise(edges):
        inside = [cut for b in by_edge if (cut := b.cut(axis, low, high)) is not None]
        yield from in_order(inside, put(sizes, axis, high - low), axis + 1 if high - low == 1 else axis)


class Stored(torch.Tensor):
    """A tensor of these blocks. Made with `Stored.of`."""

    blocks: list[Block]
    fetch: Callable[[Block], torch.Tensor]

    @staticmethod
    def __new__(
        cls, sizes: Sequence[int], dtype: torch.dtype, blocks: list[Block], fetch: Callable[[Block], torch.Tensor]
    ) -> Stored:
        made: Any = torch.Tensor._make_wrapper_subclass(
            cls, tuple(sizes), strides=dense(sizes), dtype=dtype, device=torch.device("cpu"), requires_grad=False
        )
        made.blocks, made.fetch = blocks, fetch
        stored: Stored = made
        return stored

    def __init__(self, *_: Any) -> None:
        super().__init__()

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"Stored({', '.join(sorted({b.name for b in self.blocks}))}, {list(self.shape)})"

    def like(self, sizes: Sequence[int], blocks: list[Block]) -> Stored:
        return Stored(tuple(int(n) for n in sizes), self.dtype, blocks, self.fetch)

    def computed(self) -> torch.Tensor:
        """With data, which is small."""
        bytes_ = math.prod(self.shape) * self.dtype.itemsize
        if bytes_ > SMALL:
            raise InvalidInput(
                f"[export] Expected weights that stay as they are or are split, joined or transposed, but "
                f"{self.blocks[0].name} ({bytes_:,} bytes) is computed with when it is loaded. Export without in_place."
            )
        made = torch.empty(tuple(self.shape), dtype=self.dtype)
        for block in self.blocks:
            place = tuple(slice(at, at + size) for at, size in zip(block.start, block.sizes, strict=True))
            made[place] = self.fetch(block).as_strided(block.sizes, block.strides, block.first).to(self.dtype)
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch declares a function there
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        rule = RULES.get(func)
        made = rule(*args, **(kwargs or {})) if rule is not None else NotImplemented
        if made is not NotImplemented:
            return made

        def known(value: Any) -> Any:
            return value.computed() if isinstance(value, Stored) else value

        args, kwargs = pytree.tree_map(known, (args, kwargs or {}))
        return func(*args, **kwargs)


class Unread:
    """A tensor of a checkpoint that Transformers has not asked for yet, as it takes slices of files: there are tens of
    thousands, which are needed one layer after the other."""

    __slots__ = ("make", "number")

    def __init__(self, make: Callable[[int], Stored], number: int):
        self.make, self.number = make, number

    def __getitem__(self, index: Any) -> Any:
        return self.make(self.number)[index]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.make(self.number), name)


def same(x: Stored, *_: Any, **kwargs: Any) -> Any:
    return x.like(x.shape, x.blocks)


def cast(x: Stored, *, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> Any:
    if device is not None and torch.device(device).type != "cpu":
        return NotImplemented
    return Stored(tuple(x.shape), dtype or x.dtype, x.blocks, x.fetch)


def cut(x: Stored, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    axis, size = dim % x.dim(), x.shape[dim]
    low, high, _ = slice(start, end).indices(size)
    if step != 1:
        return NotImplemented
    blocks = [b for each in x.blocks if (b := each.cut(axis, low, high)) is not None]
    return x.like(put(tuple(x.shape), axis, max(0, high - low)), blocks)


def select(x: Stored, dim: int, index: int) -> Any:
    axis = dim % x.dim()
    index %= x.shape[axis]
    one = cut(x, axis, index, index + 1)

    def less(values: Sizes) -> Sizes:
        return (*values[:axis], *values[axis + 1 :])

    blocks = [replace(b, start=less(b.start), sizes=less(b.sizes), strides=less(b.strides)) for b in one.blocks]
    return x.like(less(tuple(x.shape)), blocks)


def split(x: Stored, size: int | Sequence[int], dim: int = 0) -> Any:
    whole = x.shape[dim]
    sizes = [min(size, whole - at) for at in range(0, whole, size)] if isinstance(size, int) else list(size)
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return [cut(x, dim, at, at + n) for at, n in zip(starts, sizes, strict=True)]


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    if not all(isinstance(t, Stored) and t.dtype == tensors[0].dtype for t in tensors):
        return NotImplemented
    axis, at, blocks = dim % tensors[0].dim(), 0, []
    for tensor in tensors:
        blocks += [b.moved(axis, at) for b in tensor.blocks]
        at += tensor.shape[axis]
    return tensors[0].like(put(tuple(tensors[0].shape), axis, at), blocks)


def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    if not all(isinstance(t, Stored) for t in tensors):
        return NotImplemented
    axis = dim % (tensors[0].dim() + 1)
    return cat([unsqueeze(t, axis) for t in tensors], axis)


def unsqueeze(x: Stored, dim: int) -> Any:
    axis = dim % (x.dim() + 1)
    sizes = tuple(x.shape)
    return x.like((*sizes[:axis], 1, *sizes[axis:]), [b.grown(axis) for b in x.blocks])


def squeeze(x: Stored, *dims: Any) -> Any:
    given = range(x.dim()) if not dims else dims[0] if isinstance(dims[0], (list, tuple)) else [dims[0]]
    for axis in sorted((d % x.dim() for d in given), reverse=True):
        if x.shape[axis] == 1:
            x = select(x, axis, 0)
    return x


def permute(x: Stored, dims: Sequence[int]) -> Any:
    order = [d % x.dim() for d in dims]
    return x.like([x.shape[axis] for axis in order], [b.permuted(order) for b in x.blocks])


def transpose(x: Stored, dim0: int = 0, dim1: int = 1) -> Any:
    order = list(range(x.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return permute(x, order)


def view(x: Stored, sizes: Sequence[int]) -> Any:
    """Of one block whose elements can be counted that way."""
    shape = torch.empty(tuple(x.shape), device="meta").view(tuple(sizes)).shape
    if tuple(shape) == tuple(x.shape):
        return x.like(shape, x.blocks)
    if len(x.blocks) != 1:
        return NotImplemented
    block = x.blocks[0]
    form = torch.empty_strided(block.sizes, block.strides, device="meta")
    try:
        strides = form.view(tuple(shape)).stride()
    except RuntimeError:
        return NotImplemented
    return x.like(shape, [replace(block, start=(0,) * len(shape), sizes=tuple(shape), strides=tuple(strides))])


RULES: dict[Any, Callable[..., Any]] = {
    aten.alias.default: same, aten.detach.default: same, aten.clone.default: same, aten.contiguous.default: same,
    aten.lift_fresh.default: same, aten._to_copy.default: cast, aten.slice.Tensor: cut, aten.select.int: select,
    aten.split.Tensor: split, aten.split_with_sizes.default: split, aten.cat.default: cat, aten.stack.default: stack,
    aten.unsqueeze.default: unsqueeze, aten.squeeze.default: squeeze, aten.squeeze.dim: squeeze,
    aten.squeeze.dims: squeeze, aten.permute.default: permute, aten.transpose.int: transpose, aten.t.default: transpose,
    aten.view.default: view, aten._unsafe_view.default: view, aten.reshape.default: view,
    aten._reshape_alias.default: lambda x, sizes, _: view(x, sizes),
}  # fmt: skip
