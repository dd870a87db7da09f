"""Types of elements by the names that torch, numpy and the core share: their numbers in ONNX, ONNX Runtime's texts."""

from __future__ import annotations

# Numpy's names are the same, save bool_ and str.
CODES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "str": 8, "bool": 9,
    "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15,
    "bfloat16": 16,
    "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20,
}  # fmt: skip
NAMES = {code: name for name, code in CODES.items()}

# Types that numpy has not: integers of the same width carry their bytes.
CARRIERS = {
    "bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e4m3fnuz": "uint8", "float8_e5m2": "uint8",
    "float8_e5m2fnuz": "uint8",
}  # fmt: skip

_ORT_NAMES = {"float32": "float", "float64": "double", "str": "string"}
# What ONNX Runtime calls the type of a tensor: tensor(float), tensor(float8e4m3fn).
ORT_TYPES = {f"tensor({_ORT_NAMES.get(name, name.replace('float8_', 'float8'))})": name for name in CODES}
