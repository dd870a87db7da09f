"""Switches that are thrown while a model is recorded, and thrown back whatever happens.

1. torch.compiler's "am I being traced" flags, which Transformers asks before it looks at values (are all masks one?).
2. The checks in torch.nn.functional that hand a whole function to a function mode: with them off, the modes see the
   functions that are called inside, so that layer_norm within multi_head_attention_forward is seen too.
3. PyTorch's fused fast path for transformer encoders, which would hide the layer in one operator.
4. torch.compile, which torch.cond and its like start: under a mode it cannot, and what it would make is the same.
5. Patches registered for "observe" (fairlead/patches): loops over the experts that were hit go over every expert.
6. Imports: a module that the model imports while it runs finds Python's own `len`, which it may keep for good (as
   torch._dynamo does, in its table of builtins).
7. opt_einsum, which torch.einsum asks for an order of its operands where it is installed: it compares their sizes.

PyTorch has 1 to 4 and 7 once per process. What is put there answers by thread: others, which only run a model, get the
answer that they would have got (those of 5 change no number). Exports take turns (alone.py), so that nobody switches
twice.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

from fairlead import _core
from fairlead.base.alone import during
from fairlead.patches.apply import apply_patches

_here = threading.local()  # .depth: how many blocks of this thread are open


def recorded_here() -> bool:
    return getattr(_here, "depth", 0) > 0


@contextlib.contextmanager
def here() -> Iterator[None]:
    """In this thread what is switched is switched."""
    before = getattr(_here, "depth", 0)

    def leave(depth: int) -> None:
        _here.depth = depth

    def enter() -> tuple[Any, ...]:
        _here.depth = before + 1
        return (before,)

    with during(enter, leave):
        yield


class ByThread:
    """A flag that is `inside` for the thread that is recorded, and as it was for all others."""

    def __init__(self, inside: bool, before: Any):
        self.inside, self.before = inside, before

    def __bool__(self) -> bool:
        return self.inside if recorded_here() else bool(self.before)

    def __eq__(self, other: object) -> bool:
        return bool(self) == other

    def __hash__(self) -> int:
        return hash(bool(self))

    def __index__(self) -> int:
        return int(bool(self))

    def __or__(self, other: Any) -> Any:
        return bool(self) | other

    def __and__(self, other: Any) -> Any:
        return bool(self) & other

    def __xor__(self, other: Any) -> Any:
        return bool(self) ^ other

    __ror__, __rand__, __rxor__ = __or__, __and__, __xor__  # libraries join it with flags of their own

    def __repr__(self) -> str:
        return repr(bool(self))


def by_thread(inside: Callable[..., Any], before: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a function."""

    def choose(*args: Any, **kwargs: Any) -> Any:
        return inside(*args, **kwargs) if recorded_here() else before(*args, **kwargs)

    return choose


def switched(owner: Any, name: str, make: Callable[[Any], Any]) -> contextlib.AbstractContextManager[None]:
    """`owner.name` is `make` of what it was."""

    def throw() -> tuple[Any, ...]:
        before = getattr(owner, name)
        setattr(owner, name, make(before))
        return (before,)

    return during(throw, lambda before: setattr(owner, name, before))


def without_fast_path() -> contextlib.AbstractContextManager[None]:
    return switched(torch.backends.mha, "_is_fastpath_enabled", lambda before: ByThread(False, before))


def words_of_fast_path(model: Any) -> list[str]:
    """What the model's encoders compute otherwise where PyTorch takes their fast path: it packs the places that a mask
    leaves in, and gives zeros for the others."""
    encoders = [
        name or "the model"
        for name, module in (model.named_modules() if isinstance(model, torch.nn.Module) else ())
        if isinstance(module, torch.nn.TransformerEncoder) and getattr(module, "use_nested_tensor", False)
    ]
    return [
        f"{', '.join(encoders)}: nn.TransformerEncoder as without its fast path, which gives zeros at places that "
        "src_key_padding_mask leaves out"
    ] * bool(encoders)


@contextlib.contextmanager
def tracing_switches(flags: bool = True) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for flag in ("_is_compiling_flag", "_is_exporting_flag"):
            if flags and hasattr(torch.compiler, flag):
                stack.enter_context(switched(torch.compiler, flag, lambda before: ByThread(True, before)))
        for asks in ("is_compiling", "is_exporting"):
            if hasattr(torch.compiler, asks):
                stack.enter_context(switched(torch.compiler, asks, _as_bool))
        for module in (torch.nn.functional, torch.functional):
            for check in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
                if hasattr(module, check):
                    stack.enter_context(switched(module, check, lambda before: by_thread(_no_mode, before)))
        stack.enter_context(without_fast_path())
        order = torch.backends.opt_einsum
        stack.enter_context(switched(getattr(order, "m", order), "enabled", lambda before: ByThread(False, before)))
        stack.enter_context(switched(torch, "compile", lambda before: by_thread(_uncompiled, before)))
        stack.enter_context(switched(builtins, "__import__", _importing))
        stack.enter_context(apply_patches("observe"))
        stack.enter_context(here())
        yield


def _as_bool(before: Callable[..., Any]) -> Callable[..., Any]:
    """Who asks is given a bool, which may be handed on to an operator."""

    def ask() -> bool:
        return bool(before())

    return ask


def _importing(before: Callable[..., Any]) -> Callable[..., Any]:
    depth = 0

    def load(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        nonlocal depth
        loaded = sys.modules.get(name) if level == 0 else None
        known = loaded is not None and all(hasattr(loaded, each) for each in fromlist or () if each != "*")
        if known or not recorded_here():
            return before(name, globals, locals, fromlist, level)
        depth += 1
        _core.watch_builtins(False)
        try:
            return before(name, globals, locals, fromlist, level)
        finally:
            depth -= 1
            if depth == 0:
                _core.watch_builtins(True)

    return load


def _uncompiled(model: Any = None, **options: Any) -> Any:
    return model if model is not None else lambda function: function


def _no_mode(*args: Any) -> bool:
    return False
