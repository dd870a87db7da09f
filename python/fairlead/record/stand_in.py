"""Calls of a model whose weights nobody reads: what it returns has the right sizes, and numbers of ours.

For what only needs to know how a model is called, such as a short generation that shows its arguments.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fairlead.record.light import Light, device_of, stays
from fairlead.tree.leaves import leaf_tensors, replace_leaf_tensors


class _Dispatch(TorchDispatchMode):
    def __init__(self, light: Light):
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.light = light

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return self.light.call(func, args, kwargs)


class _Functions(TorchFunctionMode):
    """There is one device only, also where a tensor has no data."""

    def __init__(self, light: Light):
        super().__init__()
        self.session = SimpleNamespace(light=light, core=SimpleNamespace(note_call=lambda *_: None))

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func == torch.Tensor.device.__get__:  # made anew each time
            return device_of(self.session, func, args, kwargs)
        if func in (torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.cuda):
            return stays(self.session, func, args, kwargs)
        return func(*args, **kwargs or {})


def with_numbers(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers for the same sizes, none of them alike and none large."""
    if not tensor.is_meta:
        return tensor
    if not tensor.is_floating_point():
        return torch.zeros(tensor.shape, dtype=tensor.dtype)
    return torch.linspace(-1, 1, tensor.numel()).reshape(tensor.shape).to(tensor.dtype)


@contextlib.contextmanager
def without_weights(model: torch.nn.Module) -> Iterator[None]:
    """Within the block a call of the model computes sizes alone."""
    light, forward = Light(model), model.forward

    @functools.wraps(forward)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        with torch.no_grad(), _Dispatch(light), _Functions(light):
            out = forward(*args, **kwargs)
        if isinstance(out, torch.Tensor):
            return with_numbers(out)
        return replace_leaf_tensors(out, [with_numbers(t) for t in leaf_tensors(out)])

    before = model.__dict__.get("forward")
    model.__dict__["forward"] = stand_in
    try:
        yield
    finally:
        if before is None:
            del model.__dict__["forward"]
        else:
            model.__dict__["forward"] = before
