"""Errors on their way up: said in other words, and still the same error, with what is known about it."""

from __future__ import annotations

from typing import TypeVar

from fairlead import _core
from fairlead._core import FairleadError

Raised = TypeVar("Raised", bound=FairleadError)


def sentence_of(error: BaseException) -> str:
    """What an error says, without the function in brackets before it."""
    text = str(error)
    return (text.partition("] ")[2] or text) if text.startswith("[") else text


def caused(error: Raised, cause: str) -> Raised:
    """The error with its cause: what happened, as part of another sentence, without what to do about it."""
    error.cause = cause
    return error


def cause_of(error: BaseException) -> str:
    return getattr(error, "cause", "") or sentence_of(error)


def reworded(error: FairleadError, text: str, old: str = "", new: str = "") -> FairleadError:
    """The same error in other words: `details`, `facts` and where it was raised stay. A path in its facts that begins
    with `old` begins with `new`, for users who know nothing of staged files."""
    error.args = (text, *error.args[1:])
    facts = error.facts
    if facts and old and str(facts.get("path", "")).startswith(old):
        error.facts = facts | {"path": new + facts["path"].removeprefix(old)}
    return error


CODES: tuple[tuple[type[FairleadError], str], ...] = (
    (_core.InvalidInput, "invalid input"), (_core.Unsupported, "unsupported"), (_core.Diverged, "diverged"),
    (_core.Unsolved, "unsolved"), (_core.Discrepancy, "discrepancy"), (_core.WriteError, "io"),
)  # fmt: skip


def code_of(error: BaseException) -> str:
    return next((name for kind, name in CODES if isinstance(error, kind)), "internal")


def error_found(
    finding: _core.Finding, nothing: str, runtime: str = "", model: str = "eager", read: tuple[str, str] = ("", ""),
    drawn: str = "",
) -> FairleadError:  # fmt: skip
    """The error of a check that failed, in the core's words."""
    kind = next(kind for kind, name in CODES if name == finding.code)
    error = caused(kind(_core.sentence_of(finding, nothing, runtime, model, read, drawn)), _core.cause_of(finding))
    if finding.outside:
        error.details = [
            {"kind": "from outside", "what": row.what, "operator": row.place, "source": row.source}
            for row in finding.outside
        ]
    return error
