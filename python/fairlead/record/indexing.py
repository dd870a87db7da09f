"""x[..., :n] as one operator at every size.

PyTorch leaves out a slice that happens to cover its dimension, so that x[:, :8] is a slice where the dimension has 9
elements and nothing where it has 8. Recorded, that looks like another program. Here such slices are always executed.
"""

from __future__ import annotations

import operator
from typing import Any

import torch


def cut(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    """The tensor with the slices of `index` that may cover everything applied, and the index that remains."""
    items = index if type(index) is tuple else (index,)
    if not any(may_cover(item) for item in items):
        return tensor, index
    dims = [dims_of(item) for item in items]
    if None in dims:
        return tensor, index
    rest = tensor.dim() - sum(dims)
    if rest < 0:
        return tensor, index  # too many: PyTorch says so
    left: list[Any] = []
    dim = 0
    for item, size in zip(items, dims, strict=True):
        if may_cover(item):
            tensor = torch.ops.aten.slice.Tensor(tensor, dim, 0, operator.index(item.stop), 1)
            item = slice(None)
        left.append(item)
        dim += rest if item is Ellipsis else size
    return tensor, tuple(left)


def may_cover(item: Any) -> bool:
    return type(item) is slice and item.stop is not None and item.start in (None, 0) and item.step in (None, 1)


def dims_of(item: Any) -> int | None:
    """How many dimensions an index takes up; None where that is left to PyTorch."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, torch.Tensor):
        return item.dim() if item.dtype in (torch.bool, torch.uint8) else 1
    return 1 if isinstance(item, (int, slice)) else None


def getitem(tensor: torch.Tensor, index: Any) -> torch.Tensor:
    left, rest = cut(tensor, index)
    if left is not tensor and all(item is Ellipsis or (type(item) is slice and item == slice(None)) for item in rest):
        return left  # nothing remains; x[:, 3:6], in the next step of a loop, is one operator, too
    return left[rest]


def setitem(tensor: torch.Tensor, index: Any, value: Any) -> None:
    tensor, index = cut(tensor, index)
    tensor[index] = value


CANONICAL = {torch.Tensor.__getitem__: getitem, torch.Tensor.__setitem__: setitem}
