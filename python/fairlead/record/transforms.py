"""Fourier transforms of lengths that are given: PyTorch pads or cuts for them below Python, and does neither where a
tensor is as long already. Here they are always padded, by one operator, with the numbers that the model gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fairlead._core import SizeInt

PAD = torch.ops.aten.constant_pad_nd.default


def as_long(session: Any, input: torch.Tensor, lengths: list[Any], dims: list[Any]) -> torch.Tensor:
    """The tensor with that many elements along each of these axes, zeros behind where it has fewer; -1: as it is."""
    if not all(isinstance(each, int) for each in (*lengths, *dims)):
        return input
    if not all(-input.dim() <= dim < input.dim() for dim in dims) or any(length.real < -1 for length in lengths):
        return input  # PyTorch says what is wrong
    pads: list[Any] = [0, 0] * input.dim()
    remembers = False
    for length, dim in zip(lengths, dims, strict=True):
        if length.real == -1:
            continue
        here = session.core.size_of(input, dim)
        remembers = remembers or isinstance(here, SizeInt) or isinstance(length, SizeInt)
        behind = input.dim() - 1 - dim % input.dim()
        pads[2 * behind + 1] = length - (input.size(dim) if here is None else here)
    if not remembers:
        return input
    padded: torch.Tensor = session.execute(PAD, input, pads, 0)
    return padded


def along_one(plain: Any, from_half: bool) -> Callable[..., Any]:
    """One axis. What goes back to real numbers reads a half of them and one."""

    def call(session: Any, input: torch.Tensor, n: Any = None, dim: Any = -1, norm: Any = None, **out: Any) -> Any:
        if isinstance(n, int) and n.real > 0:
            input = as_long(session, input, [n // 2 + 1 if from_half else n], [dim])
        session.core.note_call(plain, (input, n, dim, norm), None)
        return plain(input, n, dim, norm, **out)

    return call


def along_several(plain: Any, from_half: bool, last: tuple[int, ...] | None) -> Callable[..., Any]:
    """Several axes, the last ones where none are named."""

    def call(session: Any, input: torch.Tensor, s: Any = None, dim: Any = last, norm: Any = None, **out: Any) -> Any:
        if isinstance(s, (tuple, list)) and all(isinstance(n, int) for n in s):
            dims = list(range(-len(s), 0)) if dim is None else list(dim) if isinstance(dim, (tuple, list)) else []
            lengths = list(s)
            if from_half and lengths and lengths[-1].real > 0:
                lengths[-1] = lengths[-1] // 2 + 1
            if len(dims) == len(lengths):
                input = as_long(session, input, lengths, dims)
        session.core.note_call(plain, (input, s, dim, norm), None)
        return plain(input, s, dim, norm, **out)

    return call


# name -> whether it reads a half, axes where none are named (None: of one axis)
ONE = {"fft": False, "ifft": False, "rfft": False, "ihfft": False, "irfft": True, "hfft": True}
TWO = {"fft2": False, "ifft2": False, "rfft2": False, "irfft2": True}
ALL = {"fftn": False, "ifftn": False, "rfftn": False, "irfftn": True}

TRANSFORMS = {
    **{getattr(torch.fft, name): along_one(getattr(torch.fft, name), half) for name, half in ONE.items()},
    **{getattr(torch.fft, name): along_several(getattr(torch.fft, name), half, (-2, -1)) for name, half in TWO.items()},
    **{getattr(torch.fft, name): along_several(getattr(torch.fft, name), half, None) for name, half in ALL.items()},
}
