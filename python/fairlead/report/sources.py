"""The text of source lines that nodes name (`transformers/models/llama/modeling_llama.py:246`), where it can be
trusted.
"""

from __future__ import annotations

import linecache
import os
import sys
from typing import Any

_exported: set[str] = set()  # packages whose classes this process has exported


def note_exported(model: Any) -> None:
    """The code of a model that is exported here may be quoted: its classes', and that of their packages."""
    for module in model.modules():
        _exported.add(str(type(module).__module__).partition(".")[0])


def find_file(name: str) -> str | None:
    """The file of a module that this process has exported, by the name that nodes have for it: the whole path, or what
    follows site-packages. Any other name comes from a file that somebody made, and is not opened.
    """
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or not path.endswith(name):
            continue
        if name not in (path, path.rpartition("site-packages/")[2]):
            continue
        if getattr(module, "__name__", "").partition(".")[0] in _exported and os.path.isfile(path):
            return path
    return None


def split_place(place: str) -> tuple[str, int]:
    name, _, line = place.rpartition(":")
    return (name, int(line)) if name and line.isascii() and line.isdigit() else (place, 0)


def shown_place(text: str) -> str:
    """Paths below the working folder are shown from there on."""
    return text.replace(os.path.join(os.getcwd(), ""), "")


class Sources:
    """`newest`: a file changed after this time (of the export) may have other lines now, and is not quoted."""

    def __init__(self, newest: float | None = None):
        self.newest = newest
        self.files: dict[str, str | None] = {}

    def path(self, name: str) -> str | None:
        if name not in self.files:
            path = find_file(name)
            if path is not None and self.newest is not None and os.path.getmtime(path) > self.newest:
                path = None
            self.files[name] = path
        return self.files[name]

    def line(self, place: str) -> str:
        name, number = split_place(place)
        path = self.path(name) if number else None
        return linecache.getline(path, number).strip()[:200] if path else ""

    def excerpt(self, place: str, around: int = 3) -> list[tuple[int, str, bool]]:
        """(number, text, is the line) of the lines around a place; [] where they cannot be had."""
        name, number = split_place(place)
        path = self.path(name) if number else None
        if path is None:
            return []
        lines = linecache.getlines(path)
        shown = range(max(1, number - around), min(len(lines), number + around) + 1)
        return [(k, lines[k - 1].rstrip()[:200], k == number) for k in shown]
