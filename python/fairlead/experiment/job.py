"""One export, whatever its target: inputs made uniform, the experiment driven to its end, contract and result.

Targets (fairlead/targets) are its subclasses: they say what a file of theirs can hold, make it, and run it.
"""

from __future__ import annotations

import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch

from fairlead import _core
from fairlead.base.collector import collect_rarely
from fairlead.base.plain_text import is_text
from fairlead.contract import Check, Contract, FixedDim, Symbol, Tensor, merged
from fairlead.experiment.driver import Driver
from fairlead.experiment.model_program import Program
from fairlead.experiment.progress import Progress
from fairlead.experiment.result import ExportResult
from fairlead.options import Options
from fairlead.patches.model_state import ModelState
from fairlead.record.leftovers import leave_other_sizes
from fairlead.record.outside import refuse_outside
from fairlead.record.stand_in import without_weights
from fairlead.record.switches import words_of_fast_path
from fairlead.report.failure import explain
from fairlead.report.record import record_of
from fairlead.tree.calls import Call, base_call, constants, filled, normalise, shown
from fairlead.tree.dtypes import DTYPES
from fairlead.tree.dynamic_shapes import check_sizes, requests
from fairlead.tree.leaves import get_leaf_tensors, output_names
from fairlead.verify.checked_rows import Measured, in_words, rows_of
from fairlead.verify.runtime_check import MANY_INPUTS, eager
from fairlead.verify.verification import Verification, nothing_written


def is_open(expression: str) -> bool:
    return not expression.lstrip("-").isdigit()


def fitted_words(expression: str, what: str, op: str) -> str:
    return f"{what} of {op} is taken to be {expression}, which fits every run"


class Job(ABC):
    """One export: what is asked for, what is known so far, and what the target makes of it."""

    call: Call  # the example; a program has none before it is read: `is_read`
    driver: Driver  # when the experiment has begun: `has_begun`

    def __init__(self, model: Any, inputs: Any, path: Any, options: Options, progress: Progress) -> None:
        self.model, self.inputs, self.options, self.progress = model, inputs, options, progress
        self.path: Any = path  # checked, and a string, when it runs
        self.first_verification: Verification | None = None  # of the example's program
        self.changing: dict[tuple[Any, ...], Any] = {}  # calls that change the model; see there
        self.staged: Any = None  # files without their final name: whatever happens, they are discarded
        self.experiment: Any = None
        self.plain = False  # the model is not told that it is traced
        self.numbers: list[tuple[str, Any]] = []  # that forward returns beside tensors
        self.left_out = {}
        self.empty: list[tuple[int, int, str]] = []  # (leaf, axis) of size 0, and what the model raises at 3

    def run(self) -> ExportResult:
        """Draws of the model while it is recorded and checked are not missing from the caller's generator."""
        start = time.perf_counter()
        self.final = self.path is not None
        with torch.random.fork_rng(devices=[]), self.folder() as folder:
            self.path = self.checked_path(self.path if self.final else f"{folder}/model{self.suffix}")
            calls = normalise(self.model, self.inputs)
            with self.calls_alone():
                self.call = self.without_empty(base_call(calls))
            self.calls = [self.call] + [c for c in calls if c is not self.call]
            if len(self.call.tensors) >= MANY_INPUTS:
                collect_rarely()
            try:
                self.input_names = self.names_of_inputs()
                with self.calls_alone():
                    leave_other_sizes(self.model, self.call, partial(eager, self.model))
                self.driver = Driver(self)
                self.driver.run()
                return self.result(start)
            except _core.FairleadError as error:
                explain(error, self)
                raise
            finally:
                self.discard()

    def calls_alone(self) -> Any:
        """For calls of the model that need not compute: without the weights where those stay in files."""
        return nullcontext() if self.options.placed is None else without_weights(self.model)

    def before_checks(self) -> None:
        """What is checked computes."""
        if self.options.placed is not None:
            self.options.placed.read("the file is to be checked")

    def folder(self) -> Any:
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
        for leaf, (given, grown) in enumerate(zip(call.tensors, larger[0].tensors, strict=True)):
            differing = [axis for axis in range(given.dim()) if given.shape[axis] != grown.shape[axis]]
            self.empty += [(leaf, axis, text) for axis in differing]
        return call

    @property
    def is_read(self) -> bool:
        return "call" in vars(self)

    @property
    def has_begun(self) -> bool:
        return "driver" in vars(self)

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

    def asked(self) -> list[list[tuple[Any, ...]]]:
        """What the user says about every dimension."""
        check_sizes(self.options.max_size or {})
        return requests(self.call, self.options.dynamic_shapes)

    def result(self, start: float) -> ExportResult:
        contract, probed = self.driver.contract, self.probed
        programs = [self.driver.programs[number] for number in self.experiment.programs]
        checks: list[Check] = []
        if self.options.verify:
            rows: list[dict[str, Any]] = []
            for program in programs:
                found = rows_of(self.driver.measured, self.experiment.rows(program.number))
                rows += self.with_sizes(program, found) if len(programs) > 1 else found
            self.note_checks(contract, programs[0], rows)
            checks = [Check(**row) for row in rows]
            self.opened = ("", None)
            for program in programs:  # it has the file open
                program.verification = None
            self.refuse_assumptions(contract)  # it found what the model remembers
        else:
            contract.verified = self.options.checked or contract.verified
            refuse_outside(self.session, self.call, probed.runs[0], self.call.at(probed.sizes_at(probed.run_values[0])))
        self.finish(contract)
        record = record_of(self.model, contract, checks, probed)
        self.note_checked(contract, record.text)
        if self.final:
            self.staged.commit()
        self.progress.timings["total"] = time.perf_counter() - start
        return ExportResult(
            path=self.path if self.final else "", contract=contract, discrepancies=checks,
            timings=self.progress.timings,
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

    def note_checks(self, contract: Contract, program: Program, rows: list[dict[str, Any]]) -> None:
        """What was checked, and what that does not prove. `program` is that of the example."""
        contract.add_reserves(self.experiment.reserves())
        draws = program.verification.draws if program.verification is not None else None
        contract.drawn = dict(draws.axes) if draws else {}
        contract.verified = in_words(rows, self.runtime, len(self.checked_calls()), len(program.names), draws)

    @property
    def nothing_written(self) -> str:
        return nothing_written(self.path if self.final else "")

    def write(self, programs: list[Program], without: dict[str, str]) -> Contract:
        """The file of programs, with a contract of its own; nothing of it is checked. Kinds of fusions are left out."""
        self.discard()
        self.opened = ("", None)
        self.left_out = without
        joined = _core.join_programs([(p.built, self.experiment.bounds(p.number)) for p in programs])
        contract = self.contract(joined, [self.driver.programs[number] for number in self.experiment.programs])
        self.refuse_assumptions(contract)
        self.staged = self.make(joined, contract)
        self.first_verification = None
        self.changing.clear()
        return contract

    def verification(self, program: Program, contract: Contract, measured: list[Measured]) -> Verification:
        verification = Verification(
            self.model, self.checked_calls() if program.number == 0 else [program.call],
            self.experiment.probed(program.number), self.input_names, program.names, contract, self.options.tolerance,
            self.path if self.final else "", self.runtime, self.open_once, self.options.allow_random, program.number,
            self.staged.path, program.session, self.keeps_numbers, self.within, self.is_guarded, measured,
            self.changing, self.first_verification,
        )  # fmt: skip
        if program.number == 0:
            self.first_verification = verification
        return verification

    def with_sizes(self, program: Program, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
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

    # ---- what a target says --------------------------------------------------------------------------

    suffix: str  # of its files
    runtime: str  # in which they are checked
    several: bool  # it may hold several programs, and choose by the sizes
    rolls: bool  # Python loops over a size become loops of the file
    keeps_numbers: bool  # that forward returns are outputs of the file
    keep_writes: bool  # what the model writes to inputs and buffers is part of the program
    made: dict[str, Any]  # fields of the result that `make` knows

    @abstractmethod
    def checked_path(self, path: str) -> str:
        """The path, after what cannot work was refused."""

    @abstractmethod
    def make(self, program: Any, contract: Contract) -> Any:
        """The staged file: with `path`, `add_metadata`, `commit`, `discard` and its sizes in bytes."""

    @abstractmethod
    def open(self, path: str) -> Any:
        """What runs the staged file: `run` takes tensors by input name and gives values to compare."""

    @abstractmethod
    def note_checked(self, contract: Contract, record: str) -> None:
        """Told when the staged file has been checked, before it gets its name."""

    # Kinds of fusions that are not done, and why.
    left_out: dict[str, str]

    def suspects(self) -> list[str]:
        """Kinds of fusions in the file, of which one may be wrong."""
        return []

    def within(self, values: dict[str, int]) -> dict[str, int]:
        """The nearest sizes that the file is made for."""
        return values

    def checked_calls(self) -> list[Call]:
        """The examples at which the file is checked."""
        return self.calls

    def finish(self, contract: Contract) -> None:  # noqa: B027 (most have nothing to do)
        """Told when the file is what it should be: what else is to be done to it."""

    def note_outputs(self, outputs: Any, program: int) -> list[Any]:
        """Told the outputs of the first run of a program; its tensors by path."""
        if program == 0:
            self.numbers = [(path, v) for path, v in constants(outputs) if isinstance(v, (int, float, complex))]
        return list(get_leaf_tensors(outputs))

    def culprit(self) -> int:
        """The symbol without which `make` would have worked, where that can be told."""
        return -1

    def is_guarded(self) -> bool:
        """Whether the last run ended at a guard that torch.export put into the program."""
        return False

    def open_once(self, path: str) -> Any:
        """The same for every program of a file."""
        if self.opened[0] != path:
            self.opened = (path, self.open(path))
        return self.opened[1]

    opened: tuple[str, Any] = ("", None)

    # ---- names ----------------------------------------------------------------------------------

    def names_of_inputs(self) -> list[str]:
        names = list(self.call.names)
        if self.options.input_names is None:
            return names
        given = list(self.options.input_names)
        if len(given) != len(names):
            raise _core.InvalidInput(
                f"[export] Expected {len(names)} input_names, one per tensor ({shown(names)}), got {len(given)}."
            )
        return given

    def names(self, outputs: list[Any]) -> list[str]:
        names = output_names(outputs, self.input_names)
        if not names:
            raise _core.InvalidInput(
                "[export] Expected a model that returns tensors, got none. Return at least one tensor from forward."
            )
        given = self.options.output_names
        if given is None:
            wrong = next((name for name in names if not is_text(name)), None)
            if wrong is not None:
                raise _core.InvalidInput(
                    f"[export] Expected names of outputs that are texts, got {wrong!a}. Rename it, or pass "
                    "output_names."
                )
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

    def contract(self, program: Any, programs: list[Program]) -> Contract:
        """What the experiment found and the program says, in rows."""
        found = self.experiment.describe(program.input_shapes)
        shapes = program.input_shapes if len(programs) > 1 else self.probed.shapes
        self.places = {
            row.name: row.place
            for row in found.symbols
            if row.place and shapes[row.place[0]][row.place[1]].unit(row.name) == 1
        }
        contract = Contract()
        for row in found.symbols:
            where = "multiples of an input size"
            if row.place is not None:
                where = f"axis {row.place[1]} of {self.input_names[row.place[0]]}"
            contract.symbols.append(Symbol(row.name, row.tried, row.min, row.max, where))
        for name, tensor, shape in zip(self.input_names, self.call.tensors, shapes, strict=True):
            contract.inputs.append(Tensor(name, DTYPES[tensor.dtype], [size.text for size in shape]))
        for name, shape, dtype in zip(programs[0].names, program.output_shapes, program.output_dtypes, strict=True):
            contract.outputs.append(Tensor(name, dtype, [size.text for size in shape]))
        for row in found.fixed:
            contract.fixed.append(FixedDim(self.input_names[row.leaf], row.axis, row.size, row.reason, row.branches))
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
        contract.notes += [*words_of_fast_path(self.model), *self.options.notes, *found.notes]
        return contract

    def refuse_assumptions(self, contract: Contract) -> None:
        if not self.options.strict:
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
