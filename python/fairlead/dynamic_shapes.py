"""`dynamic_shapes` as torch.export takes them, spread over the flat leaves of the inputs.

A request per dim is (kind, name, min, max): kind 0 to be found out, 1 static, 2 dynamic.
"""

from __future__ import annotations

from typing import Any

import torch

from fairlead._core import InvalidInput
from fairlead.leaves import get_leaf_tensors

AUTO, STATIC, DYNAMIC = 0, 1, 2
LARGEST = 2**63 - 1


def requests(call, dynamic_shapes: Any) -> list[list[tuple]]:
    if dynamic_shapes is None:
        return [[(AUTO, "", 0, LARGEST)] * t.dim() for t in call.tensors]
    named = call.named
    if isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(named):
            raise InvalidInput(
                f"[export] Expected dynamic_shapes with one entry per argument ({len(named)}: {', '.join(named)}), "
                f"got {len(dynamic_shapes)}. Use None for an argument that is static."
            )
        by_name = dict(zip(named, dynamic_shapes, strict=True))
    elif isinstance(dynamic_shapes, dict):
        unknown = [k for k in dynamic_shapes if k not in named]
        if unknown:
            raise InvalidInput(
                f"[export] Expected dynamic_shapes for the arguments {', '.join(named)}, got {', '.join(map(str, unknown))}. "
                "Use the names of the call."
            )
        by_name = dynamic_shapes
    else:
        raise InvalidInput(f"[export] Expected dynamic_shapes as a tuple or a dict, got {type(dynamic_shapes).__name__}.")
    result = []
    for name, value in named.items():
        leaves = get_leaf_tensors({name: value})
        specs = flat_specs(by_name.get(name), leaves, name)
        for (leaf, tensor), spec in zip(leaves.items(), specs, strict=True):
            result.append([one_dim(leaf, axis, spec) for axis in range(tensor.dim())])
            check_axes(leaf, tensor, spec)
    return result


def is_leaf_spec(spec: Any) -> bool:
    if spec is None:
        return True
    if isinstance(spec, dict):
        return all(isinstance(k, int) for k in spec)
    return isinstance(spec, (tuple, list)) and len(spec) > 0 and all(is_dim(d) for d in spec)


def is_dim(d: Any) -> bool:
    return d is None or isinstance(d, (int, str)) or type(d).__name__ in ("Dim", "_Dim", "_DimHint", "DimHint", "_DerivedDim", "_StaticDim") or isinstance(d, type)


def flat_specs(spec: Any, leaves: dict, name: str) -> list:
    """Specs of one argument, one per leaf: nested containers are flattened, a cache is a flat list."""
    count = len(leaves)
    if spec is None:
        return [None] * count
    if count == 1 and is_leaf_spec(spec):
        return [spec]
    flat: list = []

    def walk(item):
        if is_leaf_spec(item) and not (isinstance(item, dict) and not item and False):
            flat.append(item)
        elif isinstance(item, dict):
            for inner in item.values():
                walk(inner)
        elif isinstance(item, (tuple, list)):
            for inner in item:
                walk(inner)
        else:
            raise InvalidInput(f"[export] Expected a dict of axes for {name} in dynamic_shapes, got {type(item).__name__}.")

    walk(spec)
    if len(flat) != count:
        raise InvalidInput(
            f"[export] Expected {count} entries for {name} in dynamic_shapes (one per tensor: {', '.join(list(leaves)[:4])}"
            f"{', ...' if count > 4 else ''}), got {len(flat)}."
        )
    return flat


def check_axes(leaf: str, tensor: torch.Tensor, spec: Any) -> None:
    if isinstance(spec, dict):
        wrong = [k for k in spec if not -tensor.dim() <= k < tensor.dim()]
        if wrong:
            raise InvalidInput(
                f"[export] Expected axes 0 to {tensor.dim() - 1} for {leaf} in dynamic_shapes, got {wrong[0]}."
            )
    elif isinstance(spec, (tuple, list)) and len(spec) != tensor.dim():
        raise InvalidInput(
            f"[export] Expected {tensor.dim()} entries for {leaf} in dynamic_shapes, one per axis, got {len(spec)}."
        )


def one_dim(leaf: str, axis: int, spec: Any) -> tuple:
    if spec is None:
        return (STATIC, "", 0, LARGEST)
    given = spec.get(axis, spec.get(axis - 10**6)) if isinstance(spec, dict) else spec[axis] if axis < len(spec) else None
    if given is None or isinstance(given, int):
        return (STATIC, "", 0, LARGEST)
    if isinstance(given, str):
        return (DYNAMIC, given, 0, LARGEST)
    kind = getattr(given, "type", None)
    hint = getattr(kind, "name", "")
    if hint:
        bounds = (getattr(given, "min", None) or 0, getattr(given, "max", None) or LARGEST)
        return ({"AUTO": AUTO, "STATIC": STATIC, "DYNAMIC": DYNAMIC}[hint], "", *bounds)
    name = getattr(given, "__name__", None)
    if name is None:
        raise InvalidInput(
            f"[export] Expected a name, a Dim, Dim.DYNAMIC, Dim.AUTO, Dim.STATIC or None for axis {axis} of {leaf}, got {given!r}."
        )
    low, high = getattr(given, "min", 0) or 0, getattr(given, "max", LARGEST)
    high = LARGEST if not isinstance(high, int) or high > LARGEST else high
    return (DYNAMIC, name, low, high)
