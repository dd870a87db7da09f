"""Operators asked alone, without data, for the sizes of their results."""

from __future__ import annotations

from typing import Any

import torch


def alone_sizes(name: str, calls: list[list[Any] | None]) -> list[list[list[int]] | None]:
    """Of each call the sizes of its results; None where the operator refuses it or has no form without data."""
    func = operator(name)
    return [None if func is None or args is None else sizes_of(func, args) for args in calls]


def operator(name: str) -> Any:
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, torch._ops.OpOverload) else None


def sizes_of(func: Any, args: list[Any]) -> list[list[int]] | None:
    kept, named = [], {}
    try:
        for declared, value in zip(func._schema.arguments, args, strict=False):
            given = made(value, str(declared.real_type))
            if declared.kwarg_only:
                named[declared.name] = given
            else:
                kept.append(given)
        with torch.no_grad():
            out = func(*kept, **named)
    except Exception:  # whatever it is, a negative size among the arguments, too: there is no answer
        return None
    results = out if isinstance(out, (tuple, list)) else [out]
    flat = [t for each in results for t in (each if isinstance(each, (tuple, list)) else [each])]
    return [list(t.shape) if isinstance(t, torch.Tensor) else [] for t in flat]


def made(value: Any, kind: str) -> Any:
    """(sizes, dtype) is a tensor, (dtype,) an element type; every device is the one without data."""
    if isinstance(value, tuple):
        if len(value) == 1:
            return getattr(torch, value[0], None)
        return torch.empty(value[0], dtype=getattr(torch, value[1]), device="meta")
    if isinstance(value, list):
        return [made(item, kind) for item in value]
    if isinstance(value, str) and "str" not in kind:
        return torch.device("meta") if "Device" in kind else None  # layouts and formats do not decide sizes
    return value
