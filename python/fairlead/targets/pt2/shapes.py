"""What torch.export is told about the sizes of a call: the sizes it is traced at, and which of them are dynamic."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from fairlead.contract import LARGEST


def traced_setting(probed: Any) -> list[int]:
    """The setting that was run whose sizes can best be told apart: none is 1, as many different ones as possible.

    torch.export takes a size of 0 or 1 for a constant, and two equal sizes for one.
    """
    return list(max(probed.run_values, key=lambda values: (sum(v > 1 for v in values), len(set(values)))))


def dims_by_leaf(probed: Any, bounds: dict[str, tuple[int, int]]) -> list[dict[int, Any]]:
    """{axis: Dim} per leaf, with the bounds that follow from those of the symbols: (min, max) by name.

    Every dynamic dimension is Dim.DYNAMIC: a named Dim cannot say past + sequence. How they hang together is stated in
    the program, and torch refuses a program in which one of them turns out to be fixed.
    """
    lows = probed.sizes_at([bounds[s.name][0] for s in probed.symbols])
    # The sum of unbounded symbols must not overflow: it is not used, see below.
    highs = probed.sizes_at([min(bounds[s.name][1], 1 << 20) for s in probed.symbols])
    unbounded = {name for name, (_, most) in bounds.items() if most >= LARGEST}
    result = []
    for shape, low, high in zip(probed.shapes, lows, highs, strict=True):
        dims = {}
        for axis, size in enumerate(shape):
            if size.value is not None:
                continue
            most = None if unbounded.intersection(size.symbols) else high[axis]
            least = low[axis] if low[axis] > 1 else None
            dims[axis] = torch.export.Dim.DYNAMIC(min=least, max=most)
        result.append(dims)
    return result


def bounds_of(probed: Any) -> dict[str, tuple[int, int]]:
    return {s.name: (max(1, s.min), s.max) for s in probed.symbols}


def dynamic_shapes_of(arguments: Any, dims: dict[int, dict[int, Any]]) -> Any:
    """`dynamic_shapes` for torch.export in the structure of the arguments; `dims` by the id of each tensor.

    A class that is registered with torch's trees (a cache) is a list of its children.
    """
    if isinstance(arguments, torch.Tensor):
        return dims.get(id(arguments)) or None
    node = pytree.SUPPORTED_NODES.get(type(arguments))
    if node is None:
        return None
    if isinstance(arguments, dict):
        return {key: dynamic_shapes_of(value, dims) for key, value in arguments.items()}
    if type(arguments) in (tuple, list):
        return type(arguments)(dynamic_shapes_of(value, dims) for value in arguments)
    return [dynamic_shapes_of(child, dims) for child in node.flatten_fn(arguments)[0]]
