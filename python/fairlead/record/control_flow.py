"""Operators that take functions (torch.cond, while_loop, scan, map): a recording sees what one run of them did.

The program of the model has both sides of them, and torch.export knows how to keep them: there such a model is traced
(api.py does so by itself). Where the recording only finds out which sizes vary, they are run like any function.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from fairlead._core import Unsupported


class ControlFlow(Unsupported):
    """The model uses an operator that takes functions."""


NAMES = ("cond", "while_loop", "scan", "associative_scan", "map_impl")


def register_rules(mode_class: type, libraries: tuple[str, ...]) -> None:
    """What happens under a mode of this class; without rules PyTorch refuses the operators itself."""
    for name in NAMES:
        operator = getattr(torch.ops.higher_order, name, None)
        if operator is not None and mode_class not in operator.python_key_table:
            operator.py_impl(mode_class)(rule_for(operator, libraries))
    operator = getattr(torch.ops.higher_order, "flex_attention", None)
    if operator is not None and mode_class not in operator.python_key_table:
        operator.py_impl(mode_class)(attention)


def attention(mode: Any, *args: Any) -> Any:
    """flex_attention as PyTorch computes it where it compiles nothing: its functions run once, over all scores."""
    from torch._higher_order_ops.flex_attention import math_attention

    with mode:
        return math_attention(*args)


def rule_for(operator: Any, libraries: tuple[str, ...]) -> Callable[..., Any]:
    def rule(mode: Any, *args: Any, **kwargs: Any) -> Any:
        if not mode.session.follows_functions:
            raise refusal(operator, libraries)
        return operator(*args, **kwargs)

    return rule


def compiled() -> contextlib.AbstractContextManager[Any]:
    """torch.export has Dynamo take the functions apart, also where an export runs everything else as it is; parameters
    that they use would be constants otherwise."""
    if not hasattr(torch.compiler, "set_stance"):
        return contextlib.nullcontext()
    stance: contextlib.AbstractContextManager[Any] = torch.compiler.set_stance("default")
    return stance


def refusal(operator: Any, libraries: tuple[str, ...]) -> ControlFlow:
    frame: FrameType | None = sys._getframe(1)
    place = ""
    while frame is not None and not place:
        file = frame.f_code.co_filename
        if not file.startswith(libraries):
            place = f" (at {file.rpartition('site-packages/')[2]}:{frame.f_lineno})"
        frame = frame.f_back
    name = operator.name().removesuffix("_impl")
    return ControlFlow(
        f"[record] Expected operators that run once, got torch.{name}{place}, which takes functions and may run either "
        'of them. Export with tracer="torch.export".'
    )
