"""Lowerings of one's own: how a custom operator becomes ONNX nodes, said in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead import _core


def operator_name(operator: Any) -> str:
    """`mylib.myop.default` for "mylib::myop", "mylib.myop", an OpOverload or a torch.library.custom_op."""
    opoverload = getattr(operator, "_opoverload", None)  # of torch.library.custom_op
    text = str(opoverload if opoverload is not None else operator).replace("::", ".")
    parts = text.split(".")
    if len(parts) == 2:
        parts.append("default")
    if len(parts) != 3 or not all(parts):
        raise _core.InvalidInput(f"[lower] Expected an operator like mylib.myop.default, got {operator!r}.")
    return ".".join(parts)


def register_lowering(operator: Any) -> Callable[..., Any]:
    """Registers the decorated function as the lowering of an operator, for every export that follows.

    The function gets a builder: it reads the operator's arguments by position, adds nodes and sets the
    results.

        @fairlead.lowerings.register_lowering("mylib.scaled_tanh.default")
        def lower(b):
            b.result(b.op("Mul", b.op("Tanh", b.input(0)), b.number(1)))
    """
    name = operator_name(operator)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _core.register_lowering(name, function)
        return function

    return register


def unregister_lowering(operator: Any) -> None:
    """Forgets a registered lowering; one that Fairlead has itself applies again."""
    _core.unregister_lowering(operator_name(operator))
