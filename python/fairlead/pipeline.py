"""fairlead.export: probe, record, solve, lower, write, verify."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from fairlead import _core
from fairlead.alone import alone
from fairlead.contract import Contract, merged
from fairlead.driver import Driver
from fairlead.dynamic_shapes import check_sizes, requests
from fairlead.exported_program import ProgramExport, check_tracer, is_program
from fairlead.inputs import Call, base_call, constants, filled, normalise, resized, shown
from fairlead.leaves import get_leaf_tensors, output_names
from fairlead.model_program import Program
from fairlead.record.control_flow import ControlFlow
from fairlead.record.leftovers import leave_other_sizes
from fairlead.record.outside import refuse_outside
from fairlead.record.session import DTYPES
from fairlead.record.state import ModelState
from fairlead.report.failure import explain
from fairlead.report.record import record_of
from fairlead.request import DEFAULT_OPSET, check_request
from fairlead.runtime_check import OnnxSession, eager
from fairlead.verification import Verification


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
    recorded_count: int = 0
    runs: int = 0
    passes: dict[str, int] = field(default_factory=dict)  # runs of the model: with weights, without, to check the file
    model_bytes: int = 0
    external_bytes: int = 0
    opset: int = DEFAULT_OPSET
    model: Any = field(default=None, repr=False)  # the lowered model, from which it can be written again
    record: dict = field(default_factory=dict)  # what the file itself carries for its report

    def report(self, path: str | os.PathLike) -> str:
        """Writes a page about this export, one HTML file that needs nothing else; see docs/report.md."""
        from fairlead.report import report_result

        return report_result(self, path)

    def __str__(self) -> str:
        opset = f", opset {self.opset}" if self.opset else ""
        return f"{self.path or 'in memory'}: {self.nodes} nodes{opset}\n{self.contract}"


class Progress:
    """Stage names and times; `show` is called at the start of each stage."""

    def __init__(self, show: Callable[[str], None] | None):
        self.show = show
        self.timings: dict[str, float] = {}
        self.current = ""  # the stage that is running, or that failed
        self.open = False

    @contextmanager
    def stage(self, name: str, what: str):
        start = time.perf_counter()
        self.enter(name, what)
        try:
            yield
        finally:
            self.spent(time.perf_counter() - start)
            self.leave()

    def enter(self, name: str, what: str) -> None:
        """What was spent from now on is spent on that."""
        if self.show is not None:
            self.show(what)
        self.current, self.open = name, True

    def leave(self) -> None:
        self.open = False

    def spent(self, seconds: float) -> None:
        if self.open:
            self.timings[self.current] = self.timings.get(self.current, 0.0) + seconds


@alone
def export(
    model: Any,
    inputs: Any = None,
    path: str | os.PathLike | None = None,
    *,
    tracer: str = "observe",
    dynamic_shapes: Any = None,
    input_names: list[str] | None = None,
    output_names: list[str] | None = None,
    opset: int = DEFAULT_OPSET,
    external_data: str = "auto",
    verify: bool = True,
    strict: bool = False,
    tolerance: float | None = None,
    allow_random: bool = False,
    max_size: Mapping[str, int] | None = None,
    optimize: bool = True,
    notes: Sequence[str] = (),
    shared_weights: _core.SharedWeights | None = None,
    progress: bool | Callable[[str], None] = False,
) -> ExportResult:
    """Exports a PyTorch module with every dimension dynamic that the model lets vary: to ONNX, or by the suffix of the
    path to a torch.export.ExportedProgram (.pt2) or to ExecuTorch (.pte).

    model: the module, in eval mode, on the CPU; or a program of torch.export, or the name of a .pt2 file with one:
        then export(program, path), with no inputs.
    inputs: one example call (a tuple of positional or a dict of named arguments), or a list of several.
    path: the .onnx file; large weights go to a file beside it. None leaves no file: the result's model can be written.
    tracer: "observe" runs the model at several sizes and records it; "torch.export" traces it symbolically first.
    dynamic_shapes: as torch.export takes them; None finds out by itself. What is not mentioned stays fixed.
    input_names, output_names: names of the file's inputs and outputs, in order; by default the flat paths of the
        tensors (`input_ids`, `past_key_values.0.key`, `present.0.key`, `logits`).
    opset: 18 or newer, up to what the installed ONNX Runtime supports.
    external_data: "auto", "always" or "never".
    verify: run the file in ONNX Runtime and compare with eager at sizes that were never probed.
    strict: an assumption (a value the model read and that never varied) is an error.
    tolerance: largest difference allowed, in proportion to an output's largest value; None: 1e-4 for float32, by dtype.
    allow_random: outputs that differ from run to run, because the model draws random numbers, are no error: the file
        draws anew at each run, and of such outputs only shapes and types are checked.
    max_size: the largest size of a symbol of the contract, {"sequence": 2048}: a bound for the contract and for formats
        that plan memory (.pte).
    optimize: simplify and fuse the program before it is lowered.
    notes: sentences for the contract, about what was done to the model before.
    shared_weights: what files written before in the same folder hold; this one refers to them, and adds its own.
    progress: True prints the stages, a function is called with each.

    >>> result = fairlead.export(model, {"input_ids": ids}, "model.onnx")
    >>> print(result.contract)
    """
    show = (
        progress if callable(progress) else (lambda what: print(f"fairlead: {what}", flush=True)) if progress else None
    )
    options = locals_of(locals())
    check_tracer(tracer)
    model = getattr(model, "_orig_mod", model)  # what torch.compile was given
    if is_program(model, inputs, path):
        return _Export(model, None, inputs if path is None else path, options, Progress(show)).run_program(None)
    target = target_of(path)
    if target is not _Export and tracer == "torch.export":  # the program itself is what is asked for
        return target(model, inputs, path, options, Progress(show), method="torch.export").run()
    job = target(model, inputs, path, options, Progress(show))
    if tracer == "torch.export":
        return job.run_program(model)
    try:
        return job.run()
    except ControlFlow:  # torch.cond and its like, which the other tracer keeps
        if target is not _Export:
            return target(model, inputs, path, options, Progress(show), method="torch.export").run()
        try:
            return _Export(model, inputs, path, options, Progress(show)).run_program(model)
        except _core.Unsupported:
            # Some models use them only where they are told that they are traced.
            plain = _Export(model, inputs, path, options, Progress(show))
            plain.plain = True
            try:
                return plain.run()
            except (ControlFlow, _core.FairleadError):
                pass  # the first error says more
            raise


def target_of(path: Any) -> type[_Export]:
    """What writes a file of this name: the suffix decides."""
    suffix = os.path.splitext(os.fspath(path))[1].lower() if isinstance(path, (str, os.PathLike)) else ""
    if suffix == ".pt2":
        from fairlead.program.pipeline import ProgramExport

        return ProgramExport
    if suffix == ".pte":
        from fairlead.executorch.pipeline import ExecutorchExport

        return ExecutorchExport
    return _Export


def is_open(expression: str) -> bool:
    return not expression.lstrip("-").isdigit()


def fitted_words(expression: str, what: str, op: str) -> str:
    return f"{what} of {op} is taken to be {expression}, which fits every run"


def shape_at(shapes: list[list[str]], row: Any) -> str:
    leaf, axis = row.place
    return shapes[leaf][axis]


def locals_of(values: dict) -> dict:
    names = ("dynamic_shapes", "input_names", "output_names", "opset", "external_data", "verify", "strict", "tolerance",
             "allow_random", "max_size", "optimize", "notes", "shared_weights")  # fmt: skip
    return {name: values[name] for name in names}


class _Export:
    def __init__(self, model, inputs, path: str | os.PathLike, options: dict, progress: Progress):
        self.model, self.inputs, self.path, self.options, self.progress = model, inputs, path, options, progress
        self.staged = None  # files without their final name: whatever happens, they are discarded
        self.driver: Driver | None = None
        self.experiment: Any = None
        self.plain = False  # the model is not told that it is traced
        self.numbers: list[tuple[str, Any]] = []  # that forward returns beside tensors
        self.empty: list[tuple[int, int, str]] = []  # (leaf, axis) of size 0, and what the model raises at 3

    def run(self) -> ExportResult:
        """Draws of the model while it is recorded and checked are not missing from the caller's generator."""
        start = time.perf_counter()
        self.final = self.path is not None
        with torch.random.fork_rng(devices=[]), self.folder() as folder:
            self.path = self.checked_path(self.path if self.final else f"{folder}/model{self.suffix}")
            calls = normalise(self.model, self.inputs)
            self.call = self.without_empty(base_call(calls))
            self.calls = [self.call] + [c for c in calls if c is not self.call]
            try:
                self.input_names = self.names_of_inputs()
                leave_other_sizes(self.model, self.call, partial(eager, self.model))
                self.driver = Driver(self)
                self.driver.run()
                return self.result(start)
            except _core.FairleadError as error:
                explain(error, self)
                raise
            finally:
                self.discard()

    def run_program(self, model: torch.nn.Module | None) -> ExportResult:
        """The second way in: a program that torch.export made, or is asked to make."""
        start = time.perf_counter()
        self.final = self.path is not None
        with torch.random.fork_rng(devices=[]), self.folder() as folder:
            self.path = check_request(model, self.path if self.final else f"{folder}/model.onnx", self.options)
            try:
                found = ProgramExport(self).run(start)
            finally:
                self.discard()
        return ExportResult(
            path=self.path if self.final else "", timings=self.progress.timings, opset=self.options["opset"], **found
        )

    def folder(self):
        """Where a file goes that nobody named."""
        return nullcontext() if self.final else tempfile.TemporaryDirectory(prefix="fairlead-")

    def without_empty(self, call: Call) -> Call:
        """An example whose arguments are not empty, where the model accepts one; otherwise these sizes stay 0."""
        if all(t.numel() for t in call.tensors):
            return call
        larger = filled(call)
        text = ""
        for other in larger:
            state = ModelState(self.model)
            args, kwargs = other.with_tensors([t.clone() for t in other.tensors])
            try:
                eager(self.model, args, kwargs)
                return other
            except Exception as error:  # whatever it is: the contract says it
                text = text or (str(error).splitlines() or [type(error).__name__])[0]
            finally:
                state.restore()
        for leaf, (given, other) in enumerate(zip(call.tensors, larger[0].tensors, strict=True)):
            differing = [axis for axis in range(given.dim()) if given.shape[axis] != other.shape[axis]]
            self.empty += [(leaf, axis, text) for axis in differing]
        return call

    def discard(self) -> None:
        if self.staged is not None:
            self.staged.discard()

    @property
    def probed(self) -> Any:
        """Of the example's program."""
        return None if self.experiment is None else self.experiment.probed(0)

    @property
    def session(self) -> Any:
        return self.driver.programs[0].session

    def tensors_at(self, sizes: list[list[int]]) -> list[torch.Tensor]:
        return [resized(t, list(s)) for t, s in zip(self.call.tensors, sizes, strict=True)]

    def asked(self) -> list[list[tuple]]:
        """What the user says about every dimension."""
        check_sizes(self.options.get("max_size") or {})
        return requests(self.call, self.options["dynamic_shapes"])

    def result(self, start: float) -> ExportResult:
        contract, probed = self.driver.contract, self.probed
        programs = [self.driver.programs[number] for number in self.experiment.programs]
        rows: list[dict] = []
        if self.options["verify"]:
            for program in programs:
                found = program.verification.finish()
                rows += self.with_sizes(program, found) if len(programs) > 1 else found
            contract.verified = programs[0].verification.in_words(rows)
            self.opened = ("", None)
            for program in programs:  # it has the file open
                program.verification = None
            self.refuse_assumptions(contract)  # it found what the model remembers
        else:
            refuse_outside(
                self.session, self.call, probed.runs[0], self.tensors_at(probed.sizes_at(probed.run_values[0]))
            )
        record = record_of(self.model, contract, rows, probed)
        self.note_checked(contract, record.text)
        if self.final:
            self.staged.commit()
        self.progress.timings["total"] = time.perf_counter() - start
        return ExportResult(
            path=self.path if self.final else "", contract=contract, discrepancies=rows, timings=self.progress.timings,
            runs=sum(self.experiment.probed(program.number).trials for program in programs),
            passes=self.passes(), recorded_operators=set().union(
                *(p.session.core.operators(self.experiment.probed(p.number).runs[0]) for p in programs)
            ),
            recorded_count=self.session.core.op_count(probed.runs[0]), record=record.facts,
            model_bytes=self.staged.model_bytes, external_bytes=self.staged.external_bytes, **self.made,
        )  # fmt: skip

    def passes(self) -> dict[str, int]:
        sessions = [program.session for program in self.driver.programs.values()]
        return {
            "recorded": sum(s.real for s in sessions), "without weights": sum(s.lean for s in sessions),
            "checked": sum(s.checked for s in sessions),
        }  # fmt: skip

    def verification(self, program: Program, contract: Contract) -> Verification:
        return Verification(
            self.model, self.calls if program.number == 0 else [program.call], self.experiment.probed(program.number),
            self.input_names, program.names, contract, self.options["tolerance"], self.path if self.final else "",
            self.runtime, self.open_once, self.options["allow_random"], program.number > 0, self.staged.path,
            program.session, self.keeps_numbers,
        )  # fmt: skip

    def with_sizes(self, program: Program, rows: list[dict]) -> list[dict]:
        """Rows of a program's verification, with the sizes of the file's symbols."""
        probed, places = self.experiment.probed(program.number), self.places
        found = []
        for row in rows:
            values = list(row["sizes"].values())
            if len(values) == len(probed.symbols):
                sizes = probed.sizes_at(values)
                row = row | {"sizes": {s: sizes[leaf][axis] for s, (leaf, axis) in places.items()}}
            if program.number and row["kind"] == "example":
                row = row | {"kind": "branch"}
            found.append(row)
        return found

    # ---- the target: other files than ONNX replace these -------------------------------------------

    suffix = ".onnx"
    runtime = "ONNX Runtime"
    several = True  # it may hold several programs, and choose by the sizes
    rolls = True  # Python loops over a size become loops of the file
    keeps_numbers = True  # that forward returns are outputs of the file
    keep_writes = False  # what the model writes to inputs and buffers is part of the program
    made: dict[str, Any]  # fields of the result that `make` knows

    def checked_path(self, path: str) -> str:
        return check_request(self.model, path, self.options)

    def note_checked(self, contract: Contract, record: str) -> None:
        for each in (self.made["model"], self.staged):
            each.add_metadata("fairlead.checked", contract.verified)
            each.add_metadata("fairlead.report", record)

    def note_outputs(self, outputs: Any, program: int) -> list:
        """Told the outputs of the first run of a program; its tensors by path."""
        if program == 0:
            self.numbers = [(path, v) for path, v in constants(outputs) if isinstance(v, (int, float, complex))]
        return list(get_leaf_tensors(outputs))

    def make(self, program, contract: Contract):
        """The staged file: with `path`, `add_metadata`, `commit`, `discard` and its sizes in bytes."""
        with self.progress.stage("lower", "lowering to ONNX"):
            options = self.options
            joined = len(self.experiment.programs) > 1  # then it has bounds of its own
            bounds = [] if joined else self.experiment.bounds(0)
            model = program.lower(options["opset"], bounds, options["shared_weights"])
            model.add_metadata("fairlead.contract", contract.text(checked=False))
        self.made = {
            "nodes": model.node_count, "operators": model.operators, "opset": self.options["opset"], "model": model,
        }  # fmt: skip
        with self.progress.stage("write", f"writing {self.path}"):
            return model.write(self.path, self.options["external_data"], self.options["shared_weights"])

    def culprit(self) -> int:
        """The symbol without which `make` would have worked, where that can be told."""
        return -1

    def is_guarded(self, error: Exception) -> bool:
        """Whether it differs because of a guard that torch.export put into the program."""
        return False

    def open(self, path: str):
        """What runs the staged file: `run` takes tensors by input name and gives values to compare."""
        return OnnxSession(path)

    def open_once(self, path: str):
        """The same for every program of a file."""
        if self.opened[0] != path:
            self.opened = (path, self.open(path))
        return self.opened[1]

    opened: tuple[str, Any] = ("", None)

    # ---- names ----------------------------------------------------------------------------------

    def names_of_inputs(self) -> list[str]:
        names = list(self.call.names)
        if self.options["input_names"] is None:
            return names
        given = list(self.options["input_names"])
        if len(given) != len(names):
            raise _core.InvalidInput(
                f"[export] Expected {len(names)} input_names, one per tensor ({shown(names)}), got {len(given)}."
            )
        return given

    def names(self, outputs: list) -> list[str]:
        names = output_names(outputs, self.input_names)
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
                f"[export] Expected different names for inputs and outputs, got {sorted(both)[0]!r} in both. "
                ""
                "Rename one."
            )
        return list(given)

    # ---- the contract ---------------------------------------------------------------------------

    def contract(self, program, programs: list[Program]) -> Contract:
        """What the experiment found and the program says, in rows."""
        found = self.experiment.describe(program.input_shapes)
        shapes = program.input_shapes if len(programs) > 1 else self.probed.shapes
        self.places = {row.name: row.place for row in found.symbols if row.place and row.name == shape_at(shapes, row)}
        contract = Contract()
        for row in found.symbols:
            where = "multiples of an input size"
            if row.place is not None:
                where = f"axis {row.place[1]} of {self.input_names[row.place[0]]}"
            contract.symbols.append(
                {"name": row.name, "tried": row.tried, "min": row.min, "max": row.max, "where": where}
            )
        for name, tensor, shape in zip(self.input_names, self.call.tensors, shapes, strict=True):
            contract.inputs.append({"name": name, "dtype": DTYPES[tensor.dtype], "shape": shape})
        for name, shape, dtype in zip(programs[0].names, program.output_shapes, program.output_dtypes, strict=True):
            contract.outputs.append({"name": name, "dtype": dtype, "shape": shape})
        for row in found.fixed:
            contract.fixed.append(
                {
                    "name": self.input_names[row.leaf], "axis": row.axis, "size": row.size, "reason": row.reason,
                    "branches": row.branches,
                }
            )  # fmt: skip
        fitted = [row for each in programs for row in each.built.fitted]
        contract.assumptions = merged(
            [*program.assumptions, *(("fitted", fitted_words(*row[:3]), *row[3:]) for row in fitted if is_open(row[0]))]
        )
        contract.computed_in = list(program.output_precision)
        contract.required = [words for each in programs for words in each.built.requirements]
        contract.ignored = list(program.ignored_inputs)
        contract.written = list(program.written_inputs)
        contract.notes += [
            f"{path} = {value!r} is built into the file"
            for path, value in constants(self.call.named)
            if isinstance(value, (str, bool, int, float))
        ]
        contract.notes += [
            f"forward also returns {path} = {value!r} at the example: a number, and no output of the file"
            for path, value in self.numbers
            if self.suffix == ".onnx"
        ]
        contract.notes += [*self.options["notes"], *found.notes]
        return contract

    def refuse_assumptions(self, contract: Contract) -> None:
        if not self.options["strict"]:
            return
        reads = [a for a in contract.assumptions if a["kind"] in ("read", "state", "values")]
        if reads:
            text = "; ".join(f"{a['what']} (in {a['module'] or 'the model'} at {a['source']})" for a in reads)
            error = _core.Diverged(
                f"[export] Expected no assumption about values because strict=True, got {len(reads)}: {text}. "
                "Write the model without reading values, or export with strict=False."
            )
            error.details = [a | {"kind": "assumption"} for a in reads]
            raise error
