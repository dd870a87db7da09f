"""Python state: a model that remembers a call gives something else at the next one, and a file cannot.

Eager is called twice at the example, without putting the model back in between. Where an output differs, what the first
call changed on the model (`self.n`, `self.seen`) is an assumption of the contract: the file computes the first call.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from fairlead.patches.model_state import ModelState
from fairlead.verify.runtime_check import TensorValue, difference


def remembered(
    model: torch.nn.Module, run: Callable[[], list[torch.Tensor]], names: list[str], state: ModelState,
    tolerance: float | None, run_other: Callable[[], list[torch.Tensor]] | None = None,
) -> tuple[str, str] | None:  # fmt: skip
    """What happens where a second call differs from the first, and the line of the model; nothing where it does not.
    Where the first changes the model, a call with other values behind it is compared with the same call alone."""
    try:
        first = [t.clone() for t in run()]
        changed = state.changes()
        if changed and run_other is not None:
            first = [t.clone() for t in fresh(run_other, state)] or first
            run()
            run = run_other
        try:
            second = run()
        except Exception as error:  # the second call, not the model
            return assumption(
                model, changed, f"the next call raises {type(error).__name__}: {str(error).splitlines()[0][:200]}"
            )
    finally:
        state.restore()
    for name, a, b in zip(names, first, second, strict=False):
        if a.shape != b.shape:
            return assumption(model, changed, f"output {name!r} of the next call has other sizes")
        if difference(a, TensorValue(b), tolerance).problem:
            return assumption(model, changed, f"output {name!r} of the next call differs")
    return None


def fresh(run: Callable[[], list[torch.Tensor]], state: ModelState) -> list[torch.Tensor]:
    """What a call gives that is the first one."""
    state.restore()
    try:
        return run()
    finally:
        state.restore()


def assumption(model: torch.nn.Module, changed: list[str], what: str) -> tuple[str, str]:
    shown = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
    cause = f"forward changes {shown}" if changed else "forward keeps something outside of the model"
    return f"{cause}, and {what}", place_of(model)


def place_of(model: torch.nn.Module) -> str:
    code = getattr(getattr(type(model), "forward", None), "__code__", None)
    return f"{code.co_filename.rpartition('site-packages/')[2]}:{code.co_firstlineno}" if code else "forward"
