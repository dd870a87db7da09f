"""The table: every module of this folder adds its rows when it is imported."""

from __future__ import annotations

import importlib
import pkgutil

from ..rows import ROWS, Row


def all_rows() -> list[Row]:
    if not ROWS:
        for module in pkgutil.iter_modules(__path__):
            importlib.import_module(f"{__name__}.{module.name}")
    return ROWS
