"""Tensors as values of ONNX Runtime and back, for every dtype, without copies where torch and numpy allow it."""

from __future__ import annotations

from typing import Any

import torch

from fairlead.base.element_types import CARRIERS, NAMES
from fairlead.runtime.values import ort_value
from fairlead.tree.dtypes import BY_NAME, DTYPES


def as_stored(tensor: torch.Tensor) -> torch.Tensor:
    """Its elements one after the other, complex numbers as pairs of real ones, as files have them."""
    # What changes nothing is not asked for: calls may have thousands of inputs.
    if tensor.requires_grad:
        tensor = tensor.detach()
    if not tensor.is_cpu or tensor.is_neg() or not tensor.is_contiguous():
        tensor = tensor.cpu().resolve_neg().contiguous()
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def from_tensor(tensor: torch.Tensor) -> Any:
    """An OrtValue."""
    tensor = as_stored(tensor)
    name = DTYPES[tensor.dtype]
    carrier = CARRIERS.get(name)
    return ort_value((tensor.view(getattr(torch, carrier)) if carrier else tensor).numpy(), name)


def to_tensor(value: Any) -> torch.Tensor:
    """The tensor of an OrtValue."""
    name = NAMES[value.element_type()]
    if name in CARRIERS:
        carried = torch.utils.dlpack.from_dlpack(value._ortvalue.to_dlpack())
        return carried.view(getattr(torch, CARRIERS[name])).view(BY_NAME[name])
    array = value.numpy()
    return torch.from_numpy(array if array.flags.writeable else array.copy())
