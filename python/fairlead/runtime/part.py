"""One exported part: an ONNX Runtime session that takes and gives values by name."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

from fairlead._core import InvalidInput

# ONNX type -> (numpy type, number of the type in ONNX). bfloat16 has no numpy type; 16-bit integers carry its bytes.
TYPES = {
    "float32": (np.float32, 1), "uint8": (np.uint8, 2), "int8": (np.int8, 3), "int32": (np.int32, 6),
    "int64": (np.int64, 7), "bool": (np.bool_, 9), "float16": (np.float16, 10), "float64": (np.float64, 11),
    "bfloat16": (np.int16, 16),
}  # fmt: skip
ORT_TYPES = {
    "tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16",
    "tensor(bfloat16)": "bfloat16", "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(int8)": "int8",
    "tensor(uint8)": "uint8", "tensor(bool)": "bool",
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
    """An OrtValue of this type around (a converted copy of) an array."""
    ort = runtime()
    numpy_type, number = TYPES[dtype]
    if dtype == "bfloat16":
        if array.dtype != np.int16:  # rounded to nearest even, as torch does
            bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
            array = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).view(np.int16)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(array), number)
    return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array, numpy_type))


def to_numpy(value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    if value.data_type() == "tensor(bfloat16)":  # no type of numpy's: the upper half of a float32
        bits = (ctypes.c_uint16 * int(np.prod(value.shape()))).from_address(value.data_ptr())
        wide = np.frombuffer(bits, np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32).reshape(value.shape())
    return value.numpy()


class Part:
    """`run` takes a pool of values by name (numpy arrays or OrtValues) and gives the part's outputs by name."""

    def __init__(
        self, path: str, options: Any = None, providers: list | None = None, takes: dict[str, str] | None = None
    ):
        ort = runtime()
        if not os.path.isfile(path):
            raise InvalidInput(f"[Generator] Expected the file {path}, but there is none. Export the model again.")
        if options is None:
            options = ort.SessionOptions()
            options.log_severity_level = 3  # what fails is raised
        self.path = path
        try:
            self.session = ort.InferenceSession(path, options, providers=providers or ["CPUExecutionProvider"])
        except Exception as error:
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InvalidInput(f"[Generator] Expected ONNX Runtime to load {path}, but it says: {text}") from None
        takes = takes or {}
        self.names = {takes.get(i.name, i.name): i.name for i in self.session.get_inputs()}  # in the pool: in the file
        self.inputs = {takes.get(i.name, i.name): ORT_TYPES.get(i.type, i.type) for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]

    def run(self, pool: dict[str, Any]) -> dict[str, Any]:
        missing = [name for name in self.inputs if name not in pool]
        if missing:
            raise InvalidInput(
                f"[generate] Expected {', '.join(missing)} for {os.path.basename(self.path)}, got none. "
                "Pass everything that model.generate takes, by the same names."
            )
        feeds = {}
        for name, dtype in self.inputs.items():
            value = pool[name]
            feeds[self.names[name]] = ort_value(value, dtype) if isinstance(value, np.ndarray) else value
        try:
            results = self.session.run_with_ort_values(self.outputs, feeds)
        except Exception as error:
            shapes = ", ".join(f"{name} {list(v.shape())}" for name, v in list(feeds.items())[:6])
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InvalidInput(
                f"[generate] Expected ONNX Runtime to run {os.path.basename(self.path)} with {shapes}, "
                f"but it says: {text}"
            ) from None
        return dict(zip(self.outputs, results, strict=True))
