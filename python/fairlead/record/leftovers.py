"""What an earlier call left on a model for calls of the same sizes: a grid, a mask, a table of positions.

A run that finds it there executes less than one that makes it, and the two would be taken for different programs. So
such a model is first called at sizes of its own, which leave something of theirs: after that every run makes its own.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from fairlead.alone import changed
from fairlead.inputs import Call, resized
from fairlead.record.state import TABLES, ModelState

LARGEST = 4_000_000  # elements of an input
MOST = 6  # sizes that are tried


def leave_other_sizes(model: torch.nn.Module, call: Call, run: Callable[[tuple, dict], list[torch.Tensor]]) -> None:
    """Until the export ends nothing on the model is of the example's sizes, where that changes no result."""
    if _holds_tensors(model):
        state = ModelState(model)
        changed(tuple, state.restore)
        _call_elsewhere(model, call, run, state)


def _holds_tensors(model: torch.nn.Module) -> bool:
    """Whether a module has tensors that are neither parameters nor buffers."""

    def holds(value) -> bool:
        if isinstance(value, (list, tuple, dict)):
            return any(
                isinstance(item, torch.Tensor) for item in (value.values() if isinstance(value, dict) else value)
            )
        return isinstance(value, torch.Tensor)

    return any(
        holds(value)
        for module in model.modules()
        if not isinstance(module, torch.jit.ScriptModule)
        for name, value in module.__dict__.items()
        if name not in TABLES
    )


def _call_elsewhere(model, call: Call, run, state: ModelState) -> None:
    shapes = [list(t.shape) for t in call.tensors]
    tripled = [
        [[3 * n if n == size else n for n in s] for s in shapes]
        for size in sorted({n for s in shapes for n in s if n > 1})[:MOST]
    ]
    others = [sizes for sizes in tripled if all(torch.Size(s).numel() <= LARGEST for s in sizes)]

    def outputs(sizes) -> list[torch.Tensor] | None:
        before = ModelState(model)
        tensors = [resized(t, s) for t, s in zip(call.tensors, sizes, strict=True)]
        try:
            return [t.clone() for t in run(*call.with_tensors([t.clone() for t in tensors]))]
        except Exception:  # sizes that the model does not take
            before.restore()
            return None

    def leave() -> bool:
        ran = [outputs(sizes) is not None for sizes in others]
        return any(ran)

    expected = outputs(shapes)
    if expected is None or state.changes():  # what changes at every call is no leftover
        return state.restore()
    again = outputs(shapes) if leave() and state.changes() else None
    if again is None or len(again) != len(expected) or not all(map(torch.equal, again, expected)):
        return state.restore()
    leave()  # the call at the example's sizes has left something again
    return None
