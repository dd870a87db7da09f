"""One change of many small tensors: those of the same type and shape are changed together, as a stack.

A call may have thousands of inputs, and what an operator costs beside its work is the same for one tensor and for a
stack of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch

MANY = 64  # tensors alike
SMALL = 4096  # elements of one that is copied once more
UNBIND: Any = torch.unbind_copy  # whose annotation says that it returns nothing
STACKED = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


class Stacks:
    """Tensors by what they have in common. Floats alone: of integers values matter (`tree/calls.py`)."""

    def __init__(self, tensors: Sequence[torch.Tensor]):
        self.tensors = tensors
        numbers: dict[Hashable, int] = {}
        self.kinds = [numbers.setdefault(kind_of(t, k), len(numbers)) for k, t in enumerate(tensors)]
        self.any = len(numbers) + MANY <= len(tensors)
        self.alike = len(numbers) == 1

    @functools.cached_property
    def all(self) -> torch.Tensor:
        return torch.stack(list(self.tensors))

    def changed(
        self,
        settings: Sequence[Hashable],
        one: Callable[[int], torch.Tensor],
        stacked: Callable[[torch.Tensor, int], torch.Tensor],
    ) -> list[torch.Tensor]:
        """A new tensor for each: `one(k)`, or a row of `stacked(stack, k)` where many are like the tensor k and have
        its setting. No two of them share memory."""
        if not self.any:
            return [one(k) for k in range(len(self.tensors))]
        if self.alike and len(set(settings)) == 1:
            return list(UNBIND(stacked(self.all, 0)))
        groups: dict[Hashable, list[int]] = {}
        for k, key in enumerate(zip(self.kinds, settings, strict=True)):
            groups.setdefault(key, []).append(k)
        made: list[torch.Tensor] = list(self.tensors)
        for places in groups.values():
            if len(places) < MANY:
                rows = [one(k) for k in places]
            else:
                rows = UNBIND(stacked(torch.stack([self.tensors[k] for k in places]), places[0]))
            for k, row in zip(places, rows, strict=True):
                made[k] = row
        return made


def kind_of(tensor: torch.Tensor, k: int) -> Hashable:
    """Type and shape of one that can be stacked; its own number otherwise."""
    plain = tensor.dtype in STACKED and tensor.is_contiguous() and not tensor.requires_grad
    return (tensor.dtype, tensor.shape) if plain and 0 < tensor.numel() <= SMALL else k
