"""Runs without weights: what touches a parameter becomes a tensor without data, everything else is computed.

Masks, positions and lengths stay real, so that what a model reads of them is right, and a run costs Python alone, at
any number of parameters and at any size. A model that reads what its weights decide (the experts of a token, a
predicted length) raises, and is run for real.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

META, CPU = torch.device("meta"), torch.device("cpu")


class Light:
    """The parameters of a model without their data, and calls with them."""

    def __init__(self, model: torch.nn.Module):
        self.parameters = {id(p): p for p in model.parameters()}  # held, so that no id is used again
        self.twins: dict[int, torch.Tensor] = {}
        self.bytes = sum(p.numel() * p.element_size() for p in self.parameters.values())

    def without_data(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_meta:
            return tensor
        if id(tensor) not in self.parameters:
            return tensor.to("meta")
        twin = self.twins.get(id(tensor))
        if twin is None:
            twin = self.twins[id(tensor)] = torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
            )
        return twin

    def call(self, func: Any, args: tuple, kwargs: dict | None) -> Any:
        """The function on tensors without data where one of its tensors has none."""
        kwargs = kwargs or {}
        leaves = pytree.tree_leaves((args, kwargs))
        if not any(isinstance(t, torch.Tensor) and (t.is_meta or id(t) in self.parameters) for t in leaves):
            return func(*args, **kwargs)

        def convert(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                return self.without_data(leaf)
            return META if isinstance(leaf, torch.device) else leaf

        args, kwargs = pytree.tree_map(convert, (args, kwargs))
        return func(*args, **kwargs)


def device_of(session: Any, func: Any, args: tuple, kwargs: dict | None) -> torch.device:
    """`x.device` as it is in a run with weights."""
    found = func(*args, **kwargs or {})
    return CPU if session.light is not None and found.type == "meta" else found


def stays(session: Any, func: Any, args: tuple, kwargs: dict | None) -> Any:
    """`x.to(device)` of a tensor without data: there is one device only."""
    session.core.note_call(func, args, kwargs)
    kwargs = dict(kwargs or {})
    if session.light is not None and args[0].is_meta:
        if kwargs.get("device") is not None:
            kwargs["device"] = META
        rest = [META if is_device(a) else a for a in args[1:]]
        rest = [a.dtype if isinstance(a, torch.Tensor) else a for a in rest]
        if func in (torch.Tensor.cpu, torch.Tensor.cuda):
            return args[0]
        args = (args[0], *rest)
    return func(*args, **kwargs)


def is_device(value: Any) -> bool:
    return isinstance(value, (str, torch.device))
