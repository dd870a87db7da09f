"""Text of a file as it may be shown: nothing in it moves a cursor, hides or turns around what stands beside it."""

from __future__ import annotations

import re

# What moves the cursor, changes colours or turns text around: a name in a file may hold it.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def escaped(text: str) -> str:
    """escaped("a\\x1b[2J") == "a\\\\x1b[2J"; lines and tabs stay."""
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def one_line(text: str) -> str:
    """The same of text that is one line: one_line("a\\nb") == "a\\\\nb"."""
    return escaped(text).replace("\n", "\\n").replace("\t", "\\t")


def is_text(value: object) -> bool:
    """Whether it can be written to a file: half of a surrogate pair cannot."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def text_of(error: BaseException) -> str:
    """str(error), also where its class cannot say what it is."""
    try:
        return str(error)
    except Exception:
        return "an error without words"
