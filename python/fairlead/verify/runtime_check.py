"""The written file in ONNX Runtime against eager, at the example and at sizes that were never probed."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fairlead import _core
from fairlead.base.element_types import CODES, ORT_TYPES
from fairlead.record.switches import here, without_fast_path
from fairlead.tree.dtypes import DTYPES
from fairlead.tree.leaves import leaf_tensors, with_numbers
from fairlead.verify.ort_values import as_stored, from_tensor

# In proportion to the largest value of an output (compare.h says why). float32: a few hundred rounding steps of 6e-8
# in sums of this length; the 16-bit types have 11 and 8 bits of mantissa, and ONNX Runtime rounds at other places than
# eager does.
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}


MANY_INPUTS = 1000
LARGE = 64 << 20  # bytes of weights from which on packing them takes longer than the few runs of a check gain by it


def session_options(packs: bool = True) -> Any:
    """Without `packs` ONNX Runtime takes weights as they lie in the file, which costs less memory and a start, and more
    in every run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what fails is raised, and said once
    options.intra_op_num_threads = 1  # small inputs: starting threads costs more than they save
    if not packs:
        options.add_session_config_entry("session.disable_prepacking", "1")
    return options


class OnnxSession:
    """An ONNX Runtime session fed with and giving torch tensors, without copies, for every dtype. With `seconds` a run
    ends after so long, between two nodes, as an error of ONNX Runtime's."""

    def __init__(self, path: str, seconds: float | None = None, packs: bool = True):
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)  # of what is outside of a session: colours, on stderr
        self.run_options, self.seconds = onnxruntime.RunOptions, seconds
        self.cpu = onnxruntime.OrtDevice.make("cpu", 0)._get_c_device()
        self.path = path
        self.ahead: Any = None  # who reads its data meanwhile
        self.session = onnxruntime.InferenceSession(
            path, session_options(packs), providers=["CPUExecutionProvider"], enable_fallback=0
        )  # without a second try, which it prints
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.optional = [i.name for i in self.session.get_overridable_initializers()]  # with a value of the file's own
        self.outputs = [o.name for o in self.session.get_outputs()]

    def run(self, feeds: dict[str, torch.Tensor]) -> list[Any]:
        with self.ending() as options:
            return self.run_with(feeds, options)

    @contextlib.contextmanager
    def ending(self) -> Iterator[Any]:
        if self.seconds is None:
            yield None
            return
        options = self.run_options()
        timer = threading.Timer(self.seconds, lambda: setattr(options, "terminate", True))
        timer.daemon = True
        timer.start()
        try:
            yield options
        finally:
            timer.cancel()

    def run_with(self, feeds: dict[str, torch.Tensor], options: Any) -> list[Any]:
        inputs = [*self.inputs, *(name for name in self.optional if name in feeds)]
        if len(inputs) < MANY_INPUTS:
            values = {name: from_tensor(feeds[name]) for name in inputs}
            return list(self.session.run_with_ort_values(self.outputs, values, options))
        # The plain call looks for every name in a list of all names, and a value for each takes longer than the run;
        # so does the wrapper of bind_input, which makes a device for each.
        bound = self.session.io_binding()
        bind, cpu = bound._iobinding.bind_input, self.cpu
        held = [as_stored(feeds[name]) for name in inputs]
        codes = {dtype: CODES[DTYPES[dtype]] for dtype in {tensor.dtype for tensor in held}}
        for name, tensor in zip(inputs, held, strict=True):
            bind(name, cpu, codes[tensor.dtype], tensor.shape, tensor.data_ptr())
        for name in self.outputs:
            bound.bind_output(name)
        self.session.run_with_iobinding(bound, options)
        return list(bound.get_outputs())


class TensorValue:
    """A tensor with the interface of the values that are compared with eager."""

    def __init__(self, tensor: torch.Tensor):
        tensor = tensor.detach().resolve_conj().resolve_neg()
        self.tensor = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).contiguous()

    def data_type(self) -> str:
        return DTYPES[self.tensor.dtype]

    def shape(self) -> list[int]:
        return list(self.tensor.shape)

    def data_ptr(self) -> int:
        return self.tensor.data_ptr()


@dataclass
class Difference:
    """Of one output; `problem` where it is more than allowed."""

    abs: float = 0.0
    scaled: float = 0.0
    scale: float = 1.0
    limit: float = 0.0
    problem: str = ""
    not_finite: bool = False  # NaN or infinite on one side only


def tolerance_for(dtype: torch.dtype, computed_in: str = "") -> float:
    """By dtype; of an output that lower precision went into (autocast within forward), by that."""
    own = TOLERANCE.get(dtype, 0.0)
    return max(own, TOLERANCE.get(getattr(torch, computed_in, dtype), 0.0)) if own and computed_in else own


NOTHING = 1e-30  # the scale of an output that has nothing but zeros, or what underflows


def precision(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


def difference(
    want: torch.Tensor, value: Any, tolerance: float | None, computed_in: str = "", scale: float = 0.0
) -> Difference:
    """The values of two tensors of the same shape and type. `scale` is that of the output in general: where all of it
    is small here (a sigmoid far out), what is below a rounding step of that is no difference."""
    want = torch.view_as_real(want.resolve_conj()) if want.is_complex() else want.resolve_neg()
    want = want.detach().contiguous()
    limit = tolerance if tolerance is not None else tolerance_for(want.dtype, computed_in)
    if want.numel() == 0:
        return Difference(limit=limit)
    dtype = DTYPES[want.dtype]
    found = _core.compare(dtype, want.data_ptr(), value.data_ptr(), want.numel())
    scaled, problem = found.max_scaled, ""
    not_finite = bool(found.nan_mismatch or found.inf_mismatch)
    if not_finite:
        count = found.nan_mismatch + found.inf_mismatch
        problem = f"{count} of {found.count} values are NaN or infinite on one side only"
        scaled = math.inf
    elif found.differing:
        problem = f"{found.differing} of {found.count} {dtype} values differ"
        scaled = max(scaled, 1.0)
    elif scaled > limit and found.scale < NOTHING and found.max_abs <= precision(want.dtype):
        scaled = found.max_abs  # zeros, up to a rounding step of 1
    elif scaled > limit and found.max_abs <= min(limit, precision(want.dtype)) * scale:
        scaled = found.max_abs / scale
    elif scaled > limit:
        problem = f"differs by {scaled:.3g} (scaled), more than {limit:g}"
    return Difference(found.max_abs, scaled, found.scale, limit, problem, not_finite)


def same_sizes(got: Sequence[int], want: Sequence[int], drawn: Sequence[int]) -> bool:
    """Whether two shapes agree, except along axes whose size is drawn."""
    return len(got) == len(want) and all(
        a == b or axis in drawn for axis, (a, b) in enumerate(zip(got, want, strict=True))
    )


def compare(
    names: list[str], expected: list[torch.Tensor], got: list[Any], tolerance: float | None,
    drawn: Mapping[str, Sequence[int]] | None = None, computed_in: Sequence[str] = (), scales: Sequence[float] = (),
) -> dict[str, Any]:  # fmt: skip
    """One row: the worst difference over the outputs, and what is wrong where something is. Of outputs that are drawn
    anew at each run the types and sizes alone; the axes given with them have no size of their own. `computed_in` is the
    lowest precision that went into each output, where it is known.
    """
    drawn = drawn or {}
    limit = TOLERANCE[torch.float32] if tolerance is None else tolerance
    row: dict[str, Any] = {"abs": 0.0, "scaled": 0.0, "scale": 1.0, "output": "", "ok": True, "problem": "",
                           "not_finite": False, "tolerance": limit}  # fmt: skip
    if len(expected) != len(got):
        problem = f"{len(got)} outputs, eager has {len(expected)}"
        return row | {"ok": False, "scaled": math.inf, "abs": math.inf, "problem": problem}
    for k, (name, want, value) in enumerate(zip(names, expected, got, strict=True)):
        dtype = ORT_TYPES.get(value.data_type(), value.data_type())
        if want.is_complex():
            want = torch.view_as_real(want.resolve_conj())
        if not same_sizes(value.shape(), want.shape, drawn.get(name, ())) or dtype != DTYPES.get(want.dtype):
            problem = f"{dtype}{list(value.shape())}, eager has {DTYPES.get(want.dtype)}{list(want.shape)}"
            return row | {"ok": False, "scaled": math.inf, "abs": math.inf, "output": name, "problem": problem}
        if want.numel() == 0 or name in drawn:
            continue
        found = difference(want, value, tolerance, computed_in[k] if computed_in else "", scales[k] if scales else 0.0)
        figures = {"abs": found.abs, "scaled": found.scaled, "output": name, "tolerance": found.limit,
                   "scale": found.scale, "not_finite": found.not_finite}  # fmt: skip
        if found.problem:
            return row | figures | {"ok": False, "problem": found.problem}
        if found.scaled >= row["scaled"]:
            row |= figures
    return row


@contextlib.contextmanager
def same_kernels() -> Iterator[None]:
    """Without the fused path of nn.TransformerEncoder, which leaves padded places zero: as it was recorded."""
    with without_fast_path(), here():
        yield


def eager(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: bool = False
) -> list[torch.Tensor]:
    """The tensors that the model returns, and with `numbers` those as well."""
    with torch.no_grad(), same_kernels():
        returned = model(*args, **kwargs)
        outputs = leaf_tensors(with_numbers(returned) if numbers else returned)
        # A buffer that is returned is about to be put back as it was.
        held = {buffer.untyped_storage().data_ptr() for buffer in model.buffers()}
        return [t.clone() if t.untyped_storage().data_ptr() in held else t for t in outputs]
