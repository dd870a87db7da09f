"""Operators that take a plain number in torch where the recorded one follows a size, written with others."""

from __future__ import annotations

from typing import Any

import torch


def linspace(start: float, end: float, steps: int, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    """As PyTorch computes it: from the start in the first half, from the end in the second."""
    places = torch.arange(steps)
    step = (end - start) / torch.sym_max(steps - 1, 1)
    values = torch.where(places < steps // 2, start + step * places, end - step * (steps - 1 - places))
    if isinstance(start, (int, float)) and dtype is None:
        dtype = torch.get_default_dtype()
    return torch.where(places + steps > 1, values, start).to(dtype)  # one step: the start


REPLACED = {"aten.linspace.default": linspace}
