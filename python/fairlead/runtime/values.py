"""Values of ONNX Runtime, made of numpy arrays and read into them, also of types that numpy has not."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from fairlead._core import InvalidInput
from fairlead.base.element_types import CARRIERS, CODES

# Name -> numpy type, of what a Generator is fed with: bfloat16 as the 16-bit integers that carry its bytes.
TYPES = {
    "float32": np.float32, "uint8": np.uint8, "int8": np.int8, "int32": np.int32, "int64": np.int64, "bool": np.bool_,
    "float16": np.float16, "float64": np.float64, "bfloat16": np.int16,
}  # fmt: skip


def runtime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise InvalidInput(
            f"[Generator] Expected ONNX Runtime, but it cannot be imported ({error}). "
            "Install it with pip install onnxruntime."
        ) from None
    return onnxruntime


def ort_value(array: np.ndarray, dtype: str) -> Any:
    """An OrtValue of this type around (a converted copy of) an array. Of a type that numpy has not, the array may have
    the bytes already."""
    ort = runtime()
    if dtype not in CARRIERS:
        return ort.OrtValue.ortvalue_from_numpy(np.asarray(array, dtype, order="C"))
    if dtype == "bfloat16" and array.dtype != np.int16:  # rounded to nearest even, as torch does
        bits = np.asarray(array, np.float32, order="C").view(np.uint32)
        array = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).view(np.int16)
    if array.dtype != CARRIERS[dtype]:
        raise InvalidInput(f"[Generator] Expected the bytes of {dtype} as {CARRIERS[dtype]}, got {array.dtype}.")
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.asarray(array, order="C"), CODES[dtype])


def to_numpy(value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    if value.data_type() == "tensor(bfloat16)":  # no type of numpy's: the upper half of a float32
        bits = (ctypes.c_uint16 * int(np.prod(value.shape()))).from_address(value.data_ptr())
        wide = np.frombuffer(bytes(bits), np.uint16).astype(np.uint32) << 16
        return np.asarray(wide.view(np.float32).reshape(value.shape()))
    return np.asarray(value.numpy())
