"""fairlead.export: probe, record, solve, lower, write, verify."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from fairlead import _core
from fairlead.contract import Contract, merged
from fairlead.dynamic_shapes import limit, requests
from fairlead.exported_program import ProgramExport, check_tracer, is_program
from fairlead.fixes import Fixes, reason_of, setting_of
from fairlead.inputs import Call, base_call, constants, normalise, other_floats, other_integers, resized
from fairlead.leaves import get_leaf_tensors, output_names
from fairlead.record.session import DTYPES, RecordingSession
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

    @contextmanager
    def stage(self, name: str, what: str):
        if self.show is not None:
            self.show(what)
        self.current = name
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - start


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
    path: the .onnx file; large weights go to path + ".data". None leaves no file: the result's model can be written.
    tracer: "observe" runs the model at several sizes and records it; "torch.export" traces it symbolically first.
    dynamic_shapes: as torch.export takes them; None finds out by itself. What is not mentioned stays fixed.
    input_names, output_names: names of the file's inputs and outputs, in order; by default the flat paths of the
        tensors (`input_ids`, `past_key_values.0.key`, `present.0.key`, `logits`).
    opset: 18 or newer, up to what the installed ONNX Runtime supports.
    external_data: "auto", "always" or "never".
    verify: run the file in ONNX Runtime and compare with eager at sizes that were never probed.
    strict: an assumption (a value the model read and that never varied) is an error.
    tolerance: largest difference allowed, scaled by max(1, |eager|); None: 1e-4 for float32, by dtype.
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
    if is_program(model, inputs, path):
        return _Export(model, None, inputs if path is None else path, options, Progress(show)).run_program(None)
    target = target_of(path)
    if target is not _Export and tracer == "torch.export":  # the program itself is what is asked for
        return target(model, inputs, path, options, Progress(show), method="torch.export").run()
    job = target(model, inputs, path, options, Progress(show))
    return job.run_program(model) if tracer == "torch.export" else job.run()


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


def locals_of(values: dict) -> dict:
    names = ("dynamic_shapes", "input_names", "output_names", "opset", "external_data", "verify", "strict", "tolerance",
             "allow_random", "max_size", "optimize", "notes", "shared_weights")  # fmt: skip
    return {name: values[name] for name in names}


@dataclass
class Runs:
    """Recorded runs of one program, and the value of every symbol in each."""

    numbers: list[int]
    values: list[list[int]]


class _Export:
    def __init__(self, model, inputs, path: str | os.PathLike, options: dict, progress: Progress):
        self.model, self.inputs, self.path, self.options, self.progress = model, inputs, path, options, progress
        self.staged = None  # files without their final name: whatever happens, they are discarded
        self.fixes = Fixes()
        self.probed = self.session = None
        self.answers: dict[tuple, tuple] = {}  # sizes and reference run -> what came of it
        self.first_outputs = None
        self.looked_at = Runs([], [])  # the runs that were solved last
        self.flags = True  # the model is told that it is traced
        self.sizes_of: dict[int, list] = {}  # run -> sizes by leaf
        self.partings: list[tuple[list, int, str]] = []  # sizes, reference run, in words

    def run(self) -> ExportResult:
        """Draws of the model while it is recorded and checked are not missing from the caller's generator."""
        start = time.perf_counter()
        self.final = self.path is not None
        with torch.random.fork_rng(devices=[]), self.folder() as folder:
            self.path = self.checked_path(self.path if self.final else f"{folder}/model{self.suffix}")
            calls = self.calls = normalise(self.model, self.inputs)
            self.call = base_call(calls)
            try:
                return self.settled_run(calls, start)
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

    def discard(self) -> None:
        if self.staged is not None:
            self.staged.discard()

    def settled_run(self, calls: list[Call], start: float) -> ExportResult:
        """Runs until no dimension has to be fixed any more, unless the user said which are dynamic."""
        while True:
            try:
                return self.staged_run(calls, start)
            except _core.InvalidInput:
                if not (self.flags and self.probed is None and self.runs_without_flags()):
                    raise
                self.flags, self.session, self.answers = False, None, {}  # another program: nothing holds of it
                self.discard()
            except (_core.Diverged, _core.Unsolved, _core.Discrepancy) as error:
                if self.options["dynamic_shapes"] is not None or self.options["strict"] or not self.learn(error):
                    raise
                self.discard()

    def runs_without_flags(self) -> bool:
        """Whether the model itself accepts the example: one that only works where it finds a mask to be all ones, and
        leaves it out, does not while it is told that it is traced."""
        state = ModelState(self.model)
        args, kwargs = self.call.with_tensors([t.clone() for t in self.call.tensors])
        try:
            eager(self.model, args, kwargs)
        except Exception:  # whatever it is: the first error has said it
            return False
        finally:
            state.restore()
        self.fixes.notes.append("recorded as in plain eager: told that it is traced, the model refuses the example")
        return True

    def learn(self, error: Exception) -> bool:
        """Fixes the dimensions that are to blame; False where none is."""
        probed = self.probed
        if probed is None or not probed.symbols:
            return False
        reason = reason_of(error)
        smallest, blamed = getattr(error, "smallest", False), getattr(error, "blamed", [])
        if isinstance(error, _core.Discrepancy):
            return self.fixes.solve_for(error)
        if isinstance(error, _core.Diverged) and probed.base_parted and not getattr(error, "values", None):
            # The example itself: at its sizes of 1 the model executes another program than at larger ones.
            ones = setting_of(probed, [list(t.shape) for t in self.call.tensors]) or []
            blamed = [k for k, size in enumerate(ones) if size == 1]
        if isinstance(error, _core.Unsolved) and self.fixes.wrong:
            return self.fixes.give_up(probed)
        if smallest:
            learnt = [self.fixes.raise_minimum(probed, k, size, reason) for k, size in self.smallest_alike(blamed)]
            return any(learnt)
        if isinstance(error, _core.Unsolved):
            blamed = self.unsolved_symbols()
        learnt = [self.fixes.fix(probed, k, reason) for k in blamed]
        return any(learnt)

    def smallest_alike(self, symbols: list[int]) -> list[tuple[int, int]]:
        """The smallest sizes of these symbols, at least 2, at which the model still executes the same operators."""
        probed = self.probed
        ran = {k: max(2, probed.symbols[k].tried[0]) for k in symbols}
        differs, alike = 1, max(ran.values(), default=2)
        with self.session as session:
            while alike - differs > 1:
                tried = (alike + differs) // 2
                setting = [min(tried, ran[k]) if k in ran else size for k, size in enumerate(probed.run_values[0])]
                args, kwargs = self.call.with_tensors(self.tensors_at(probed.sizes_at(setting)))
                if session.run(args, kwargs, probed.runs[0]).ok:
                    alike = tried
                else:
                    differs = tried
        return [(k, min(alike, ran[k])) for k in symbols]

    def runs(self, session: RecordingSession, probed) -> Runs:
        """The runs to solve: those of the probing, those of further calls with their values, and those at settings
        that turned out wrong before."""
        runs = Runs(list(probed.runs), list(probed.run_values))
        for call in self.calls:
            setting = (
                None if call is self.call else setting_of(probed, [list(call.tensor(n).shape) for n in self.call.names])
            )
            if setting is not None:
                self.add_run(session, runs, setting, [call.tensor(n).clone() for n in self.call.names])
        for setting in [w.values for w in self.fixes.wrong if len(w.values) == len(probed.symbols)]:
            self.add_run(session, runs, setting, self.tensors_at(probed.sizes_at(setting)))
        return runs

    def with_other_values(self, session: RecordingSession, probed, runs: Runs) -> Runs:
        """More runs, with other integers, or floats at other places, in one input at a time: what the model reads from
        them becomes a symbol."""
        more = Runs(list(runs.numbers), list(runs.values))
        base = probed.run_values[0]
        for k, tensor in enumerate(self.tensors_at(probed.sizes_at(base))):
            for other in [*other_integers(tensor), *other_floats(tensor)]:
                tensors = self.tensors_at(probed.sizes_at(base))
                tensors[k] = other
                self.add_run(session, more, base, tensors)
        return more

    def at_more_sizes(self, session: RecordingSession, probed, runs: Runs) -> Runs:
        """More runs, one symbol at a time at further sizes: few runs do not tell a quotient or a remainder from other
        forms, or of which symbol it is."""
        more = Runs(list(runs.numbers), list(runs.values))
        for k, symbol in enumerate(probed.symbols):
            least, most = symbol.tried[0], symbol.tried[-1]
            for size in (least * 3 // 4, least // 2 + 1, most + max(1, most // 8), most + 2):
                if max(1, symbol.min) <= size <= symbol.max and size not in symbol.tried:
                    setting = list(probed.run_values[0])
                    setting[k] = size
                    self.add_run(session, more, setting, self.tensors_at(probed.sizes_at(setting)))
        return more

    def add_run(self, session: RecordingSession, runs: Runs, setting: list[int], tensors: list[torch.Tensor]) -> None:
        """Records one more run where the model accepts it and executes the same operators."""
        args, kwargs = self.call.with_tensors(tensors)
        outcome = session.run(args, kwargs, runs.numbers[0])
        if outcome.ok:
            runs.numbers.append(outcome.run)
            runs.values.append(list(setting))

    def program(self, session: RecordingSession, probed, names: list[str]):
        """The solved program. Where it goes by values that were read, runs with other values are tried as well."""

        def solved(runs: Runs):
            self.looked_at = runs
            return _core.build_program(
                session.core, runs.numbers, [s.name for s in probed.symbols], runs.values,
                self.input_names, probed.shapes, names, self.options["optimize"], self.keep_writes,
            )  # fmt: skip

        runs = self.runs(session, probed)
        try:
            program = solved(runs)
        except _core.Unsolved:
            more = self.at_more_sizes(session, probed, runs)
            if len(more.numbers) == len(runs.numbers):
                raise
            runs = more
            program = solved(runs)
        else:
            if program.fragile:
                runs = self.at_more_sizes(session, probed, runs)
                program = solved(runs)
        if not any(kind == "read" for kind, *_ in program.assumptions):
            return program
        more = self.with_other_values(session, probed, runs)
        if len(more.numbers) == len(runs.numbers):
            return program
        try:
            return solved(more)
        except (_core.Unsolved, _core.Diverged):  # what follows from them is not one expression: they stay assumed
            return program

    def unsolved_symbols(self) -> list[int]:
        """Symbols without which every integer is solved: all but those that can be let free one after the other."""
        symbols = range(len(self.probed.symbols))
        fixed = set(symbols)
        for k in symbols:
            if self.solved_without(fixed - {k}):
                fixed.remove(k)
        return sorted(fixed)

    def solved_without(self, fixed: set[int]) -> bool:
        """Whether the runs in which these symbols kept their sizes have an expression for every integer."""
        probed, session, runs = self.probed, self.session, self.looked_at
        base = runs.values[0]
        keep = [r for r, values in enumerate(runs.values) if all(values[k] == base[k] for k in fixed)]
        try:
            _core.build_program(
                session.core, [runs.numbers[r] for r in keep], [s.name for s in probed.symbols],
                [runs.values[r] for r in keep], self.input_names, probed.shapes, self.names(session, probed),
            )  # fmt: skip
        except _core.FairleadError:
            return False
        return True

    def staged_run(self, calls: list[Call], start: float) -> ExportResult:
        self.probed = None
        if self.session is None:
            self.session = RecordingSession(self.model, self.rolls, self.flags)
        with self.session as session:
            self.partings = []
            with self.progress.stage("probe", "probing which dimensions may vary"):
                probed = self.probed = self.probe(session, calls)
                limit(probed, self.options.get("max_size") or {})
            count = session.core.op_count(probed.runs[0])
            with self.progress.stage("solve", f"solving {count} operators over {len(probed.runs)} runs"):
                names = self.names(session, probed)
                program = self.program(session, probed, names)
            contract = self.contract(program, probed, names)
            self.refuse_assumptions(contract)
            staged = self.staged = self.make(program, contract)
        rows = []
        if self.options["verify"]:
            with self.progress.stage("verify", f"verifying in {self.runtime} at sizes never probed"):
                calls = [self.call] + [c for c in calls if c is not self.call]
                verification = Verification(
                    self.model, calls, probed, self.input_names, names, contract, self.options["tolerance"],
                    self.path if self.final else "", self.runtime, self.open, self.options["allow_random"],
                )  # fmt: skip
                rows = verification.run(staged.path, session)
        record = record_of(self.model, contract, rows, probed)
        self.note_checked(contract, record.text)
        if self.final:
            staged.commit()
        self.progress.timings["total"] = time.perf_counter() - start
        return ExportResult(
            path=self.path if self.final else "", contract=contract, discrepancies=rows, timings=self.progress.timings,
            runs=probed.trials, recorded_operators=session.core.operators(probed.runs[0]),
            recorded_count=count, record=record.facts,
            model_bytes=staged.model_bytes, external_bytes=staged.external_bytes, **self.made,
        )  # fmt: skip

    # ---- the target: other files than ONNX replace these -------------------------------------------

    suffix = ".onnx"
    runtime = "ONNX Runtime"
    rolls = True  # Python loops over a size become loops of the file
    keep_writes = False  # what the model writes to inputs and buffers is part of the program
    made: dict[str, Any]  # fields of the result that `make` knows

    def checked_path(self, path: str) -> str:
        return check_request(self.model, path, self.options)

    def note_checked(self, contract: Contract, record: str) -> None:
        for each in (self.made["model"], self.staged):
            each.add_metadata("fairlead.checked", contract.verified)
            each.add_metadata("fairlead.report", record)

    def note_outputs(self, outputs: Any) -> None:
        """Told the outputs of the first run."""
        self.first_outputs = list(get_leaf_tensors(outputs))

    def make(self, program, contract: Contract):
        """The staged file: with `path`, `add_metadata`, `commit`, `discard` and its sizes in bytes."""
        with self.progress.stage("lower", "lowering to ONNX"):
            options = self.options
            model = program.lower(options["opset"], self.fixes.bounds(self.probed), options["shared_weights"])
            model.add_metadata("fairlead.contract", contract.text(checked=False))
        self.made = {
            "nodes": model.node_count, "operators": model.operators, "opset": self.options["opset"], "model": model,
        }  # fmt: skip
        with self.progress.stage("write", f"writing {self.path}"):
            return model.write(self.path, self.options["external_data"], self.options["shared_weights"])

    def open(self, path: str):
        """What runs the staged file: `run` takes tensors by input name and gives values to compare."""
        return OnnxSession(path)

    # ---- probing --------------------------------------------------------------------------------

    def probe(self, session: RecordingSession, calls: list[Call]):
        call = self.call
        self.input_names = list(call.names)
        if self.options["input_names"] is not None:
            given = list(self.options["input_names"])
            if len(given) != len(call.names):
                raise _core.InvalidInput(
                    f"[export] Expected {len(call.names)} input_names, one per tensor ({shown(call.names)}), "
                    ""
                    f"got {len(given)}."
                )
            self.input_names = given
        asked = requests(call, self.options["dynamic_shapes"])
        self.fixes.apply(asked)
        ordered = [call] + [c for c in calls if c is not call]
        sizes = [[list(t.shape) for t in c.tensors] for c in ordered]

        def trial(sizes, reference):
            key = (reference, tuple(map(tuple, sizes)))
            if key not in self.answers:  # what an earlier probing tried is not run again
                self.answers[key] = attempt(sizes, reference)
            answer = self.answers[key]
            if answer[1]:
                self.partings.append((sizes, reference, answer[2]))
            return answer

        def attempt(sizes, reference):
            args, kwargs = call.with_tensors(self.tensors_at(sizes))
            outcome = session.run(args, kwargs, reference, keep=reference < 0)
            if outcome.ok:
                if self.first_outputs is None:
                    self.note_outputs(outcome.outputs)
                self.sizes_of[outcome.run] = sizes
                return outcome.run, False, "", outcome.visible
            if outcome.parted is not None:
                _, before, now = outcome.parted
                return -1, True, f"the model executes {now} where it executed {before}", True
            return -1, False, outcome.error, True

        return _core.probe(call.names, asked, sizes, trial)

    def tensors_at(self, sizes: list[list[int]]) -> list[torch.Tensor]:
        return [resized(t, list(s)) for t, s in zip(self.call.tensors, sizes, strict=True)]

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
                f"[export] Expected different names for inputs and outputs, got {sorted(both)[0]!r} in both. "
                ""
                "Rename one."
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
                    "reason": self.fixes.fixed.get((fixed.leaf, fixed.axis), fixed.reason),
                    "branches": (fixed.leaf, fixed.axis) in self.fixes.fixed or is_branch(fixed.reason),
                }
            )  # fmt: skip
        contract.assumptions = merged(program.assumptions)
        contract.ignored = list(program.ignored_inputs)
        contract.written = list(program.written_inputs)
        contract.notes += [
            f"{path} = {value!r} is built into the file"
            for path, value in constants(self.call.named)
            if isinstance(value, str)
        ]
        contract.notes += [*self.options["notes"], *self.fixes.notes]
        contract.notes += [
            f"the file refuses {s.name} above {s.max}: there {s.reason}" for s in probed.symbols if s.other_above
        ]
        return contract

    def refuse_assumptions(self, contract: Contract) -> None:
        if not self.options["strict"]:
            return
        reads = [a for a in contract.assumptions if a["kind"] == "read"]
        if reads:
            text = "; ".join(f"{a['what']} (in {a['module'] or 'the model'} at {a['source']})" for a in reads)
            error = _core.Diverged(
                f"[export] Expected no assumption about values because strict=True, got {len(reads)}: {text}. "
                "Write the model without reading values, or export with strict=False."
            )
            error.details = [a | {"kind": "assumption"} for a in reads]
            raise error


def is_branch(reason: str) -> bool:
    """Whether a dimension is fixed because the model branches on it, not because the model refuses other sizes."""
    return reason.startswith("the model executes ")


def shown(names: list[str]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
