"""Operators that take a plain number in torch where the recorded one follows a size, written with others."""

from __future__ import annotations

from typing import Any

import torch


def linspace(start: Any, end: Any, steps: int, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    """As PyTorch computes it: from the start in the first half, from the end in the second."""
    places = torch.arange(steps)
    step = (end - start) / torch.sym_max(steps - 1, 1)
    values = torch.where(places < steps // 2, start + step * places, end - step * (steps - 1 - places))
    # One step is the start alone.
    return torch.where(places + steps > 1, values, start).to(dtype or torch.get_default_dtype())


def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, dtype: torch.dtype | None = None, **_: Any
) -> torch.Tensor:
    return torch.pow(base, linspace(start, end, steps)).to(dtype or torch.get_default_dtype())


REPLACED = {
    f"aten.{name}.{overload}": function
    for name, function in (("linspace", linspace), ("logspace", logspace))
    for overload in ("default", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
}
