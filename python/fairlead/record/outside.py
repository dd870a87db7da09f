"""Nothing follows the inputs unseen: a tensor or number that no recorded operator made is the same for all values.

Two runs at the same sizes with other values are compared (`follows_from_outside` of the core). What differs and came
from outside (NumPy, a list, another thread, a kernel that is not PyTorch's) would be a constant of the file: refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fairlead import _core
from fairlead.base.errors import error_found
from fairlead.tree.values import variations

if TYPE_CHECKING:
    from fairlead.record.session import RecordingSession
    from fairlead.tree.calls import Call


def outside_of(
    session: RecordingSession, call: Call, first: list[torch.Tensor], second: list[torch.Tensor], reference: int
) -> list[tuple[_core.Outside, bool]]:
    """What follows the values without an operator, and whether it is floats; nothing where a run is another program."""
    runs = []
    with session:
        for tensors in (first, second):
            args, kwargs = call.with_tensors([t.clone() for t in tensors])
            outcome = session.run_leanly(args, kwargs, reference)
            if not outcome.ok:
                return []
            runs.append(outcome.run)
    rows = session.core.follows_from_outside(*runs)
    return [(_core.Outside(what=what, place=place, source=source), floats) for what, place, source, floats in rows]


def refuse_outside(session: RecordingSession, call: Call, reference: int, tensors: list[torch.Tensor]) -> None:
    """For a file that nobody checks: one more run with other values, where anything comes from outside at all. Integers
    may follow from what was read, which is solved; floats cannot."""
    if not session.core.takes_from_outside(reference):
        return
    for variation in variations(tensors, 1):
        found = outside_of(session, call, tensors, variation.tensors, reference)
        rows = [row for row, floats in found if floats]
        if rows:
            finding = _core.Finding(code="unsupported", why="outside", outside=rows)
            raise error_found(finding, "Nothing was written.")
