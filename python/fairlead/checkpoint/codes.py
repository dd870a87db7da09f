"""Weights of checkpoints in floats of 8 or 4 bits with scales: fp8 in blocks, by row or by tensor, and mxfp4.

What a code stands for is a table; the core looks it up when it reads, a piece at a time, so nothing is read here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from fairlead._core import StoredCodes, StoredMatrix

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
SMALL = (*FLOAT8, torch.int8, torch.uint8)
SCALES = ("float32", "float16", "bfloat16")
FLOAT4 = [sign * value for sign in (1.0, -1.0) for value in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)]
FLOAT4_BLOCK = 32
# Method -> how the names of codes and of their scales end, behind the name that the model has.
METHODS = {
    "fp8": ("", "_scale_inv"),
    "fbgemm_fp8": ("", "_scale"),
    "modelopt": ("", "_scale"),
    "compressed-tensors": ("", "_scale"),
    "mxfp4": ("_blocks", "_scales"),
}


@dataclass
class Quantised:
    """A tensor that a model has as floats, and its checkpoint as small numbers."""

    name: str
    dims: list[int]
    tensor: StoredMatrix | StoredCodes
    order: tuple[int, ...] | None = None  # of its axes, where the model has another one

    def values(self) -> torch.Tensor:
        found: torch.Tensor = torch.from_numpy(self.tensor.values()).view(self.dims)
        return found if self.order is None else found.permute(self.order).contiguous()


def packed(tensor: torch.Tensor) -> Any:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy()


def is_float(settings: Any) -> bool:
    """Whether what compressed-tensors stores is floats of 8 bits."""
    kinds = [kind["weights"] for kind in settings["config_groups"].values()]
    return [(kind.get("type"), kind.get("num_bits")) for kind in kinds] == [("float", 8)]


def stems(method: str, held: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Names of tensors in the model, and those of their codes and scales."""
    codes, scales = METHODS[method]
    for name in held:
        stem = name.removesuffix(scales)
        if stem != name and stem + codes in held:
            yield stem, (stem + codes, name)


def quantised(method: str, settings: Any, stem: str, codes: torch.Tensor, scales: torch.Tensor) -> Quantised:
    if method == "mxfp4":
        return of_float4(stem, codes, scales)
    return of_float8(stem, codes, scales, settings.get("weight_block_size"))


def of_float4(stem: str, codes: torch.Tensor, scales: torch.Tensor) -> Quantised:
    """[experts, out, groups, 16] of uint8, two numbers each, the lower half first, and an exponent for each group; as
    [experts, in, out] in the model."""
    if codes.dim() != 4 or codes.dtype != torch.uint8 or scales.dtype != torch.uint8 or scales.shape != codes.shape[:3]:
        raise ValueError(f"{codes.dtype} {list(codes.shape)} with scales {scales.dtype} {list(scales.shape)}")
    experts, out, groups, _ = codes.shape
    columns = groups * FLOAT4_BLOCK
    made = StoredCodes.of(
        packed(codes), FLOAT4, experts * out, columns, packed(scales), "uint8", 1, FLOAT4_BLOCK
    )  # fmt: skip
    return Quantised(stem, [experts, out, columns], made, (0, 2, 1))


def of_float8(stem: str, codes: torch.Tensor, scales: torch.Tensor, block: Any) -> Quantised:
    """[..., rows, columns] of 8-bit floats; a scale for each block, for each row, or for all."""
    kind = str(scales.dtype).removeprefix("torch.")
    if codes.dtype not in FLOAT8 or codes.dim() < 2 or kind not in SCALES:
        raise ValueError(f"{codes.dtype} {list(codes.shape)} with scales {scales.dtype} {list(scales.shape)}")
    *others, rows, columns = codes.shape
    every = math.prod(others) * rows
    if scales.numel() == 1:
        high, wide = every, columns
    elif block is not None:
        high, wide = (int(size) for size in block)
    else:
        high, wide = rows // scales.shape[-2], columns // scales.shape[-1]
    grid = [*others, -(-rows // high), -(-columns // wide)]
    if scales.numel() > 1 and (list(scales.shape) != grid or (others and rows % high)):
        raise ValueError(f"scales {list(scales.shape)} for blocks of {high} by {wide} of {list(codes.shape)}")
    table = torch.arange(256, dtype=torch.uint8).view(codes.dtype).float().tolist()
    made = StoredCodes.of(packed(codes), table, every, columns, packed(scales), kind, high, wide)
    return Quantised(stem, list(codes.shape), made)
