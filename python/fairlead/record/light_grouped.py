"""Results of grouped matrix products without data: PyTorch itself refuses any type but bfloat16 there."""

from __future__ import annotations

from typing import Any

import torch

GROUPED = torch.ops.aten._grouped_mm.default


def grouped(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor | None:
    """Of rows in groups times a matrix for each group; None where PyTorch has to say what it is."""
    left, right, *rest = args
    given = kwargs | dict(zip(("offs", "bias", "out_dtype"), rest, strict=False))
    fits = left.dim() == 2 and right.dim() == 3 and left.shape[1] == right.shape[1] and given.get("bias") is None
    if not fits or given.get("out_dtype") not in (None, left.dtype) or given.get("offs") is None:
        return None
    made: torch.Tensor = left.new_empty((left.shape[0], right.shape[2]))
    return made
