"""w.data = made, while a model runs: no operator, but w is from then on what was made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from fairlead.base.alone import during
from fairlead.record.switches import recorded_here

_PLAIN: Any = torch._C.TensorBase.data


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

    def enter() -> tuple[Any, ...]:
        every.data = _Watched(note)
        return ()

    def leave() -> None:
        if "data" in every.__dict__:
            del every.data

    with during(enter, leave):
        yield
