"""The names that transformers.exporters gives to tensors: paths through the attributes of caches.

attribute_paths({"past_key_values": cache})
-> {"past_key_values.0.key": "past_key_values.layers.0.keys", ...}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from fairlead.tree.leaves import SKIPPED, get_leaf_tensors, join


def by_attributes(obj: Any, prefix: str = "", opened: tuple[int, ...] = ()) -> Iterator[tuple[str, torch.Tensor]]:
    """(path, tensor) of all that an object holds, whatever its class is."""
    if isinstance(obj, torch.Tensor):
        yield prefix or "output", obj
    elif isinstance(obj, SKIPPED) or id(obj) in opened:  # an object that holds itself
        return
    elif isinstance(obj, (list, tuple, set, frozenset)):
        for index, item in enumerate(obj):
            yield from by_attributes(item, join(prefix, index), (*opened, id(obj)))
    elif isinstance(obj, Mapping) or hasattr(obj, "__dict__"):
        for name, item in (obj if isinstance(obj, Mapping) else vars(obj)).items():
            yield from by_attributes(item, join(prefix, name), (*opened, id(obj)))


def attribute_paths(obj: Any) -> dict[str, str]:
    """Every name of get_leaf_tensors with that of transformers.exporters; the two agree outside of caches."""
    paths: dict[int, list[str]] = {}
    for path, tensor in by_attributes(obj):
        paths.setdefault(id(tensor), []).append(path)
    found = {}
    for name, tensor in get_leaf_tensors(obj).items():
        known = paths.get(id(tensor), [])  # several where a tensor is in several places
        path = name if name in known or not known else known[0]
        found[name] = path
        if path in known:
            known.remove(path)
    return found


def told_apart(inputs: list[str], outputs: list[str]) -> tuple[list[str], list[str]]:
    """A name on both sides gets `input.` and `output.`, as there."""
    both = {*inputs} & {*outputs}
    return (
        [f"input.{name}" if name in both else name for name in inputs],
        [f"output.{name}" if name in both else name for name in outputs],
    )
