"""What an earlier call left on a model for calls of the same sizes: a grid, a mask, a table of positions.

A run that finds it there executes less than one that makes it, and the two would be taken for different programs. So
such a model is first called at sizes of its own, which leave something of theirs: after that every run makes its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fairlead.base.alone import changed
from fairlead.patches.model_state import TABLES, ModelState
from fairlead.tree.calls import Call, resized

LARGEST = 4_000_000  # elements of an input
MOST = 6  # sizes that are tried


def leave_other_sizes(
    model: torch.nn.Module, call: Call, run: Callable[[tuple[Any, ...], dict[str, Any]], list[torch.Tensor]]
) -> None:
    """Until the export ends nothing on the model is of the example's sizes, where that changes no result."""
    held = _held_tensors(model)
    if held:
        state = ModelState(model)
        changed(tuple, state.restore)
        _call_elsewhere(model, call, run, state, held)


def _held_tensors(model: torch.nn.Module) -> list[tuple[torch.nn.Module, str, object]]:
    """Attributes with tensors that are neither parameters nor buffers."""

    def holds(value: Any) -> bool:
        if isinstance(value, (list, tuple, dict)):
            value = value.values() if isinstance(value, dict) else value
            return any(isinstance(item, torch.Tensor) for item in value)
        return isinstance(value, torch.Tensor)

    return [
        (module, name, value)
        for module in model.modules()
        if not isinstance(module, torch.jit.ScriptModule)
        for name, value in module.__dict__.items()
        if name not in TABLES and holds(value)
    ]


def _call_elsewhere(model: torch.nn.Module, call: Call, run: Any, state: ModelState, held: list[Any]) -> None:
    shapes = [list(t.shape) for t in call.tensors]
    tripled = [
        [[3 * n if n == size else n for n in s] for s in shapes]
        for size in sorted({n for s in shapes for n in s if n > 1})[:MOST]
    ]
    others = [sizes for sizes in tripled if all(torch.Size(s).numel() <= LARGEST for s in sizes)]

    def outputs(sizes: Any) -> list[torch.Tensor] | None:
        before = ModelState(model)
        tensors = [resized(t, s) for t, s in zip(call.tensors, sizes, strict=True)]
        try:
            return [t.clone() for t in run(*call.with_tensors([t.clone() for t in tensors]))]
        except Exception:  # sizes that the model does not take
            before.restore()
            return None

    def leave() -> bool:
        others[:] = [sizes for sizes in others if outputs(sizes) is not None]
        return bool(others)

    def as_expected() -> bool:
        again = outputs(shapes)
        if again is None or expected is None or len(again) != len(expected):
            return False
        return all(map(torch.equal, again, expected))

    expected = outputs(shapes)
    if expected is None or state.changes():  # what changes at every call is no leftover
        return state.restore()
    if not leave() or not state.changes() or not as_expected():
        return state.restore()
    leave()  # the call at the example's sizes has left something again
    elsewhere = ModelState(model)
    left = [(module, name) for module, name, value in held if module.__dict__.get(name) is not value]

    def forget() -> None:
        for module, name in left:
            module.__dict__[name] = None

    # A model that makes what is missing needs no sizes of another call, which it would compare with its own.
    forget()
    makes = as_expected()
    for sizes in others if makes else ():
        forget()
        makes = makes and outputs(sizes) is not None
    elsewhere.restore()
    if makes:
        forget()
    return None
