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
from fairlead.alone import alone
from fairlead.boundaries import Boundaries
from fairlead.branches import Branches, ones_in, shown
from fairlead.contract import Contract, merged
from fairlead.dynamic_shapes import AUTO, DYNAMIC, limit, requests
from fairlead.exported_program import ProgramExport, check_tracer, is_program
from fairlead.fixes import Fixes, places_of, reason_of
from fairlead.guards import Guards
from fairlead.inputs import Call, base_call, constants, filled, normalise, resized
from fairlead.leaves import get_leaf_tensors, output_names
from fairlead.record.control_flow import ControlFlow
from fairlead.record.outside import refuse_outside
from fairlead.record.session import DTYPES, RecordingSession
from fairlead.record.state import ModelState
from fairlead.report.failure import explain
from fairlead.report.record import record_of
from fairlead.request import DEFAULT_OPSET, check_request
from fairlead.runtime_check import OnnxSession, eager
from fairlead.solving import Runs, Solving
from fairlead.verification import BRANCH_SETTINGS, Verification


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
            plain.flags = False
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


def locals_of(values: dict) -> dict:
    names = ("dynamic_shapes", "input_names", "output_names", "opset", "external_data", "verify", "strict", "tolerance",
             "allow_random", "max_size", "optimize", "notes", "shared_weights")  # fmt: skip
    return {name: values[name] for name in names}


@dataclass
class Solved:
    """One program of the model."""

    program: Any
    names: list[str]  # of its outputs
    count: int  # recorded operators


class _Export(Solving, Boundaries, Guards):
    def __init__(self, model, inputs, path: str | os.PathLike, options: dict, progress: Progress):
        self.model, self.inputs, self.path, self.options, self.progress = model, inputs, path, options, progress
        self.staged = None  # files without their final name: whatever happens, they are discarded
        self.fixes = Fixes()
        self.probed = self.session = None
        self.answers: dict[tuple, tuple] = {}  # sizes and reference run -> what came of it
        self.first_outputs = None
        self.numbers: list[tuple[str, Any]] = []  # that forward returns beside tensors
        self.looked_at = Runs([], [])  # the runs that were solved last
        self.flags = True  # the model is told that it is traced
        self.sizes_of: dict[int, list] = {}  # run -> sizes by leaf
        self.partings: list[tuple[list, int, str]] = []  # sizes, reference run, in words
        self.parted_at: dict[tuple[int, int], int] = {}  # (leaf, axis) -> a size at which the model executes another
        self.required: dict[str, str] = {}  # guards that the file requires, and what is otherwise
        self.crossed: list[tuple[int, list[int]]] = []  # runs from the other side of guards, and their sizes
        self.solved: Solved | None = None
        self.keeps_probed = False  # what was learnt does not ask for another probing
        self.parent: _Export | None = None  # of a branch: the export whose program it parts from
        self.branching = Branches(self)

    def run(self) -> ExportResult:
        """Draws of the model while it is recorded and checked are not missing from the caller's generator."""
        start = time.perf_counter()
        self.final = self.path is not None
        with torch.random.fork_rng(devices=[]), self.folder() as folder:
            self.path = self.checked_path(self.path if self.final else f"{folder}/model{self.suffix}")
            calls = self.calls = normalise(self.model, self.inputs)
            self.call = self.without_empty(base_call(calls))
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
            except _core.FairleadError as error:
                job = getattr(error, "job", self)
                if job is self and isinstance(error, _core.InvalidInput):
                    if not (self.flags and self.probed is None and self.runs_without_flags()):
                        raise
                    self.flags, self.session, self.answers = False, None, {}  # another program: nothing holds of it
                elif not job.learns_from(error):
                    if job is self:
                        raise
                    self.branching.drop(job, error)
                self.discard()

    def learns_from(self, error: Exception) -> bool:
        """Whether something was learnt that makes another try worth it. What the user said is not changed."""
        if isinstance(error, _core.Unsupported):
            return self.fixes_constants(error) or self.keeps_example(error)
        if not isinstance(error, (_core.Diverged, _core.Unsolved, _core.Discrepancy)):
            return False
        if getattr(error, "at_example", False) and self.session.carry and self.parent is None:
            return self.goes_on_with_plain_numbers()
        self.keeps_probed = self.several
        if getattr(error, "other_values", None) and self.fixes.solve_for(error):  # changes no dimension
            self.solved = None
            return True
        if self.options["dynamic_shapes"] is not None or self.options["strict"] or not self.learn(error):
            return False
        self.solved = None
        return True

    def goes_on_with_plain_numbers(self) -> bool:
        """A model that asks `type(n) is int` is another one while sizes remember: nothing holds of it, and all of its
        integers are fitted."""
        self.session = RecordingSession(self.model, self.rolls, self.flags)
        self.session.numbers, self.session.carry = self.keeps_numbers, False
        self.answers, self.solved, self.keeps_probed = {}, None, False
        self.fixes, self.branching = Fixes(), Branches(self)
        self.fixes.notes.append(
            "recorded with plain integers: with sizes that remember, the model computes something else"
        )
        return True

    def fixes_constants(self, error: Exception) -> bool:
        """A number that the file can only hold as a constant follows sizes that vary: they are fixed, in every program,
        unless the user asked for them."""
        names = {name for row in error.details if row["kind"] == "must be constant" for name in row["values"]}
        learnt = False
        for job in self.branching.jobs if names and not self.options["strict"] else []:
            symbols = {} if job.probed is None else {s.name: k for k, s in enumerate(job.probed.symbols)}
            if not names <= set(symbols):
                continue
            asked = requests(job.call, self.options["dynamic_shapes"])
            places = [place for name in names for place in places_of(job.probed, symbols[name])]
            if any(asked[leaf][axis][0] == DYNAMIC for leaf, axis in places):
                continue
            own = self.branching.root.call
            if any(job.call.tensors[leaf].shape[axis] != own.tensors[leaf].shape[axis] for leaf, axis in places):
                self.branching.drop(job, error)  # it would be another constant there
                learnt = True
                continue
            fixed = [job.fixes.fix(job.probed, symbols[name], reason_of(error)) for name in names]
            if any(fixed):
                job.solved, job.keeps_probed, learnt = None, False, True
        return learnt

    def keeps_example(self, error: Exception) -> bool:
        """A program that cannot be written, and is not the example's but that of larger sizes than its 1: those are
        left."""
        probed = self.probed
        if not self.several or self.options["dynamic_shapes"] is not None or not probed or not probed.base_parted:
            return False
        learnt = [self.fixes.fix(probed, k, reason_of(error)) for k in ones_in(probed, self.call.tensors)]
        self.solved, self.keeps_probed = None, False
        return any(learnt)

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
            for axis in range(given.dim()):
                if given.shape[axis] != other.shape[axis]:
                    self.fixes.fixed[leaf, axis] = f"its size is 0, and at 3 the model raises {text}"
        return call

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
        values = getattr(error, "values", None) or []
        if isinstance(error, _core.Discrepancy):
            return self.fixes.solve_for(error) or (getattr(error, "far", False) and self.lower_maxima(error, reason))
        if isinstance(error, _core.Diverged) and probed.base_parted and not smallest:
            # The example itself: at its sizes of 1 the model executes another program than at larger ones.
            ones = ones_in(probed, self.call.tensors)
            if ones and self.branching.at_example(self, ones, reason):
                return True
            blamed = blamed if values else ones
        if isinstance(error, _core.Unsolved) and self.fixes.wrong:
            self.keeps_probed = False
            return self.fixes.give_up(probed)
        if smallest:
            alone = [k for k in blamed if self.parting(self.with_size(k, 1))]
            together = self.smallest_together([k for k in blamed if k not in alone])
            learnt = [self.leave_below(k, self.smallest_alike(k), reason) for k in alone]
            learnt += [self.raise_minimum(k, size, reason, note=True) for k, size in together]
            return any(learnt)
        if (
            isinstance(error, _core.Diverged)
            and values
            and all(self.leave_beyond(k, values[k], reason) for k in blamed)
        ):
            return bool(blamed)
        if isinstance(error, _core.Diverged) and getattr(error, "far", False) and self.lower_maxima(error, reason):
            return True
        if isinstance(error, _core.Unsolved):
            blamed = self.unsolved_symbols()
        self.keeps_probed = False
        learnt = [self.fixes.fix(probed, k, reason) for k in blamed]
        return any(learnt)

    def branch(self, call: Call, places: list[tuple[int, int]], fixed: bool, inherit: bool = True) -> _Export:
        """An export of another program of the model, which parts from this one at dimensions in which it may be fixed,
        up to the solved program."""
        made = _Export(self.model, self.inputs, self.path, self.options, self.progress)
        made.parent, made.branching, made.final = self, self.branching, self.final
        made.call, made.calls, made.flags = call, [call], self.flags
        if inherit:
            own = self.fixes
            made.fixes = Fixes(dict(own.fixed), dict(own.minimum), dict(own.maximum), dict(own.only))
        shapes = self.probed.shapes
        for place in places:
            made.fixes.minimum.pop(place, None)
            made.fixes.maximum.pop(place, None)
            if fixed:
                leaf, axis = place
                made.fixes.only[place] = (shapes[leaf][axis], call.tensors[leaf].shape[axis])
        return made

    def solve(self) -> None:
        """Probes, records and solves the program of the call at hand."""
        if not self.keeps_probed:
            self.probed = None
            self.required, self.crossed = {}, []
            if self.session is None:
                self.session = RecordingSession(self.model, self.rolls, self.flags)
                self.session.numbers = self.keeps_numbers
            with self.progress.stage("probe", "probing which dimensions may vary"):
                while True:
                    self.partings = []
                    with self.session as session:
                        self.probed = self.probe(session, self.calls)
                    if not self.finds_boundary():
                        break
                self.limit_sizes()
        self.branch_above()
        self.keeps_probed = False
        probed, session = self.probed, self.session
        count = session.core.op_count(probed.runs[0])
        with self.progress.stage("solve", f"solving {count} operators over {len(probed.runs)} runs"), session:
            names = self.names(session, probed)
            program = self.program(session, probed, names)
        with self.progress.stage("solve", "asking what else the model would do"):
            program = self.settle_guards(program, lambda: self.program(session, probed, names))
        self.solved = Solved(program, names, count)

    def limit_sizes(self) -> None:
        asked = self.options.get("max_size") or {}
        if self.parent is not None:  # a size may be fixed in a branch
            asked = {s.name: asked[s.name] for s in self.probed.symbols if s.name in asked}
        limit(self.probed, asked)

    def staged_run(self, calls: list[Call], start: float) -> ExportResult:
        branching = self.branching
        branching.solve_all()
        probed, names = self.probed, self.solved.names
        try:
            program = branching.joined()
            contract = self.contract(program, probed, names)
            self.refuse_assumptions(contract)
            staged = self.staged = self.make(program, contract)
        except _core.FairleadError as error:
            if branching.held:  # without its last branch the file can be made, or says itself why not
                error.job = branching.held[-1].job
            raise
        rows = []
        if self.options["verify"]:
            with self.progress.stage("verify", f"verifying in {self.runtime} at sizes never probed"):
                rows = self.verify(contract, [self.call] + [c for c in calls if c is not self.call])
            self.refuse_assumptions(contract)  # it found what the model remembers
        else:
            refuse_outside(
                self.session, self.call, probed.runs[0], self.tensors_at(probed.sizes_at(probed.run_values[0]))
            )
        record = record_of(self.model, contract, rows, probed)
        self.note_checked(contract, record.text)
        if self.final:
            staged.commit()
        self.progress.timings["total"] = time.perf_counter() - start
        jobs = branching.jobs
        return ExportResult(
            path=self.path if self.final else "", contract=contract, discrepancies=rows, timings=self.progress.timings,
            runs=sum(job.probed.trials for job in jobs),
            recorded_operators=set().union(*(job.session.core.operators(job.probed.runs[0]) for job in jobs)),
            recorded_count=self.solved.count, record=record.facts,
            model_bytes=staged.model_bytes, external_bytes=staged.external_bytes, **self.made,
        )  # fmt: skip

    def verify(self, contract: Contract, calls: list[Call]) -> list[dict]:
        """The file at the calls of the user and at unseen sizes, of every program that it holds."""
        rows: list[dict] = []
        opened: list = []  # one session for all of them

        def open_once(path: str):
            if not opened:
                opened.append(self.open(path))
            return opened[0]

        for job in reversed(self.branching.jobs):  # the example's program last: what it says is the contract's
            verification = Verification(
                self.model, calls if job is self else job.calls, job.probed, self.input_names, self.solved.names,
                contract, self.options["tolerance"], self.path if self.final else "", self.runtime, open_once,
                self.options["allow_random"], numbers=self.keeps_numbers,
            )  # fmt: skip
            if job is not self:
                verification.unseen = BRANCH_SETTINGS
            try:
                found = verification.run(self.staged.path, job.session)
            except _core.FairleadError as error:
                error.job = job
                raise
            if self.branching.held:
                found = self.branching.with_sizes(job, found)
            rows = found + rows
        contract.verified = verification.in_words(rows)
        return rows

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

    def note_outputs(self, outputs: Any) -> None:
        """Told the outputs of the first run."""
        self.first_outputs = list(get_leaf_tensors(outputs))
        self.numbers = [(path, value) for path, value in constants(outputs) if isinstance(value, (int, float, complex))]

    def make(self, program, contract: Contract):
        """The staged file: with `path`, `add_metadata`, `commit`, `discard` and its sizes in bytes."""
        with self.progress.stage("lower", "lowering to ONNX"):
            options = self.options
            bounds = [] if self.branching.held else self.fixes.bounds(self.probed)  # a joined program has its own
            model = program.lower(options["opset"], bounds, options["shared_weights"])
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
        if self.parent is not None:  # what is asked of the file is not asked of each of its programs
            asked = [[(AUTO if kind == DYNAMIC else kind, *rest) for kind, *rest in leaf] for leaf in asked]
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
            least, most = self.fixes.range_of(probed, symbol)
            contract.symbols.append(
                {"name": symbol.name, "tried": symbol.tried, "min": least, "max": most, "where": where}
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
                    "branches": (fixed.leaf, fixed.axis) in self.fixes.fixed or fixed.branches,
                }
            )  # fmt: skip
        fitted = [row for job in self.branching.jobs for row in job.solved.program.fitted]
        contract.assumptions = merged(
            [*program.assumptions, *(("fitted", fitted_words(*row[:3]), *row[3:]) for row in fitted if is_open(row[0]))]
        )
        contract.computed_in = list(program.output_precision)
        contract.required = [words for job in self.branching.jobs for words in job.solved.program.requirements]
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
        contract.notes += [*self.options["notes"], *self.own_notes()]
        self.branching.describe(contract, program.input_shapes)
        return contract

    def own_notes(self) -> list[str]:
        """What the file refuses of this program's sizes."""
        said = [
            f"the file refuses {s.name} above {s.max}: there {s.reason}"
            for k, s in enumerate(self.probed.symbols)
            if s.other_above and not any(place in self.fixes.maximum for place in places_of(self.probed, k))
        ]
        return self.fixes.notes + said

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
