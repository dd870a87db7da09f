"""One row per observed call: an ONNX model run on its inputs, and how far its outputs are from the stored
ones.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from fairlead._core import compare
from fairlead.base.element_types import CODES, NAMES
from fairlead.observer.observed import InputObserverInfo
from fairlead.tree.leaves import get_leaf_tensors, output_names
from fairlead.tree.structure_text import string_type
from fairlead.verify.ort_values import from_tensor


def make_session(model: Any, on_cuda: bool) -> Any:
    """A session of onnxruntime from a path, bytes, a ModelProto, or what holds one of these; a session stays
    itself.
    """
    if hasattr(model, "run_with_ort_values") and hasattr(model, "get_inputs"):
        return model
    import onnxruntime

    providers = ["CUDAExecutionProvider", "CPUExecutionProvider"] if on_cuda else ["CPUExecutionProvider"]
    for attribute in ("path", "filename", "model_proto", "proto", "model"):
        inner = getattr(model, attribute, None)
        if not isinstance(model, (str, bytes, os.PathLike)) and not hasattr(model, "graph") and inner is not None:
            model = inner
            break
    if isinstance(model, (str, os.PathLike)):
        if not os.path.exists(model):
            raise FileNotFoundError(
                f"[check_discrepancies] Expected an ONNX file, got {os.fspath(model)}, which does not exist."
            )
        return onnxruntime.InferenceSession(os.fspath(model), providers=providers)
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if not isinstance(model, bytes):
        raise TypeError(
            f"[check_discrepancies] Expected a path, bytes, ModelProto or session, got {type(model).__name__}."
        )
    return onnxruntime.InferenceSession(model, providers=providers)


def match_names(wanted: Sequence[str], have: Sequence[str], what: str) -> list[str]:
    """For each ONNX name one of ours: by name (also with other separators), what is left by position.

    >>> match_names(["y", "past_key_values_key_0"], ["past_key_values.0.key", "y"], "inputs")
    ['y', 'past_key_values.0.key']
    """
    aliases = {alias: name for name in reversed(have) for alias in _aliases(name)}
    aliases.update({name: name for name in have})
    found = [aliases.get(name) for name in wanted]
    for index, name in enumerate(found):  # one tensor feeds one name
        if name is not None and name in found[:index]:
            found[index] = None
    open_names = [name for name, match in zip(wanted, found, strict=True) if match is None]
    left = [name for name in have if name not in found]
    if not open_names:
        return [name for name in found if name is not None]
    if len(open_names) != len(left):
        raise RuntimeError(
            f"[check_discrepancies] Expected {what} {', '.join(open_names)} of the ONNX model among those "
            "of the calls, "
            f"got {', '.join(left) or 'none'}."
        )
    rest = iter(left)
    return [name if name is not None else next(rest) for name in found]


def _aliases(name: str) -> Iterable[str]:
    yield name.replace(".", "_")
    parts = name.split(".")
    for index, part in enumerate(parts[:-1]):
        if part.isdigit():  # past_key_values.0.key is past_key_values_key_0 to torch.onnx
            yield "_".join([*parts[:index], *parts[index + 1 :], part])


class _Total:
    """Differences of all outputs of one call."""

    def __init__(self, hist: Sequence[float]):
        self.hist = list(hist)
        self.abs = self.rel = self.sum = 0.0
        self.n = self.dnan = self.dev = 0
        self.over = [0] * len(self.hist)
        self.broken: str | None = None

    def add(self, name: str, expected: torch.Tensor, got: Any) -> None:
        shape, code = list(got.shape()), got.element_type()
        dtype = str(expected.dtype).removeprefix("torch.")
        if shape != list(expected.shape) or code != CODES.get(dtype):
            self.broken = f"{name}: expected {dtype}{list(expected.shape)}, got {NAMES.get(code, code)}{shape}"
            return
        expected = expected.detach().cpu().contiguous()
        if got.device_name().lower() == "cpu":
            address, keep = got.data_ptr(), got
        else:
            keep = np.ascontiguousarray(got.numpy())
            address = keep.ctypes.data
        result = compare(dtype, expected.data_ptr(), address, expected.numel(), self.hist)
        del keep
        self.n += result.count
        self.sum += result.sum_abs
        self.dnan += result.nan_mismatch + result.inf_mismatch
        # A NaN or infinity on one side only is as far as can be.
        wrong = result.nan_mismatch + result.inf_mismatch > 0
        self.abs = max(self.abs, float("inf") if wrong else result.max_abs)
        self.rel = max(self.rel, float("inf") if wrong else result.max_rel)
        self.over = [a + b for a, b in zip(self.over, result.over, strict=True)]

    def row(self, atol: float, rtol: float) -> dict[str, Any]:
        if self.broken is not None:
            far = dict.fromkeys(("abs", "rel", "sum"), float("inf"))
            return {**far, "n": self.n, "dnan": self.dnan, "error": self.broken, "SUCCESS": False}
        row = {
            "abs": self.abs,
            "rel": self.rel,
            "sum": self.sum,
            "n": self.n,
            "dnan": self.dnan,
            "dev": self.dev,
        }
        row.update({f">{threshold}": count for threshold, count in zip(self.hist, self.over, strict=True)})
        row["SUCCESS"] = bool(self.abs <= atol and self.rel <= rtol)
        return row


def check_calls(
    info: InputObserverInfo,
    model: Any,
    atol: float,
    rtol: float,
    hist: Sequence[float],
    progress_bar: bool,
    include_io: bool,
) -> list[dict[str, Any]]:
    """The table of InputObserver.check_discrepancies."""
    on_cuda = any(tensor.is_cuda for candidate in info.inputs for tensor in candidate.flat_list)
    session = make_session(model, on_cuda)
    onnx_inputs = [value.name for value in session.get_inputs()]
    onnx_outputs = [value.name for value in session.get_outputs()]
    rows = []
    for index in _progress(range(len(info)), progress_bar):
        candidate = info.inputs[index]
        named = _named_arguments(info, index)
        leaves = get_leaf_tensors(named)
        present = len(candidate.flat_list)
        row: dict[str, Any] = {}
        results: dict[str, Any] = {}
        seconds = 0.0
        if not candidate.outputs:
            row = {"error": f"call {index} returned no tensors", "SUCCESS": False}
        else:
            matched = match_names(onnx_inputs, list(leaves), "inputs")
            feeds = {name: from_tensor(leaves[ours]) for name, ours in zip(onnx_inputs, matched, strict=True)}
            start = time.perf_counter()
            try:
                values = session.run_with_ort_values(onnx_outputs, feeds)
                seconds = time.perf_counter() - start
            except Exception as error:
                seconds = time.perf_counter() - start
                row = {"error": str(error), "SUCCESS": False}
            else:
                results = dict(zip(onnx_outputs, values, strict=True))
                row = _compare_outputs(candidate.outputs, results, list(leaves), hist).row(atol, rtol)
        row.update(
            index=index, duration_torch=candidate.latency, ort_duration=seconds, n_inputs=len(leaves),
            n_none=len(leaves) - present, n_empty=sum(tensor.numel() == 0 for tensor in leaves.values()),
            atol=atol, rtol=rtol,
        )  # fmt: skip
        if include_io:
            row["inputs"] = string_type(named, with_shape=True, ignore=True)
            row["outputs_torch"] = candidate.outputs_text
            row["outputs_ort"] = string_type(list(results.values()), with_shape=True, ignore=True, limit=1 << 30)
        rows.append(row)
    return rows


def _named_arguments(info: InputObserverInfo, index: int) -> dict[str, Any]:
    args, kwargs = info.infer_arguments(index, as_args_kwargs=True)
    return {name: value for name, value in info.parameters.named(args, kwargs).items() if value is not None}


def _compare_outputs(
    outputs: dict[str, torch.Tensor], results: dict[str, Any], inputs: list[str], hist: Sequence[float]
) -> _Total:
    total = _Total(hist)
    # Trailing outputs that eager does not have and that are empty say nothing.
    names = list(results)
    while len(names) > len(outputs) and 0 in results[names[-1]].shape():
        names.pop()
    if len(names) != len(outputs):
        total.broken = f"expected {len(outputs)} outputs ({', '.join(outputs)}), got {len(names)} ({', '.join(names)})"
        return total
    renamed = dict(zip(output_names(outputs, inputs), outputs, strict=True))
    by_name = {**{name: name for name in outputs}, **renamed}
    matched = match_names(names, list(dict.fromkeys(by_name)), "outputs") if set(names) <= set(by_name) else None
    ours = [by_name[name] for name in matched] if matched else list(outputs)
    if len(set(ours)) != len(ours):
        ours = list(outputs)
    for name, key in zip(names, ours, strict=True):
        total.add(key, outputs[key], results[name])
    total.dev = int(any(tensor.is_cuda for tensor in outputs.values()))
    return total


def _progress(items: Any, shown: bool) -> Any:
    if shown:
        try:
            from tqdm import tqdm
        except ImportError:  # a bar is no reason to fail
            return items
        return tqdm(items, desc="check_discrepancies")
    return items
