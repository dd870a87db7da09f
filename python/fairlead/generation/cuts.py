"""A model cut at the calls of its modules: what runs before a call, what runs after it, what runs with another result.

The parts of a vision-language model are recorded from the model's own Python this way, glue included: what it does
between its vision tower, its embedding, its language model and its head needs no code here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch


class Reached(Exception):  # noqa: N818 (nothing went wrong)
    """The call that a run was to reach; ends it there."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any = None):
        super().__init__("the call was reached")
        self.positional, self.named, self.result = args, kwargs, result


@contextlib.contextmanager
def replaced(owner: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """An object's method replaced for the block."""
    own = owner.__dict__.get(name, None)
    had = name in owner.__dict__
    owner.__dict__[name] = function
    try:
        yield
    finally:
        if had:
            owner.__dict__[name] = own
        else:
            del owner.__dict__[name]


@contextlib.contextmanager
def without_checks() -> Iterator[None]:
    """Checks of values (as many image tokens as features) are for users' data, and not true at made-up sizes."""
    name = "TRANSFORMERS_DISABLE_TORCH_CHECK"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextlib.contextmanager
def as_first_step() -> Iterator[None]:
    """Caches look as if nothing had been put in them, so that what a model does for a prompt is done at every step."""
    from transformers.cache_utils import Cache

    before = Cache.__dict__.get("is_initialized")
    if not isinstance(before, property):
        yield
        return
    Cache.is_initialized = property(lambda self: False)
    try:
        yield
    finally:
        Cache.is_initialized = before


def arguments_of(module: torch.nn.Module, call: Callable[[], Any]) -> dict[str | int, Any]:
    """The arguments, by name or position, with which `call` calls a module; nothing after that is run."""

    def stop(*args: Any, **kwargs: Any) -> Any:
        raise Reached(args, kwargs)

    with replaced(module, "forward", stop):
        try:
            call()
        except Reached as reached:
            return dict(enumerate(reached.positional)) | reached.named
    raise RuntimeError(f"{type(module).__name__} was not called")


def result_of(module: torch.nn.Module, call: Callable[[], Any]) -> Any:
    """What a module returns when `call` calls it; nothing after that is run."""
    plain = module.forward

    def stop(*args: Any, **kwargs: Any) -> Any:
        raise Reached(args, kwargs, plain(*args, **kwargs))

    with replaced(module, "forward", stop):
        try:
            call()
        except Reached as reached:
            return reached.result
    raise RuntimeError(f"{type(module).__name__} was not called")
