"""Eager and the file side by side: each run as a user would, and compared with a tolerance of this folder's own."""

from __future__ import annotations

import ctypes
import enum
import math
from typing import Any

import torch

TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
# A sum of numbers of size 1 may cancel: what is left of it is rounding.
FLOOR = {torch.float64: 1e-14, torch.float32: 5e-7, torch.float16: 1e-3, torch.bfloat16: 1e-2}


def flat_outputs(value: Any) -> list:
    if isinstance(value, torch.Tensor) or value is None or isinstance(value, (int, float, bool, complex, str)):
        return [value]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in flat_outputs(item)]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat_outputs(item)]
    if isinstance(value, (enum.Enum, torch.dtype)):
        return []
    return [leaf for item in vars(value).values() for leaf in flat_outputs(item)]


def flat_tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in flat_outputs(value) if isinstance(leaf, torch.Tensor)]


def copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(copied, value))
    if isinstance(value, (tuple, list)):
        return type(value)(map(copied, value))
    return {k: copied(v) for k, v in value.items()} if isinstance(value, dict) else value


def run_eager(model: torch.nn.Module, call: Any) -> list[torch.Tensor]:
    """Tensors, and the numbers among them as tensors of no dimension."""
    with torch.no_grad():
        out = model(**copied(call)) if isinstance(call, dict) else model(*copied(call))
    kept = [v for v in flat_outputs(out) if v is not None and not isinstance(v, str)]
    return [v.detach().clone() if isinstance(v, torch.Tensor) else torch.tensor(v) for v in kept]


def difference(want: list[torch.Tensor], got: list[torch.Tensor], times: float = 1.0) -> str:
    """In words; "" where they agree. Scaled by each output's own largest magnitude."""
    if len(want) != len(got):
        return f"{len(got)} outputs, eager has {len(want)}"
    for k, (w, g) in enumerate(zip(want, got, strict=True)):
        w = torch.view_as_real(w.resolve_conj()) if w.is_complex() else w.resolve_neg()
        if tuple(w.shape) != tuple(g.shape):
            return f"output {k} has shape {list(g.shape)}, eager's has {list(w.shape)}"
        if w.dtype != g.dtype:
            return f"output {k} is {g.dtype}, eager's is {w.dtype}"
        if not w.numel():
            continue
        if not w.dtype.is_floating_point:
            if not torch.equal(w, g):
                at = int((w != g).flatten().nonzero()[0])
                return f"output {k}[{at}] is {g.flatten()[at].item()}, eager's {w.flatten()[at].item()}"
            continue
        a, b = w.double().flatten(), g.double().flatten()
        strange = (a.isnan() != b.isnan()) | ((a.isinf() | b.isinf()) & (a != b) & ~(a.isnan() & b.isnan()))
        if bool(strange.any()):
            at = int(strange.nonzero()[0])
            return f"output {k}[{at}] is {b[at].item()}, eager's {a[at].item()}"
        finite = a.isfinite()
        if not bool(finite.any()):
            continue
        a, b = a[finite], b[finite]
        allowed = times * TOLERANCE.get(w.dtype, 0.0) * float(a.abs().max()) + FLOOR.get(w.dtype, 0.0)
        off = (a - b).abs()
        if float(off.max()) > allowed:
            at = int(off.argmax())
            largest = float(a.abs().max())
            return f"output {k} is {b[at].item():.6g} where eager's is {a[at].item():.6g} (largest {largest:.3g})"
    return ""


class Session:
    """The file in ONNX Runtime, as a client would open it."""

    def __init__(self, path: str):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        self.ort = onnxruntime
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = [i.name for i in self.session.get_inputs()]

    def run(self, feeds: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        held = {name: self.value(feeds[name]) for name in self.names}
        outputs = [o.name for o in self.session.get_outputs()]
        return [self.tensor(v) for v in self.session.run_with_ort_values(outputs, held)]

    def value(self, tensor: torch.Tensor):
        tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
        if tensor.is_complex():
            tensor = torch.view_as_real(tensor).contiguous()
        if tensor.dtype == torch.bfloat16:
            return self.ort.OrtValue.ortvalue_from_numpy_with_onnx_type(tensor.view(torch.int16).numpy(), 16)
        return self.ort.OrtValue.ortvalue_from_numpy(tensor.numpy())

    def tensor(self, value) -> torch.Tensor:
        if value.data_type() == "tensor(bfloat16)":
            raw = bytearray(ctypes.string_at(value.data_ptr(), 2 * math.prod(value.shape())))
            return (
                torch.frombuffer(raw, dtype=torch.bfloat16).reshape(value.shape())
                if raw
                else torch.empty(value.shape())
            )
        return torch.from_numpy(value.numpy().copy()).reshape(value.shape())


def first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
