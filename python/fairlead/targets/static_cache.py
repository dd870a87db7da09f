"""What a contract says of a cache that is one buffer in a portable file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fairlead.contract import Contract, Tensor
from fairlead.verify.static_cache import AXIS

LENGTH = "cache"


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
