"""Nothing follows the inputs unseen: a tensor or number that no recorded operator made is the same for all values.

Two runs at the same sizes with other values are compared (`follows_from_outside` of the core). What differs and came
from outside (NumPy, a list, another thread, a kernel that is not PyTorch's) would be a constant of the file: refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fairlead._core import Unsupported
from fairlead.base.errors import caused
from fairlead.tree.values import variations

if TYPE_CHECKING:
    from fairlead.record.session import RecordingSession
    from fairlead.tree.calls import Call


def outside_of(
    session: RecordingSession, call: Call, first: list[torch.Tensor], second: list[torch.Tensor], reference: int
) -> list[tuple[str, str, str, bool]]:
    """(what, operator, line, are floats) of what follows the values without an operator; nothing where a run is another
    program."""
    runs = []
    with session:
        for tensors in (first, second):
            args, kwargs = call.with_tensors([t.clone() for t in tensors])
            outcome = session.run_leanly(args, kwargs, reference)
            if not outcome.ok:
                return []
            runs.append(outcome.run)
    return [tuple(row) for row in session.core.follows_from_outside(*runs)]


def refusal(rows: list[tuple[str, str, str, bool]], nothing_written: str) -> Unsupported:
    what, place, _, _ = rows[0]
    where = f"{place} takes {what}" if place else f"the model returns {what}"
    more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
    cause = (
        f"{where}{more} that was made outside of them (Python, NumPy, another thread, a kernel of its own) "
        "and changes with the values of the inputs"
    )
    error = caused(
        Unsupported(
            "[export] Expected everything that follows the inputs to come from PyTorch's operators, but "
            f"{cause}. {nothing_written} Compute it with torch operators on tensors: "
            "torch.stack([a, b]) for torch.tensor([a, b])."
        ),
        cause,
    )
    error.details = [
        {"kind": "from outside", "what": what, "operator": place, "source": source} for what, place, source, _ in rows
    ]
    return error


def refuse_outside(session: RecordingSession, call: Call, reference: int, tensors: list[torch.Tensor]) -> None:
    """For a file that nobody checks: one more run with other values, where anything comes from outside at all. Integers
    may follow from what was read, which is solved; floats cannot."""
    if not session.core.takes_from_outside(reference):
        return
    for variation in variations(tensors, 1):
        found = outside_of(session, call, tensors, variation.tensors, reference)
        rows = [row for row in found if row[-1]]
        if rows:
            raise refusal(rows, "Nothing was written.")
