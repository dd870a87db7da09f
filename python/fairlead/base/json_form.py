"""Whether JSON that a stranger may have written has the form that its reader takes for granted.

A form is a type, a list with the form of its items, a dict with the forms of its keys ("?" behind what may be
left out), `Map` with the form of its values, or a function that says what it expected where it does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Map:
    values: Any


def whole(least: int, most: int) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        right = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return "" if right else f"a whole number from {least} to {most}"

    return check


def among(*values: str) -> Callable[[Any], str]:
    return lambda value: "" if isinstance(value, str) and value in values else f"one of {', '.join(values)}"


def problem(value: Any, form: Any, path: str = "") -> str:
    """What was expected and where, or ""."""
    if isinstance(form, type):
        right = isinstance(value, form) and not (form is int and isinstance(value, bool))
        return "" if right else f"{form.__name__} under {path or 'the whole'}"
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"a list under {path}"
        return next((p for k, item in enumerate(value) if (p := problem(item, form[0], f"{path}[{k}]"))), "")
    if isinstance(form, Map):
        if not isinstance(value, dict):
            return f"an object under {path}"
        return next((p for k, item in value.items() if (p := problem(item, form.values, f"{path}.{k}"))), "")
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return f"an object under {path or 'the whole'}"
        for key, of in form.items():
            name = key.removesuffix("?")
            if name not in value and key != name:
                continue
            if name not in value:
                return f"{f'{path}.' if path else ''}{name}"
            if found := problem(value[name], of, f"{path}.{name}" if path else name):
                return found
        return ""
    expected = form(value)
    return f"{expected} under {path}" if expected else ""
