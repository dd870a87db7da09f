"""fairlead.export: probe, record, solve, lower, write, verify."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch

from fairlead import _core
from fairlead.contract import Contract, merged
from fairlead.dynamic_shapes import STATIC_REQUEST, requests
from fairlead.inputs import Call, base_call, normalise, resized, varied
from fairlead.leaves import get_leaf_tensors, output_names
from fairlead.record.session import DTYPES, RecordingSession
from fairlead.record.state import ModelState
from fairlead.request import DEFAULT_OPSET, check_request
from fairlead.runtime_check import OnnxSession, compare, eager

CHECKED_SETTINGS = 3


@dataclass
class ExportResult:
    """What fairlead.export gives back."""

    path: str
    contract: Contract
    discrepancies: list[dict] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    nodes: int = 0
    operators: dict[str, int] = field(default_factory=dict)
    recorded_operators: set[str] = field(default_factory=set)
    runs: int = 0
    model_bytes: int = 0
    external_bytes: int = 0
    opset: int = DEFAULT_OPSET

    def __str__(self) -> str:
        return f"{self.path}: {self.nodes} nodes, opset {self.opset}\n{self.contract}"


class Progress:
    """Stage names and times; `show` is called at the start of each stage."""

    def __init__(self, show: Callable[[str], None] | None):
        self.show = show
        self.timings: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, what: str):
        if self.show is not None:
            self.show(what)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - start


def export(
    model: torch.nn.Module,
    inputs: Any,
    path: str | os.PathLike,
    *,
    dynamic_shapes: Any = None,
    input_names: list[str] | None = None,
    output_names: list[str] | None = None,
    opset: int = DEFAULT_OPSET,
    external_data: str = "auto",
    verify: bool = True,
    strict: bool = False,
    tolerance: float | None = None,
    progress: bool | Callable[[str], None] = False,
) -> ExportResult:
    """Exports a PyTorch module to ONNX with every dimension dynamic that the model lets vary.

    model: the module, in eval mode, on the CPU.
    inputs: one example call (a tuple of positional or a dict of named arguments), or a list of several.
    path: the .onnx file; large weights go to path + ".data".
    dynamic_shapes: as torch.export takes them; None finds out by itself. What is not mentioned stays fixed.
    input_names, output_names: names of the file's inputs and outputs, in order; by default the flat paths of the
        tensors (`input_ids`, `past_key_values.0.key`, `present.0.key`, `logits`).
    opset: 18 or newer, up to what the installed ONNX Runtime supports.
    external_data: "auto", "always" or "never".
    verify: run the file in ONNX Runtime and compare with eager at sizes that were never probed.
    strict: an assumption (a value the model read and that never varied) is an error.
    tolerance: largest difference allowed, scaled by max(1, |eager|); None: 1e-4 for float32, by dtype.
    progress: True prints the stages, a function is called with each.

    >>> result = fairlead.export(model, {"input_ids": ids}, "model.onnx")
    >>> print(result.contract)
    """
    show = progress if callable(progress) else (lambda what: print(f"fairlead: {what}", flush=True)) if progress else None
    return _Export(model, inputs, path, locals_of(locals()), Progress(show)).run()


def locals_of(values: dict) -> dict:
    names = ("dynamic_shapes", "input_names", "output_names", "opset", "external_data", "verify", "strict", "tolerance")
    return {name: values[name] for name in names}


def reason_of(error: Exception) -> str:
    """The part of an error that says what happened, as a reason to fix a dimension."""
    text = str(error).split("] ", 1)[-1].split(". No file", 1)[0].split(". Fix the", 1)[0]
    return text.split(", but ", 1)[-1]


class _Export:
    def __init__(self, model, inputs, path: str | os.PathLike, options: dict, progress: Progress):
        self.model, self.inputs, self.path, self.options, self.progress = model, inputs, path, options, progress
        self.staged = None  # files without their final name: whatever happens, they are discarded
        self.pinned: dict[tuple[int, int], str] = {}  # (leaf, axis) fixed in the course of this export -> why
        self.blamed: list[int] = []  # symbols at which the model branched
        self.probed = self.session = None

    def run(self) -> ExportResult:
        start = time.perf_counter()
        self.path = check_request(self.model, self.path, self.options)
        calls = self.calls = normalise(self.model, self.inputs)
        self.call = base_call(calls)
        try:
            return self.settled_run(calls, start)
        finally:
            self.discard()

    def discard(self) -> None:
        if self.staged is not None:
            self.staged.discard()

    def settled_run(self, calls: list[Call], start: float) -> ExportResult:
        """Runs until no dimension has to be fixed any more: one that makes the model branch, or that an integer
        depends on in a way nothing explains, is fixed with that reason unless the user asked for it."""
        while True:
            try:
                return self.staged_run(calls, start)
            except (_core.Diverged, _core.Unsolved) as error:
                if self.options["dynamic_shapes"] is not None or self.options["strict"] or not self.pin(calls, error):
                    raise
                self.discard()

    def pin(self, calls: list[Call], error: Exception) -> bool:
        """Fixes the dimensions of the symbols that are to blame; False where none is."""
        probed = self.probed
        if probed is None or not probed.symbols:
            return False
        blamed = self.blamed
        if not blamed:  # an integer without an expression: the first symbol without which it is solved
            blamed = [k for k in range(len(probed.symbols)) if self.solved_without(calls, k)][:1]
        found = False
        for k in blamed or range(len(probed.symbols)):
            for leaf, shape in enumerate(probed.shapes):
                for axis, text in enumerate(shape):
                    if text == probed.symbols[k].name or text.endswith(f"*{probed.symbols[k].name}"):
                        self.pinned[leaf, axis] = reason_of(error)
                        found = True
        return found

    def solved_without(self, calls: list[Call], k: int) -> bool:
        """Whether the runs in which symbol k kept its size have an expression for every integer."""
        probed, session = self.probed, self.session
        keep = [r for r, values in enumerate(probed.run_values) if values[k] == probed.run_values[0][k]]
        try:
            _core.build_program(
                session.core, [probed.runs[r] for r in keep], [s.name for s in probed.symbols],
                [probed.run_values[r] for r in keep], self.input_names, probed.shapes, self.names(session, probed),
            )  # fmt: skip
        except _core.FairleadError:
            return False
        return True

    def staged_run(self, calls: list[Call], start: float) -> ExportResult:
        self.probed, self.blamed = None, []
        with RecordingSession(self.model) as session:
            with self.progress.stage("probe", "probing which dimensions may vary"):
                probed = self.probed = self.probe(session, calls)
                self.session = session
            count = session.core.op_count(probed.runs[0])
            with self.progress.stage("solve", f"solving {count} operators over {len(probed.runs)} runs"):
                names = self.names(session, probed)
                program = _core.build_program(
                    session.core, probed.runs, [s.name for s in probed.symbols], probed.run_values,
                    self.input_names, probed.shapes, names,
                )  # fmt: skip
            contract = self.contract(program, probed, names)
            self.refuse_assumptions(contract)
            with self.progress.stage("lower", "lowering to ONNX"):
                model = program.lower(self.options["opset"])
                model.add_metadata("fairlead.contract", contract.text(checked=False))
            with self.progress.stage("write", f"writing {self.path}"):
                staged = self.staged = model.write(self.path, self.options["external_data"])
        rows = []
        if self.options["verify"]:
            with self.progress.stage("verify", "verifying in ONNX Runtime at sizes never probed"):
                rows = self.verify(session, probed, names, contract)
        staged.add_metadata("fairlead.checked", contract.verified)
        staged.commit()
        self.progress.timings["total"] = time.perf_counter() - start
        return ExportResult(
            path=self.path, contract=contract, discrepancies=rows, timings=self.progress.timings,
            nodes=model.node_count, operators=model.operators, runs=probed.trials,
            recorded_operators=session.core.operators(probed.runs[0]),
            model_bytes=staged.model_bytes, external_bytes=staged.external_bytes, opset=self.options["opset"],
        )  # fmt: skip

    # ---- probing --------------------------------------------------------------------------------

    def probe(self, session: RecordingSession, calls: list[Call]):
        call = self.call
        self.input_names = list(call.names)
        if self.options["input_names"] is not None:
            given = list(self.options["input_names"])
            if len(given) != len(call.names):
                raise _core.InvalidInput(
                    f"[export] Expected {len(call.names)} input_names, one per tensor ({shown(call.names)}), got {len(given)}."
                )
            self.input_names = given
        asked = requests(call, self.options["dynamic_shapes"])
        for leaf, axis in self.pinned:
            asked[leaf][axis] = STATIC_REQUEST
        ordered = [call] + [c for c in calls if c is not call]
        sizes = [[list(t.shape) for t in c.tensors] for c in ordered]
        self.first_outputs = None

        def trial(sizes, reference):
            args, kwargs = call.with_tensors(self.tensors_at(sizes))
            outcome = session.run(args, kwargs, reference, keep=reference < 0)
            if outcome.ok:
                if self.first_outputs is None:
                    self.first_outputs = list(get_leaf_tensors(outcome.outputs))
                return outcome.run, False, "", outcome.visible
            if outcome.parted is not None:
                _, before, now = outcome.parted
                return -1, True, f"the model executes {now} where it executed {before}", True
            return -1, False, outcome.error, True

        return _core.probe(call.names, asked, sizes, trial)

    def tensors_at(self, sizes: list[list[int]], seed: int | None = None) -> list[torch.Tensor]:
        tensors = [resized(t, list(s)) for t, s in zip(self.call.tensors, sizes, strict=True)]
        return tensors if seed is None else [varied(t, seed + k) for k, t in enumerate(tensors)]

    def names(self, session, probed) -> list[str]:
        names = output_names(self.first_outputs, self.input_names)
        if not names:
            raise _core.InvalidInput(
                "[export] Expected a model that returns tensors, got none. Return at least one tensor from forward."
            )
        given = self.options["output_names"]
        if given is None:
            return names
        if len(given) != len(names):
            raise _core.InvalidInput(
                f"[export] Expected {len(names)} output_names, one per tensor ({shown(names)}), got {len(given)}."
            )
        both = set(given) & set(self.input_names)
        if both:
            raise _core.InvalidInput(
                f"[export] Expected different names for inputs and outputs, got {sorted(both)[0]!r} in both. Rename one."
            )
        return list(given)

    # ---- the contract ---------------------------------------------------------------------------

    def contract(self, program, probed, names: list[str]) -> Contract:
        call = self.call
        contract = Contract()
        for symbol in probed.symbols:
            places = [
                f"axis {axis} of {name}"
                for name, shape in zip(self.input_names, probed.shapes, strict=True)
                for axis, text in enumerate(shape)
                if text == symbol.name
            ]
            where = places[0] if places else "multiples of an input size"
            contract.symbols.append(
                {"name": symbol.name, "tried": symbol.tried, "min": symbol.min, "max": symbol.max, "where": where}
            )
        for name, tensor, shape in zip(self.input_names, call.tensors, probed.shapes, strict=True):
            contract.inputs.append({"name": name, "dtype": DTYPES[tensor.dtype], "shape": shape})
        for name, shape, dtype in zip(names, program.output_shapes, program.output_dtypes, strict=True):
            contract.outputs.append({"name": name, "dtype": dtype, "shape": shape})
        for fixed in probed.fixed:
            contract.fixed.append(
                {
                    "name": self.input_names[fixed.leaf], "axis": fixed.axis, "size": fixed.size,
                    "reason": self.pinned.get((fixed.leaf, fixed.axis), fixed.reason),
                }
            )  # fmt: skip
        contract.assumptions = merged(program.assumptions)
        contract.ignored = list(program.ignored_inputs)
        contract.written = list(program.written_inputs)
        return contract

    def refuse_assumptions(self, contract: Contract) -> None:
        if not self.options["strict"]:
            return
        reads = [a for a in contract.assumptions if a["kind"] == "read"]
        if reads:
            text = "; ".join(f"{a['what']} (in {a['module'] or 'the model'} at {a['source']})" for a in reads)
            raise _core.Diverged(
                f"[export] Expected no assumption about values because strict=True, got {len(reads)}: {text}. "
                "Write the model without reading values, or export with strict=False."
            )

    # ---- verification -----------------------------------------------------------------------------

    def verify(self, recording: RecordingSession, probed, names: list[str], contract: Contract) -> list[dict]:
        try:
            session = OnnxSession(self.staged.path)
        except Exception as error:
            raise _core.Discrepancy(
                f"[verify] Expected a file that ONNX Runtime loads, got: {first_line(error)}. "
                f"No file was written under {self.path}."
            ) from error
        state = ModelState(self.model)
        random = any(a["kind"] == "random" for a in contract.assumptions)
        rows, refused = [], []
        seed = 1
        for kind, values in self.settings(probed):
            if sum(r["kind"] == "unseen" for r in rows) >= CHECKED_SETTINGS and kind == "unseen":
                continue
            row = self.check(session, probed, names, kind, values, seed, random, state)
            seed += 1000
            if row is None:
                refused.append(values)
                continue
            rows.append(row)
            if not row["ok"]:
                self.refuse(recording, probed, contract, row, values, seed - 1000)
        worst = max((r["scaled"] for r in rows), default=0.0)
        settings = "; ".join(", ".join(f"{k}={v}" for k, v in r["sizes"].items()) for r in rows if r["kind"] == "unseen")
        what = "shapes and types only, it draws random numbers" if random else f"worst difference {worst:.2g}"
        contract.verified = "in ONNX Runtime at the example" + (f" and at {settings}" if settings else "") + f": {what}"
        for values in refused:
            text = ", ".join(f"{s.name}={v}" for s, v in zip(probed.symbols, values, strict=True))
            contract.notes.append(f"eager itself refuses {text}")
        return rows

    def refuse(self, recording: RecordingSession, probed, contract: Contract, row: dict, values, seed: int) -> NoReturn:
        """The same call is recorded: where it executes other operators the model branched, and the place is known."""
        at = ", ".join(f"{k} = {v}" for k, v in row["sizes"].items()) or "the example's sizes"
        nothing = f"No file was written under {self.path}."
        args, kwargs = self.call.with_tensors(self.checked_tensors(probed, values, seed))
        with recording:
            outcome = recording.run(args, kwargs, probed.runs[0])
        if outcome.parted is not None:
            self.blamed = self.branching(recording, probed, values)
            _, before, now = outcome.parted
            raise _core.Diverged(
                f"[verify] Expected the model to execute the same operators at every size, but at {at} it executes {now} "
                f"where it executed {before}: it branches on a size or a value there. {nothing} "
                'Fix that dimension, or give its bounds, with dynamic_shapes={..: {0: Dim("n", min=.., max=..)}}.'
            )
        reads = [a for a in contract.assumptions if a["kind"] == "read"]
        cause = f" The model {reads[0]['what']} at {reads[0]['source']}: that assumption may be wrong." if reads else ""
        raise _core.Discrepancy(
            f"[verify] Expected ONNX Runtime to agree with eager, but output {row['output']} {row['problem']} "
            f"at {at}.{cause} {nothing}"
        )

    def branching(self, recording: RecordingSession, probed, values) -> list[int]:
        """The symbols that alone, at this setting, make the model execute other operators."""
        blamed = []
        base = probed.run_values[0]
        for k in range(len(probed.symbols)) if values is not None else ():
            alone = [values[k] if i == k else v for i, v in enumerate(base)]
            args, kwargs = self.call.with_tensors(self.tensors_at(probed.sizes_at(alone)))
            with recording:
                if recording.run(args, kwargs, probed.runs[0]).parted is not None:
                    blamed.append(k)
        return blamed

    def checked_tensors(self, probed, values, seed: int) -> list[torch.Tensor]:
        if values is None:
            return [t.clone() for t in self.call.tensors]
        return self.tensors_at(probed.sizes_at(values), seed)

    def settings(self, probed):
        yield "example", None
        for values in probed.unseen_settings(2 * CHECKED_SETTINGS):
            yield "unseen", values

    def check(self, session, probed, names, kind, values, seed, random, state) -> dict | None:
        tensors = self.checked_tensors(probed, values, seed)
        args, kwargs = self.call.with_tensors([t.clone() for t in tensors])
        try:
            start = time.perf_counter()
            expected = eager(self.model, args, kwargs)
            eager_seconds = time.perf_counter() - start
        except Exception as error:
            if values is None:
                raise _core.InvalidInput(
                    f"[verify] Expected the model to accept its example again, but it raised {type(error).__name__}: "
                    f"{first_line(error)}. Check whether the first call changes the model."
                ) from error
            return None
        finally:
            state.restore()
        named = zip([s.name for s in probed.symbols], values or [], strict=values is not None)
        row = {"kind": kind, "sizes": dict(named)}
        try:
            start = time.perf_counter()
            got = session.run(dict(zip(self.input_names, tensors, strict=True)))
            seconds = time.perf_counter() - start
        except Exception as error:
            return row | {"ok": False, "output": names[0], "scaled": float("inf"), "abs": float("inf"),
                          "problem": f"cannot be computed: {first_line(error)}"}  # fmt: skip
        found = compare(names, expected, got, self.options["tolerance"])
        if random and "[" not in found["problem"] and "outputs, eager" not in found["problem"]:
            found |= {"ok": True, "problem": "", "scaled": 0.0}
        return row | found | {"eager_seconds": eager_seconds, "ort_seconds": seconds}


def shown(names: list[str]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:400].rstrip(".")
