"""What a file computes, compared with eager at sizes and values that Fairlead did not choose: plain ONNX Runtime, torch
and numpy, none of Fairlead's verifier.

conftest.py watches every export of the modules of its list (`Watch`), and after the test compares each file that was
written. A test whose files cannot be compared says why: `@pytest.mark.not_compared("it draws")`; without the mark it
fails, so no test of these only exports. Programs of torch.export are not watched: test_exported_program.py compares
what it writes.

The contract is the claim: sizes are taken within its bounds and left out where the model was probed or checked; inputs
have the shapes that it gives. Where eager raises, another setting is taken; a file that raises where eager does not is
wrong, save where its contract has requirements.
"""

import copy
import ctypes
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

from fairlead.tree import get_leaf_tensors

# Types that numpy has not: the integers that carry their bytes, their number in ONNX.
CARRIED = {
    torch.bfloat16: (torch.int16, 16),
    torch.float8_e4m3fn: (torch.uint8, 17),
    torch.float8_e5m2: (torch.uint8, 19),
}
# In proportion to an output's largest value.
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}
MOST_ELEMENTS = 4_000_000  # of one input: settings beyond are not tried
WANTED = 2  # settings that are compared


class NotComparedError(Exception):
    """Why nothing could be compared."""


@dataclass
class Exported:
    """One export: what was given, and what came out."""

    model: Any
    inputs: Any
    options: Any
    result: Any
    stamp: Any  # of the file when it was written


def stamp_of(path: str) -> Any:
    """Another one when the file is replaced."""
    if not path or not os.path.exists(path):
        return None
    found = os.stat(path)
    return found.st_ino, found.st_mtime_ns


# ---- structures: tensors out of a call, others into it -------------------------------------------------


def tensors_in(value: Any, numbers: bool = False) -> Iterator[torch.Tensor]:
    """Tensors in the order in which dicts, lists and objects hold them; with `numbers` those as well."""
    if isinstance(value, torch.Tensor):
        yield value
    elif numbers and isinstance(value, (bool, int, float, complex)):
        yield torch.tensor(value)
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each, numbers)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each, numbers)
    elif hasattr(value, "__dict__") and not isinstance(value, (type, torch.nn.Module)) and not callable(value):
        for each in vars(value).values():
            yield from tensors_in(each)


def with_tensors(value: Any, tensors: list[torch.Tensor]) -> Any:
    """A copy of a call with copies of other tensors, in the same order."""
    return filled(value, (t.clone() for t in tensors))


def filled(value: Any, others: Iterator[torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return next(others)
    if type(value) is dict:
        return {key: filled(each, others) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(filled(each, others) for each in value)
    return copy.deepcopy(value, {id(t): next(others) for t in tensors_in(value)})


# ---- sizes and values ---------------------------------------------------------------------------------


def settings(contract: Any, checks: Any) -> Iterator[dict[str, int]]:
    """Sizes by symbol: all different and none of them met before, save where every size was; then a symbol at 1; then
    those of the product's own checks."""
    seen = {s.name: {*s.tried, *(row.sizes[s.name] for row in checks if s.name in row.sizes)} for s in contract.symbols}

    def chosen(first: int, step: int) -> dict[str, int]:
        found: dict[str, int] = {}
        for symbol in contract.symbols:
            size, most = max(first, symbol.min), min(symbol.max, 4096)
            while size <= most and (size in seen[symbol.name] or size in found.values()):
                size += step
            if size > most:
                left = [n for n in range(symbol.min, most + 1) if n not in seen[symbol.name]]
                size = left[0] if left else min(max(first, symbol.min), most)
            found[symbol.name] = size
        return found

    for first, step in ((2, 1), (23, 3), (6, 2), (17, 5), (8, 8), (24, 16), (3, 4), (40, 7)):
        yield chosen(first, step)
    for symbol in contract.symbols:
        if symbol.min <= 1 and 1 not in seen[symbol.name]:
            yield chosen(5, 1) | {symbol.name: 1}
    for row in checks:  # sizes that the model is known to accept, with other values
        if set(row.sizes) == set(seen):
            yield dict(row.sizes)


def drawn(example: torch.Tensor, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """Values within the range of the example's."""
    if example.dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if example.is_complex():
        return torch.randn(shape, dtype=example.dtype, generator=generator)
    wide = example.detach().to(torch.float64)
    wide = wide[torch.isfinite(wide)]
    low, high = (wide.min().item(), wide.max().item()) if wide.numel() else (0.0, 1.0)
    if not example.is_floating_point():
        return torch.randint(int(low), int(high) + 1, shape, generator=generator).to(example.dtype)
    spread = torch.rand(shape, dtype=torch.float64, generator=generator)
    return (low + spread * (high - low if high > low else 1.0)).to(example.dtype)


def tiled(example: torch.Tensor, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """The example over and over: for values that only the model's author knows to choose."""
    found = example.detach()
    for axis, size in enumerate(shape):
        found = found.index_select(axis, torch.arange(size) % example.shape[axis])
    return found.clone()


# ---- running both ---------------------------------------------------------------------------------------


def fresh(model: Any) -> Any:
    """A copy in eval mode that shares the weights: what a call leaves on it is not there at the next one. The model
    itself where it holds what cannot be copied."""
    if not isinstance(model, torch.nn.Module):
        return model
    try:
        return copy.deepcopy(model, {id(p): p for p in model.parameters()}).eval()
    except Exception:  # whatever it holds
        return model


class File:
    """A written file in its runtime: tensors by name in, tensors in order out."""

    def __init__(self, path: str) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = {i.name for i in self.session.get_inputs()}

    def run(self, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        values = {name: to_value(tensor) for name, tensor in given.items() if name in self.inputs}
        return [to_tensor(value) for value in self.session.run_with_ort_values(None, values)]


def to_value(tensor: torch.Tensor) -> Any:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    tensor = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).contiguous()
    if tensor.dtype in CARRIED:
        carrier, code = CARRIED[tensor.dtype]
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(tensor.view(carrier).numpy(), code)
    return onnxruntime.OrtValue.ortvalue_from_numpy(tensor.numpy())


def to_tensor(value: Any) -> torch.Tensor:
    for dtype, (carrier, code) in CARRIED.items():
        if value.element_type() == code:
            count = int(np.prod(value.shape())) * dtype.itemsize
            held = bytearray((ctypes.c_char * count).from_address(value.data_ptr())) if count else bytearray()
            raw = torch.frombuffer(held, dtype=carrier) if count else torch.empty(0, dtype=carrier)
            return raw.view(dtype).reshape(value.shape())
    array = value.numpy()
    return torch.from_numpy(np.array(array).view(array.dtype.str))  # torch does not know unsigned long long


# ---- comparing ------------------------------------------------------------------------------------------


def example_of(exported: Exported) -> tuple[Any, Any]:
    """What is run, and the call that other calls are made from."""
    model, inputs = exported.model, exported.inputs
    if inputs is None or not isinstance(model, torch.nn.Module):
        raise NotComparedError("it is no module that can be called")
    if callable(getattr(inputs, "calls", None)):  # an observer
        inputs = [inputs.example()]
    if isinstance(inputs, list):
        inputs = next((call for call in inputs if all(t.numel() for t in tensors_in(call))), inputs[0])
    if isinstance(inputs, dict):
        return model, ((), inputs)
    if not isinstance(inputs, tuple):
        return model, ((inputs,), {})
    pair = len(inputs) == 2 and isinstance(inputs[0], tuple) and isinstance(inputs[1], dict)
    return model, inputs if pair else (inputs, {})


def in_the_order_of(call: tuple[tuple[Any, ...], dict[str, Any]], rows: list[Any]) -> list[int]:
    """Of each input of the contract, the number of its tensor in the call: by names where arguments have them."""
    args, named = call
    places = {id(tensor): place for place, tensor in enumerate(tensors_in(call))}
    positional = list(range(len(list(tensors_in(args)))))
    # Layer by layer, where a cache of two caches holds one after the other.
    numbers = {name: [places[id(t)] for t in get_leaf_tensors(value).values()] for name, value in named.items()}
    found = []
    for row in rows:
        name = max((n for n in numbers if row.name == n or row.name.startswith(f"{n}.")), key=len, default=None)
        left = positional if name is None else numbers[name]
        if not left:  # names of the user's own
            return list(range(len(rows)))
        found.append(left.pop(0))
    return found


def difference(got: torch.Tensor, expected: torch.Tensor, precision: Any, tolerance: float | None) -> str:
    """In words, "" where there is none. `precision`: the lowest that the contract names, or the output's own."""
    if expected.is_complex():
        expected = torch.view_as_real(expected.resolve_conj())
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{list(got.shape)} where eager has {expected.dtype}{list(expected.shape)}"
    if not expected.is_floating_point():
        wrong = int((got.numpy() != expected.numpy()).sum())
        return f"{wrong} of {got.numel()} values differ" if wrong else ""
    allowed = max(TOLERANCE.get(expected.dtype, 0.2), TOLERANCE.get(precision, 0.0), tolerance or 0.0)
    got, expected = got.to(torch.float64), expected.detach().to(torch.float64)
    finite = torch.isfinite(expected)
    if not torch.equal(torch.isfinite(got), finite):
        return "not finite at other places"
    if not torch.equal(got[~finite].nan_to_num(nan=7.0), expected[~finite].nan_to_num(nan=7.0)):
        return "other infinities"
    if not finite.any():
        return ""
    scale = expected[finite].abs().max().item()
    worst = (got - expected)[finite].abs().max().item()
    return "" if worst <= allowed * scale + 1e-6 else f"differs by {worst:g} of {scale:g}"


def compare(exported: Exported) -> int:
    """At how many settings the file was compared. AssertionError: it is wrong; NotComparedError: nobody can tell."""
    model, inputs = example_of(exported)
    contract, result = exported.result.contract, exported.result
    with tempfile.TemporaryDirectory() as folder, torch.no_grad(), torch.random.fork_rng(devices=[]):
        path = result.path
        if stamp_of(path) is None or stamp_of(path) != exported.stamp:  # nobody named it, or it was replaced
            path = str(Path(folder) / "model.onnx")
            result.model.write(path, "auto").commit()
        examples = list(tensors_in(inputs))
        if len(examples) != len(contract.inputs):
            raise NotComparedError(f"{len(contract.inputs)} inputs of {len(examples)} tensors")
        order = in_the_order_of(inputs, contract.inputs)
        try:
            file = File(path)
        except Exception as error:
            raise AssertionError(f"ONNX Runtime cannot open the file: {error}") from None
        generator = torch.Generator().manual_seed(20)
        compared, refusals = 0, []
        at_example = [{s.name: None for s in contract.symbols}]
        for sizes in settings(contract, result.discrepancies) if contract.symbols else at_example:
            shapes = [[int(eval(size, {}, sizes)) for size in row.shape] for row in contract.inputs]
            if any(np.prod(shape, dtype=object) > MOST_ELEMENTS for shape in shapes):
                continue
            for make in (drawn, tiled):
                made: list[Any] = [None] * len(examples)
                for number, shape in zip(order, shapes, strict=True):
                    made[number] = make(examples[number], shape, generator)
                given = {row.name: made[k] for row, k in zip(contract.inputs, order, strict=True)}
                call = partial(with_tensors, inputs, made)
                try:
                    expected = called(model, call)
                except Exception as error:  # the model's own reasons
                    refusals.append(f"{sizes}: {str(error).splitlines()[:1]}")
                    continue
                again = partial(called, model, call)
                words = f"{sizes}, {make.__name__} values"
                if refusal := assert_same(file, given, expected, again, words, exported):
                    refusals.append(refusal)
                    continue
                compared += 1
                break
            if compared == WANTED:
                break
    if not compared:
        raise NotComparedError(f"every setting is refused: {refusals[:3]}")
    return compared


def called(model: torch.nn.Module, call: Callable[[], Any]) -> Any:
    """What a copy of the model returns for a new call."""
    args, named = call()
    return fresh(model)(*args, **named)


def outputs_in(returned: Any, count: int) -> list[torch.Tensor]:
    """Tensors, layer by layer where two caches hold them one after the other; with numbers where a file has these."""
    found = list(get_leaf_tensors(returned).values())
    return found if len(found) == count else list(tensors_in(returned, numbers=True))


def assert_same(
    file: File, given: dict[str, torch.Tensor], expected: Any, again: Callable[[], Any], where: str, exported: Exported
) -> str:
    """The file's refusal, where its contract has requirements."""
    contract = exported.result.contract
    try:
        got = file.run(given)
    except Exception as error:
        if not contract.required:
            raise AssertionError(f"the file refuses {where}: {error}") from None
        return f"the file refuses {where}"
    wanted = outputs_in(expected, len(got))
    assert len(got) == len(wanted), f"{len(got)} outputs, eager gives {len(wanted)} at {where}"
    for number, (row, a, b) in enumerate(zip(contract.outputs, got, wanted, strict=True)):
        named = contract.computed_in[number] if number < len(contract.computed_in) else row.dtype
        problem = difference(a, b, getattr(torch, named or row.dtype, None), exported.options.tolerance)
        # The model draws, and so does the file. Few draws of few values may be alike.
        if problem and a.dtype == b.dtype and a.dim() == b.dim():
            others = (outputs_in(again(), len(got))[number] for _ in range(8))
            if any(difference(other, b, None, None) for other in others):
                continue
        assert not problem, f"output {row.name!r} of the file at {where}: {problem}"
    return ""


class Watch:
    """Exports of the test that runs, and what was found about them."""

    on = True  # for the modules that are compared (conftest.py)

    def __init__(self) -> None:
        self.waiting: list[Exported] = []
        self.problems: list[str] = []
        self.compared = 0

    def install(self) -> None:
        from fairlead.targets.onnx import OnnxExport

        run = OnnxExport.run

        def watched(job: Any) -> Any:
            if not Watch.on:
                return run(job)
            model, inputs, path = fresh(job.model), job.inputs, job.path
            if path is not None:  # a file that waits there is about to be replaced
                self.compare([each for each in self.waiting if each.result.path == str(path)])
            result = run(job)
            self.waiting.append(Exported(model, inputs, job.options, result, stamp_of(result.path)))
            return result

        OnnxExport.run = watched

    def compare(self, exports: list[Exported]) -> None:
        for exported in exports:
            self.waiting.remove(exported)
            try:
                self.compared += compare(exported)
            except (AssertionError, NotComparedError) as error:
                self.problems.append(f"{exported.result.path or 'in memory'}: {error}")

    def taken(self, look: bool) -> list[str]:
        """The problems of everything since the last call; without `look` nothing is compared."""
        if look:
            self.compare(list(self.waiting))
        problems = self.problems if look else []
        self.waiting, self.problems = [], []
        return problems
