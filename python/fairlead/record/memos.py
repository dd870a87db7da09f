"""Functions that keep their results by their arguments (functools.lru_cache): while a model is recorded they compute
anew in every run, or they would give back the plain numbers of another one, and forget where these come from."""

from __future__ import annotations

import functools
import gc
import sys
from typing import Any

from fairlead import _core

# What they remember is about the machine or about classes, and costly to find out again.
NOT_LOOKED_AT = frozenset(sys.stdlib_module_names) | {"torch", "fairlead", "numpy", "onnxruntime", "onnx", "sympy"}


class Memos:
    """The functions of the modules that are loaded now."""

    def __init__(self) -> None:
        self.wrappers = found(len(sys.modules))
        self.harmless: dict[int, int] = {}  # those without numbers, and how often they had computed by then

    def forget(self) -> None:
        """Before and after a run."""
        for place, wrapper in enumerate(self.wrappers):
            about = wrapper.cache_info()
            if not about.currsize or self.harmless.get(place) == about.misses:
                continue
            if asked_for_numbers(wrapper):
                wrapper.cache_clear()
            else:
                self.harmless[place] = about.misses


def asked_for_numbers(wrapper: functools._lru_cache_wrapper[Any]) -> bool:
    """Whether a number stands among the arguments that it keeps: others may be things that are made once."""

    def has_number(value: Any) -> bool:
        if isinstance(value, tuple):
            return any(map(has_number, value))
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    kept = [each for each in gc.get_referents(wrapper) if isinstance(each, dict)]
    return any(has_number(key) or has_number(tuple(gc.get_referents(key))) for one in kept for key in one)


@functools.lru_cache(1)
def found(modules: int) -> list[Any]:
    """`modules`: how many there are; it changes when one is imported."""
    looked_at = [
        module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] not in NOT_LOOKED_AT and not name.endswith("import_utils")
    ]
    return [each for each in _core.held_by_modules(looked_at, functools._lru_cache_wrapper) if takes_arguments(each)]


def takes_arguments(wrapper: functools._lru_cache_wrapper[Any]) -> bool:
    """One without is a single thing that is made once."""
    code = getattr(wrapper.__wrapped__, "__code__", None)
    return code is not None and code.co_argcount + code.co_kwonlyargcount + (code.co_flags & 0x0C) > 0
