"""The tensors of a run, made as an experiment asks for them (`_core.Input`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from fairlead.patches.model_state import ModelState
from fairlead.tree.calls import Call, with_other_tensors
from fairlead.verify.runtime_check import eager

if TYPE_CHECKING:
    from fairlead.experiment.model_program import Program
    from fairlead.verify.checked_rows import Measured


class Inputs:
    """What runs are made of: the user's calls, the examples of programs, the calls of checks."""

    def __init__(self, calls: list[Call], programs: dict[int, Program], measured: list[Measured]):
        self.calls, self.programs, self.measured = calls, programs, measured

    def example(self, given: Any, parent: int) -> Call:
        """The call that a program is opened with."""
        if parent < 0:
            return self.calls[0]
        number = int(given.number)
        if given.kind == "next":
            return self.programs[number].after
        if given.kind not in ("sizes", "other"):
            return self.calls[number]
        own = self.programs[parent]
        tensors = own.with_other_values(given.sizes, number) if given.kind == "other" else None
        return with_other_tensors(own.call, tensors or own.at(given.sizes))

    def of(self, program: Program, given: Any) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments of a run; None where there are no such other values."""
        call = program.call
        if given.kind == "sizes":
            return call.with_tensors(program.at(given.sizes))
        if given.kind == "other":
            owner = self.programs[given.of] if given.of >= 0 else program
            others = owner.with_other_values(given.sizes, given.number)
            return None if others is None else call.with_tensors(others)
        tensors: Any
        if given.kind == "checked":
            tensors = self.measured[given.number].tensors
        elif given.kind == "next":
            call = self.programs[given.number].after
            tensors = call.tensors
        else:
            tensors = self.calls[given.number].in_order_of(call)
        return call.with_tensors([t.clone() for t in tensors])


def accepts(model: torch.nn.Module, call: Call) -> bool:
    """Whether a model itself, not told that it is traced, takes a call."""
    state = ModelState(model)
    args, kwargs = call.with_tensors([t.clone() for t in call.tensors])
    try:
        eager(model, args, kwargs)
    except Exception:  # whatever it is
        return False
    finally:
        state.restore()
    return True
