"""Models that draw random numbers: which of their outputs differ from run to run, by eager against itself.

1. Eager runs RUNS times at the same inputs, each time from another seed. The caller's generator stays as it was.
2. An output that differs between these runs by more than the tolerance is drawn: the file draws it anew, and its values
   prove nothing. Only its type is checked, and the axes whose size is the same in all runs.
3. An output that repeats does not depend on what was drawn, and is compared as any other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from fairlead._core import Discrepancy
from fairlead.base.errors import caused
from fairlead.verify.runtime_check import TensorValue, difference

RUNS = 4  # two draws of a few numbers may be equal by chance


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


class Draws:
    """What is known about the outputs of a model that draws; told by one call after the other."""

    def __init__(self, names: list[str], tolerance: float | None):
        self.names, self.tolerance = names, tolerance
        self.axes: dict[str, list[int]] = {}  # drawn output -> axes whose size is drawn too
        self.problems: dict[str, str] = {}

    def runs(self, run: Callable[[], list[torch.Tensor]]) -> list[torch.Tensor]:
        """The outputs of the first of several runs; what differs in the others is kept."""
        expected: list[torch.Tensor] = []
        for seed in range(RUNS):
            with seeded(seed):
                found = run()
            expected = expected or found
            for name, first, other in zip(self.names, expected, found, strict=False):
                self.look(name, first, other)
        return expected

    def look(self, name: str, first: torch.Tensor, other: torch.Tensor) -> None:
        moved = [axis for axis, (a, b) in enumerate(zip(first.shape, other.shape, strict=False)) if a != b]
        problem = f"has other sizes, {list(first.shape)} and {list(other.shape)}" if moved else ""
        if not moved:
            problem = difference(first, TensorValue(other), self.tolerance).problem
        if problem:
            self.axes[name] = sorted({*self.axes.get(name, []), *moved})
            self.problems.setdefault(name, problem)

    def in_words(self) -> str:
        """For the line of the contract that says what was checked."""
        if not self.axes:
            return "it draws random numbers, but its outputs repeat"
        names = list(self.axes)
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        which = "its outputs" if len(names) == len(self.names) > 1 else shown
        return f"shapes and types only of {which}, drawn anew at each run"


def drawn_with(assumptions: list[dict[str, Any]]) -> str:
    """aten.rand.default in embeddings at modeling_vit_mae.py:311"""
    drawn = [a for a in assumptions if a["kind"] == "random"]
    places = [f"{a['operator']} in {a['module'] or 'the model'} at {a['source']}" for a in drawn[:3]]
    return "; ".join(places) + (f"; and {len(drawn) - 3} more" if len(drawn) > 3 else "")


def refusal(draws: Draws, assumptions: list[dict[str, Any]], nothing_written: str) -> Discrepancy:
    """The error of a model whose outputs do not repeat."""
    name, problem = next(iter(draws.problems.items()))
    cause = f"eager differs from itself: output {name!r} {problem} between two runs at the same inputs"
    error = Discrepancy(
        f"[verify] Expected a model whose outputs repeat, but {cause}. It draws with {drawn_with(assumptions)}. "
        f"{nothing_written} "
        "Pass what it draws as an input where the model has one (noise), or export with allow_random=True "
        "(--allow-random): the file then draws anew at each run, and only shapes and types of such outputs are checked."
    )
    error.details = [a for a in assumptions if a["kind"] == "random"]
    return caused(error, cause)
