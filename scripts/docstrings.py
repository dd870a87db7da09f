"""For mkdocstrings: in our docstrings, which are plain words, arguments are lines `name: what it is`; here a list."""

from __future__ import annotations

import re

import griffe

ARGUMENT = re.compile(r"(\w+(?:, \w+)*): (.*)")


def as_markdown(text: str) -> str:
    """Paragraphs that are arguments become lists, continued lines their parts; all else stays as it is.

    >>> as_markdown("Does.\\n\\nx: the one\\n    of two.\\ny: other.")
    'Does.\\n\\n- `x`: the one of two.\\n- `y`: other.'
    """
    out = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        if not ARGUMENT.match(lines[0]) or not all(ARGUMENT.match(x) or x.startswith(" ") for x in lines):
            out.append(paragraph)
            continue
        items: list[str] = []
        for line in lines:
            if match := ARGUMENT.match(line):
                items.append(f"- `{match[1]}`: {match[2]}")
            else:
                items[-1] += " " + line.strip()
        out.append("\n".join(items))
    return "\n\n".join(out)


class PlainDocstrings(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
