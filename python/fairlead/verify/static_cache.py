"""A file whose cache is one buffer, run with caches that are as long as their tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch

from fairlead import _core
from fairlead.base.json_form import Map, problem, whole
from fairlead.verify.ort_values import from_tensor, to_tensor
from fairlead.verify.runtime_check import OnnxSession

STATIC_CACHE = "fairlead.static_cache"  # in the metadata of a file
FORM = {"pairs": Map(str), "mask": str, "axis": whole(0, 7)}
AXIS = 2
MORE = 3  # places of a buffer that no token takes
UNUSED = 7.0  # what lies there: nobody may read it


class StaticSession(OnnxSession):
    """The buffer has more than the tokens, which is checked with the rest."""

    def __init__(self, path: str, pairs: Mapping[str, str], mask: str, axis: int, **options: Any):
        super().__init__(path, **options)
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


def session_of(path: str, seconds: float | None = None) -> OnnxSession:
    """Of a file on the disk, which says itself whether its cache is static."""
    _core.check_functions(path)
    text = _core.read_summary(path)["metadata"].get(STATIC_CACHE)
    if text is None:
        return OnnxSession(path, seconds)
    facts = json.loads(text)
    if expected := problem(facts, FORM):
        raise ValueError(f"expected {expected} under {STATIC_CACHE} in its metadata")
    return StaticSession(path, facts["pairs"], facts["mask"], facts["axis"], seconds=seconds)
