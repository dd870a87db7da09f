"""Patches put on for the length of a block, and the account of what was found.

Blocks may be nested, overlap and be used from several threads: a row that is already in place is counted, and comes
off when the last block that holds it ends. Replacements are seen by the whole process; as no row of ours changes a
number, a thread that only runs models notices nothing.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fairlead._core import FairleadError, InvalidInput
from fairlead.base.alone import changed
from fairlead.patches.slots import lock, original_of, put_on, take_off
from fairlead.patches.table import Patch, patch_rows, resolve

APPLIED, NOT_NEEDED, UNRESOLVED, NOT_LOADED = "applied", "not needed", "unresolved", "nothing loaded"


@dataclass(frozen=True)
class Outcome:
    """What became of a row at one target."""

    patch: Patch
    target: str
    status: str
    reason: str = ""

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.status}: {self.patch.name}: {self.target}{reason}"


@dataclass
class Applied:
    """The outcomes of a block, in the order of application."""

    outcomes: list[Outcome] = field(default_factory=list)

    def __call__(self, inputs: Any) -> Any:
        """Inputs need no replacement before exporting: handed back as they are."""
        return inputs

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def of(self, status: str) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.status == status]

    @property
    def applied(self) -> list[Outcome]:
        return self.of(APPLIED)

    @property
    def unresolved(self) -> list[Outcome]:
        return self.of(UNRESOLVED)

    def report(self) -> str:
        """One line for each row and target."""
        counts = ", ".join(
            f"{len(self.of(s))} {s}" for s in (APPLIED, NOT_NEEDED, UNRESOLVED, NOT_LOADED) if self.of(s)
        )
        return "\n".join([f"patches: {counts or 'none registered'}", *(f"  {outcome}" for outcome in self.outcomes)])


def look(patch: Patch) -> list[tuple[Outcome, Any, str]]:
    """Where a row would be applied now: (outcome, owner, attribute) for each target."""
    targets = patch.found()
    if not targets:
        return [(Outcome(patch, patch.looked_for or "-", NOT_LOADED), None, "")]
    seen = []
    for target in targets:
        try:
            owner, name = resolve(target)
        except LookupError as error:
            seen.append((Outcome(patch, target, UNRESOLVED, str(error)), None, ""))
            continue
        reason = patch.needed(original_of(owner, name)) if patch.needed else None
        status = APPLIED if reason is None else NOT_NEEDED
        seen.append((Outcome(patch, target, status, reason or ""), owner, name))
    return seen


@contextlib.contextmanager
def apply_patches(*backends: str, select: Callable[[Patch], bool] = lambda patch: True) -> Iterator[Applied]:
    """Inside the block the rows of these backends are in place; yields the account of them.

    >>> with apply_patches("dynamo") as applied:
    ...     program = torch.export.export(model, (), inputs)
    >>> print(applied.report())

    Applied in the order of registration, taken off in reverse, after errors too.
    """
    if not backends or not all(isinstance(name, str) for name in backends):
        given = ", ".join(map(repr, backends)) or "none"
        raise InvalidInput(f"[apply_patches] Expected names of backends such as 'dynamo', got {given}.")
    applied = Applied()
    with contextlib.ExitStack() as undo:
        with lock:
            for patch in patch_rows(*backends):
                if select(patch):
                    _apply(patch, applied, undo)
        for outcome in applied.unresolved:
            if not outcome.patch.ours:  # our own rows say which releases have their targets
                warnings.warn(
                    f"[apply_patches] Expected {outcome.target} for the patch {outcome.patch.name!r}, but "
                    f"{outcome.reason}: it is not applied.",
                    stacklevel=3,
                )
        yield applied


def _apply(patch: Patch, applied: Applied, undo: contextlib.ExitStack) -> None:
    for outcome, owner, name in look(patch):
        if outcome.status == APPLIED:
            try:
                change = changed(partial(put_on, owner, name, patch, patch.factory), take_off)
            except FairleadError:
                raise
            except Exception as error:
                raise InvalidInput(
                    f"[apply_patches] Expected a replacement for {outcome.target} from the patch {patch.name!r}, got "
                    f"{type(error).__name__}: {error}. Correct its factory, or take it out with unregister_patch."
                ) from error
            undo.callback(change)
        applied.outcomes.append(outcome)
