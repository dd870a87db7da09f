"""w.data = made, nn.Parameter(made) and made.as_subclass(cls), while a model runs: no operators that a mode sees, but
each is what was made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from fairlead.base.alone import during
from fairlead.record.switches import recorded_here

_PLAIN: Any = torch._C.TensorBase.data
_NEW: Any = torch.nn.Parameter.__dict__["__new__"]
_AS_SUBCLASS: Any = torch._C.TensorBase.as_subclass


class _Watched:
    """Stands for the attribute of every tensor; other threads get what they would have got."""

    def __init__(self, note: Callable[[torch.Tensor, torch.Tensor], None]):
        self.note = note

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        return self if tensor is None else _PLAIN.__get__(tensor)

    def __set__(self, tensor: Any, made: Any) -> None:
        _PLAIN.__set__(tensor, made)
        if recorded_here():
            self.note(tensor, made)


@contextlib.contextmanager
def watch_data(note: Callable[[torch.Tensor, torch.Tensor], None]) -> Iterator[None]:
    every: Any = torch.Tensor
    parameter: Any = torch.nn.Parameter

    def new(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        made = _NEW(cls, data, requires_grad)  # of a plain tensor it detaches with all modes off
        if type(data) in (every, parameter) and recorded_here():
            note(made, data)
        return made

    def as_subclass(tensor: Any, cls: Any) -> Any:
        made = _AS_SUBCLASS(tensor, cls)
        if recorded_here():
            note(made, tensor)
        return made

    def enter() -> tuple[Any, ...]:
        every.data = _Watched(note)
        every.as_subclass = as_subclass
        parameter.__new__ = staticmethod(new)
        return ()

    def leave() -> None:
        parameter.__new__ = _NEW
        for name in ("data", "as_subclass"):
            if name in every.__dict__:
                delattr(every, name)

    with during(enter, leave):
        yield
