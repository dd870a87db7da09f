"""Tensors of a checkpoint that nobody loads: what Transformers' own loading makes of them is remembered, not computed.

A Stored is a tensor without data that knows which parts of which files it consists of (StoredBlocks). Renaming leaves
it as it is; splitting, stacking, joining, transposing and changing the dtype give another one. What else is done to it
is done to its data, where that is small; otherwise it is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fairlead._core import InvalidInput, StoredBlocks, WeightFolder

SMALL = 64 << 20  # bytes of tensors that may be computed with, in all

PIECE = 1 << 20  # elements that are read at a time

aten = torch.ops.aten


@dataclass
class Files:
    folder: WeightFolder
    computed: int = 0  # bytes of its tensors that were computed with


class Stored(torch.Tensor):
    """A tensor of these blocks."""

    blocks: StoredBlocks
    files: Files

    @staticmethod
    def __new__(cls, blocks: StoredBlocks, dtype: torch.dtype, files: Files) -> Stored:
        made: Any = torch.Tensor._make_wrapper_subclass(
            cls, tuple(blocks.dims), dtype=dtype, device=torch.device("cpu"), requires_grad=False
        )
        made.blocks, made.files = blocks, files
        stored: Stored = made
        return stored

    def __init__(self, *_: Any) -> None:
        super().__init__()

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        names = {self.blocks.name(self.files.folder, k) for k in range(self.blocks.count)}
        return f"Stored({', '.join(sorted(names))}, {list(self.shape)})"

    def like(self, blocks: StoredBlocks) -> Stored:
        return Stored(blocks, self.dtype, self.files)

    def computed(self) -> torch.Tensor:
        """With data, which is small, and stays in memory."""
        bytes_ = math.prod(self.shape) * self.dtype.itemsize
        self.files.computed += bytes_
        if self.files.computed > SMALL:
            raise InvalidInput(
                f"[export] Expected weights that stay as they are or are split, joined or transposed, but "
                f"{self.blocks.name(self.files.folder, 0)} ({bytes_:,} bytes, {self.files.computed:,} with those "
                "before it) is computed with when it is loaded. Export without in_place."
            )
        return self.read()

    def read(self) -> torch.Tensor:
        made = torch.empty(tuple(self.shape), dtype=self.dtype)
        for k in range(self.blocks.count):
            start, sizes, dtype, data = self.blocks.block(self.files.folder, k)
            place = tuple(slice(at, at + size) for at, size in zip(start, sizes, strict=True))
            made[place] = torch.from_numpy(data).view(getattr(torch, dtype)).view(sizes).to(self.dtype)
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
    return x.like(x.blocks)


def cast(x: Stored, *, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> Any:
    if device is not None and torch.device(device).type != "cpu":
        return NotImplemented
    return Stored(x.blocks, dtype or x.dtype, x.files)


def cut(x: Stored, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    axis = dim % x.dim()
    low, high, _ = slice(start, end).indices(x.shape[axis])
    if step != 1:
        return NotImplemented
    return x.like(x.blocks.cut(axis, low, max(low, high)))


def select(x: Stored, dim: int, index: int) -> Any:
    axis = dim % x.dim()
    index %= x.shape[axis]
    return x.like(x.blocks.cut(axis, index, index + 1).without(axis))


def split(x: Stored, size: int | Sequence[int], dim: int = 0) -> Any:
    whole = x.shape[dim]
    sizes = [min(size, whole - at) for at in range(0, whole, size)] if isinstance(size, int) else list(size)
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return [cut(x, dim, at, at + n) for at, n in zip(starts, sizes, strict=True)]


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    if not all(isinstance(t, Stored) and t.dtype == tensors[0].dtype for t in tensors):
        return NotImplemented
    return tensors[0].like(StoredBlocks.joined([t.blocks for t in tensors], dim % tensors[0].dim()))


def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    if not all(isinstance(t, Stored) for t in tensors):
        return NotImplemented
    axis = dim % (tensors[0].dim() + 1)
    return cat([unsqueeze(t, axis) for t in tensors], axis)


def unsqueeze(x: Stored, dim: int) -> Any:
    return x.like(x.blocks.with_one(dim % (x.dim() + 1)))


def squeeze(x: Stored, *dims: Any) -> Any:
    given = range(x.dim()) if not dims else dims[0] if isinstance(dims[0], (list, tuple)) else [dims[0]]
    blocks = x.blocks
    for axis in sorted((d % x.dim() for d in given), reverse=True):
        if x.shape[axis] == 1:
            blocks = blocks.without(axis)
    return x.like(blocks)


def permute(x: Stored, dims: Sequence[int]) -> Any:
    return x.like(x.blocks.permuted([d % x.dim() for d in dims]))


def transpose(x: Stored, dim0: int = 0, dim1: int = 1) -> Any:
    order = list(range(x.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return permute(x, order)


def view(x: Stored, sizes: Sequence[int]) -> Any:
    """Where the elements can be counted that way."""
    shape = torch.empty(tuple(x.shape), device="meta").view(tuple(sizes)).shape
    blocks = x.blocks.viewed(list(shape))
    return NotImplemented if blocks is None else x.like(blocks)


def equal(x: Any, other: Any) -> Any:
    """Whether two tensors have the same numbers, as it is asked of those that may be tied: a piece at a time."""
    if not isinstance(x, Stored) or not isinstance(other, Stored):
        return NotImplemented
    if x.shape != other.shape or x.dtype != other.dtype:
        return False
    if x.dim() == 0 or x.numel() == 0:
        return torch.equal(x.read(), other.read())
    step = max(1, PIECE * x.shape[0] // x.numel())
    return all(
        torch.equal(cut(x, 0, at, at + step).read(), cut(other, 0, at, at + step).read())
        for at in range(0, x.shape[0], step)
    )


RULES: dict[Any, Callable[..., Any]] = {
    aten.alias.default: same, aten.detach.default: same, aten.clone.default: same, aten.contiguous.default: same,
    aten.lift_fresh.default: same, aten._to_copy.default: cast, aten.slice.Tensor: cut, aten.select.int: select,
    aten.split.Tensor: split, aten.split_with_sizes.default: split, aten.cat.default: cat, aten.stack.default: stack,
    aten.unsqueeze.default: unsqueeze, aten.squeeze.default: squeeze, aten.squeeze.dim: squeeze,
    aten.squeeze.dims: squeeze, aten.permute.default: permute, aten.transpose.int: transpose, aten.t.default: transpose,
    aten.equal.default: equal, aten.view.default: view, aten._unsafe_view.default: view, aten.reshape.default: view,
    aten._reshape_alias.default: lambda x, sizes, _: view(x, sizes),
}  # fmt: skip
