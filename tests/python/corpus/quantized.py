"""Quantize and dequantize as PT2E writes them. Scales are powers of two: PyTorch multiplies by 1 / scale, ONNX divides."""

from __future__ import annotations

import torch
import torch.ao.quantization.fx._decomposed  # registers the operators

from corpus import Case

Q = torch.ops.quantized_decomposed
INT8, UINT8 = torch.int8, torch.uint8
SCALES = torch.tensor([0.25, 0.5, 1.0, 2.0])
ZEROS = torch.tensor([0, 3, -5, 100])
TO, FROM = "quantized_decomposed.quantize_per_tensor.default", "quantized_decomposed.dequantize_per_tensor.default"
TO_EACH, FROM_EACH = TO.replace("_tensor", "_channel"), FROM.replace("_tensor", "_channel")


def corners():
    return (torch.tensor([[-1e30, -200.0, -64.25, -0.5, -0.25, -0.0, 0.125, 0.25, 0.75, 63.75, 300.0, 1e30]]),)


def real():
    return (torch.randn(3, 4, 5) * 40,)


def whole(dtype):
    return lambda: (torch.arange(256).to(dtype).reshape(8, 4, 8),)


def bytes_of(rows, columns):
    return torch.randint(-128, 128, (rows, columns), dtype=INT8)


CASES = [
    Case("aten._int_mm.default", torch._int_mm, lambda: (bytes_of(20, 16), bytes_of(16, 8))),
    Case(TO, lambda x: Q.quantize_per_tensor(x, 0.5, 3, -128, 127, INT8), real),
    Case(TO, lambda x: Q.quantize_per_tensor(x, 0.5, 3, -128, 127, INT8), corners, "corners"),
    Case(TO, lambda x: Q.quantize_per_tensor(x, 0.25, 128, 0, 255, UINT8), corners, "uint8"),
    Case(TO, lambda x: Q.quantize_per_tensor(x, 0.5, 0, -127, 127, INT8), corners, "part of the range"),
    Case(TO, lambda x: Q.quantize_per_tensor(x, 0.5, 0, -9, 9, torch.int32), real, "int32", error="not to int32"),
    Case(FROM, lambda x: Q.dequantize_per_tensor(x, 0.125, 3, -128, 127, INT8), whole(INT8)),
    Case(FROM, lambda x: Q.dequantize_per_tensor(x, 0.3, 128, 0, 255, UINT8), whole(UINT8), "uint8"),
    Case(TO_EACH, lambda x: Q.quantize_per_channel(x, SCALES, ZEROS, 1, -128, 127, INT8), real),
    Case(TO_EACH, lambda x: Q.quantize_per_channel(x, SCALES, ZEROS, 1, -20, 20, INT8), real, "part of the range"),
    Case(FROM_EACH, lambda x: Q.dequantize_per_channel(x, SCALES, ZEROS, 1, -128, 127, INT8), whole(INT8)),
    Case(
        FROM_EACH,
        lambda x: Q.dequantize_per_channel(x, SCALES, None, 1, -128, 127, INT8),
        whole(INT8),
        "no zero points",
    ),
]
