"""Errors on their way up: said in other words, and still the same error, with what is known about it."""

from __future__ import annotations


def sentence_of(error: BaseException) -> str:
    """What an error says, without the function in brackets before it."""
    text = str(error)
    return (text.partition("] ")[2] or text) if text.startswith("[") else text


def reworded(error: BaseException, text: str, old: str = "", new: str = "") -> BaseException:
    """The same error in other words: `details`, `facts` and where it was raised stay. A path in its facts that begins
    with `old` begins with `new`, for users who know nothing of staged files."""
    error.args = (text, *error.args[1:])
    facts = getattr(error, "facts", None)
    if facts and old and str(facts.get("path", "")).startswith(old):
        error.facts = facts | {"path": new + facts["path"].removeprefix(old)}
    return error
