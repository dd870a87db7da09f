"""How much a file is checked: everything where a run costs nothing, a few runs where the model is large.

The measure is what a run costs everywhere alike, weights and operators, not seconds of this machine: an export does not
check less because something else was running.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass
class Effort:
    """How many settings of each sort are checked."""

    values: int  # other values at the example's sizes
    near: int  # sizes next to those that ran, 1 among them
    far: int  # sizes of check_sizes.py
    elements: int  # of the inputs, at far sizes


SMALL = Effort(values=8, near=3, far=24, elements=1 << 15)
MEDIUM = Effort(values=2, near=2, far=2, elements=1 << 14)  # a forward pass of some hundredths of a second
LARGE = Effort(values=1, near=2, far=0, elements=0)  # weights are read at memory speed: three runs beside the example
MEDIUM_BYTES, LARGE_BYTES = 16 << 20, 200 << 20
MEDIUM_OPERATORS = 600
MEDIUM_INPUTS, LARGE_INPUTS = 300, 2000  # each is made, handed over and bound by name


def effort_for(model: torch.nn.Module, operators: int, inputs: int = 0) -> Effort:
    held = {t.data_ptr(): t.numel() * t.element_size() for t in [*model.parameters(), *model.buffers()]}
    weights = sum(held.values())
    if weights > LARGE_BYTES or inputs > LARGE_INPUTS:
        return LARGE
    medium = weights > MEDIUM_BYTES or operators > MEDIUM_OPERATORS or inputs > MEDIUM_INPUTS
    return MEDIUM if medium else SMALL
