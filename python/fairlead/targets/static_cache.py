"""A cache that is one buffer in a portable file: how it is run for checks, and what a contract says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from fairlead.contract import Contract, Tensor
from fairlead.verify.ort_values import from_tensor, to_tensor
from fairlead.verify.runtime_check import OnnxSession

AXIS = 2
MORE = 3  # places of a buffer that no token takes
UNUSED = 7.0  # what lies there: nobody may read it
LENGTH = "cache"


class StaticSession(OnnxSession):
    """Takes and gives caches as long as their tokens: the buffer has more, which is checked with the rest."""

    def __init__(self, path: str, packs: bool, pairs: Mapping[str, str], mask: str, axis: int):
        super().__init__(path, packs=packs)
        self.pairs, self.mask, self.axis = pairs, mask, axis
        self.presents = set(pairs.values())

    def run(self, feeds: dict[str, torch.Tensor]) -> list[Any]:
        total = feeds[self.mask].shape[self.axis]
        longer = {past: buffer(feeds[past], total + MORE) for past in self.pairs if past in feeds}
        values = super().run(feeds | longer)
        return [
            from_tensor(to_tensor(value).narrow(AXIS, 0, total).contiguous()) if name in self.presents else value
            for name, value in zip(self.outputs, values, strict=True)
        ]


def buffer(tensor: torch.Tensor, length: int) -> torch.Tensor:
    shape = list(tensor.shape)
    shape[AXIS] = length - shape[AXIS]
    return torch.cat([tensor, torch.full(shape, UNUSED, dtype=tensor.dtype)], AXIS)


def note_static(contract: Contract, found: tuple[int, str], pairs: Mapping[str, str]) -> None:
    layers, why = found
    contract.static_cache = layers
    if why:
        contract.notes.append(f"The cache is not static: {why}")
        return
    names = {*pairs, *pairs.values()}

    def longer(row: Tensor) -> Tensor:
        shape = [*row.shape[:AXIS], LENGTH, *row.shape[AXIS + 1 :]]
        return replace(row, shape=shape) if row.name in names else row

    contract.inputs = [longer(row) for row in contract.inputs]
    contract.outputs = [longer(row) for row in contract.outputs]
    contract.notes.append(
        f"The cache of {layers} layers is static: past and present may be one buffer, with room for all tokens; how "
        "many are in it is read from the mask"
    )
