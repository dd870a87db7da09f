"""A .pt2 file as a program that PyTorch runs, with nothing in it run as code.

`torch.export.load` unpickles what a file says is pickled, loads libraries that lie in it and evaluates its texts. Here
the core has read the archive (it refuses pickles), the texts have been looked at (plain.py), and the tensors
are handed over as bytes. The example is read with weights_only, and left out where that does not do.
"""

from __future__ import annotations

import io
import math
from typing import Any

import torch
from torch._export.serde import schema
from torch._export.serde.serialize import ExportedProgramDeserializer, _dict_to_dataclass

from fairlead.programs.plain import checked
from fairlead.tree.dtypes import BY_NAME


def load_program(core: Any, where: str) -> torch.export.ExportedProgram:
    """The program of an archive that the core has read."""
    text, payloads, tensors, sample = core.contents()
    program = _dict_to_dataclass(schema.ExportedProgram, checked(text, where))
    weights, constants = stored_tensors(payloads, tensors)
    return ExportedProgramDeserializer(None).deserialize(program, weights, constants, example_inputs(sample))


def stored_tensors(payloads: list[bytearray], tensors: list[tuple[Any, ...]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(weights, constants); tensors of one payload share its memory, as they did in the model."""
    weights: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for name, payload, dtype, sizes, strides, offset, is_constant, is_parameter, requires_grad in tensors:
        made = view_of(payloads[payload], BY_NAME[dtype], sizes, strides, offset)
        if is_parameter:
            made = torch.nn.Parameter(made, requires_grad=requires_grad)
        (constants if is_constant else weights)[name] = made
    return weights, constants


def view_of(payload: bytearray, dtype: torch.dtype, sizes: list[Any], strides: list[Any], offset: int) -> torch.Tensor:
    if not payload or math.prod(sizes) == 0:
        return torch.empty_strided(sizes, strides, dtype=dtype)
    whole = torch.frombuffer(payload, dtype=torch.uint8)
    count = len(payload) // dtype.itemsize
    return whole[: count * dtype.itemsize].view(dtype).as_strided(sizes, strides, offset)


def example_inputs(sample: bytes) -> Any:
    if not sample:
        return None
    try:
        found = torch.load(io.BytesIO(sample), weights_only=True)
    except Exception:  # whatever a stranger's file makes of it: the example is made up then
        return None
    plain = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], tuple) and isinstance(found[1], dict)
    return found if plain else None
