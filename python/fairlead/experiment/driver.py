"""Does the steps of an experiment (`_core.Experiment`): runs and records the model, builds, writes, checks.

What to do next, and what follows from what came of it, is decided there. An error that a step meets is kept here under
a number, and raised where the experiment ends with it. With FAIRLEAD_TRANSCRIPT=folder every experiment leaves its
transcript there, which `_core.replay` goes through again without a model.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import torch

from fairlead import _core
from fairlead.base.errors import cause_of
from fairlead.experiment.generation_step import CACHE, apart, next_call, role_of
from fairlead.experiment.model_program import Program
from fairlead.patches.model_state import ModelState
from fairlead.record.alone_sizes import alone_sizes
from fairlead.record.session import RecordingSession
from fairlead.tree.calls import with_other_tensors
from fairlead.tree.dynamic_shapes import leaves_of, unknown_symbol
from fairlead.verify.runtime_check import eager

if TYPE_CHECKING:
    from fairlead.experiment.job import Job

CODES = (
    (_core.InvalidInput, "invalid input"), (_core.Unsupported, "unsupported"), (_core.Diverged, "diverged"),
    (_core.Unsolved, "unsolved"), (_core.Discrepancy, "discrepancy"), (_core.WriteError, "io"),
)  # fmt: skip
STAGES = {"guards": ("solve", "asking what else the model would do"),
          "probe": ("probe", "probing which dimensions may vary")}  # fmt: skip


class Driver:
    def __init__(self, export: Job):
        self.export = export
        self.programs: dict[int, Program] = {}
        self.problems: list[Exception] = []
        self.checked: list[list[torch.Tensor]] = []  # tensors of checks that failed
        self.failed: dict[int, tuple[Program, list[torch.Tensor], list[dict[str, Any]]]] = {}  # by problem
        self.contract: Any = None
        self.stage = ""
        export.experiment = self.experiment = _core.Experiment(self.request(), "FAIRLEAD_TRANSCRIPT" in os.environ)

    def request(self) -> Any:
        export, call = self.export, self.export.call
        held = {
            t.data_ptr(): t.numel() * t.element_size() for t in [*export.model.parameters(), *export.model.buffers()]
        }
        options = export.options
        return _core.Request(
            leaves=leaves_of(call, export.asked()), roles=[role_of(name) for name in call.names],
            calls=[[list(t.shape) for t in c.in_order_of(call)] for c in export.calls],
            max_size=list((options.max_size or {}).items()), weight_bytes=sum(held.values()),
            bounded=options.dynamic_shapes is not None, strict=options.strict, verify=options.verify,
            several=export.several, plain=export.plain, cache=call.named.get(CACHE) is not None,
            empty=[_core.EmptyDim(leaf=leaf, axis=axis, text=text) for leaf, axis, text in export.empty],
        )  # fmt: skip

    def run(self) -> None:
        """Until the file is made and checked. Raises where that cannot be."""
        try:
            while not self.experiment.over:
                step = self.experiment.step
                start = time.perf_counter()
                self.enter(self.experiment.stage, step)
                answer = STEPS[type(step)](self, step)
                seconds = time.perf_counter() - start
                self.export.progress.spent(seconds)
                self.experiment.answer(answer, round(seconds, 4))
        finally:
            self.write_transcript()
        step = self.experiment.step
        if isinstance(step, _core.Failed):
            raise self.problems[step.problem] if not step.unknown else unknown_symbol(self.probed(0), step.unknown)

    def enter(self, stage: str, step: Any) -> None:
        if stage == self.stage or (stage == "solve" and not isinstance(step, _core.Build)):
            return
        self.stage = stage
        if stage == "solve":
            count = self.programs[step.program].session.core.op_count(step.runs[0])
            self.export.progress.enter("solve", f"solving {count} operators over {len(step.runs)} runs")
        elif stage == "verify":
            self.export.progress.enter("verify", f"verifying in {self.export.runtime} at sizes never probed")
        elif stage in STAGES:
            self.export.progress.enter(*STAGES[stage])
        else:
            self.export.progress.leave()  # writing has stages of its own

    def write_transcript(self) -> None:
        folder = os.environ.get("FAIRLEAD_TRANSCRIPT")
        if folder:
            os.makedirs(folder, exist_ok=True)
            name = f"{type(self.export.model).__name__}-{os.getpid()}-{time.monotonic_ns()}.json"
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(self.experiment.transcript())

    def probed(self, number: int) -> Any:
        return self.experiment.probed(number)

    def kept(self, error: Exception) -> Any:
        self.problems.append(error)
        code = next((name for kind, name in CODES if isinstance(error, kind)), "internal")
        return _core.Problem(number=len(self.problems) - 1, code=code, cause=cause_of(error))

    # ---- runs -----------------------------------------------------------------------------------

    def open_program(self, step: Any) -> Any:
        given = step.input
        if step.parent < 0:
            call = self.export.call
        elif given.kind in ("sizes", "other"):
            parent = self.programs[step.parent]
            tensors = parent.with_other_values(given.sizes, given.number) if given.kind == "other" else None
            call = with_other_tensors(parent.call, tensors or parent.at(given.sizes))
        else:
            call = self.programs[given.number].later if given.kind == "next" else self.export.calls[given.number]
        session = RecordingSession(self.export.model, self.export.rolls, not step.plain)
        session.numbers, session.carry = self.export.keeps_numbers, not step.forgets
        session.placed = self.export.options.placed
        self.programs[step.program] = Program(step.program, call, session)
        return _core.CallFacts(sizes=[list(t.shape) for t in call.tensors])

    def run_model(self, step: Any) -> Any:
        program = self.programs[step.program]
        inputs = self.inputs(program, step.input)
        if inputs is None:
            return _core.Ran(absent=True)
        session, fresh = program.session, [inputs]
        outcome: Any

        def again() -> Any:  # a run may change them
            return fresh.pop() if fresh else self.inputs(program, step.input)

        try:
            with session:
                if step.reference < 0 and session.placed is None:
                    outcome = session.run(*inputs, keep=True)
                else:
                    outcome = session.run_cheaply(again, step.reference, step.heavy, step.spare, step.brief)
        except _core.FairleadError as error:
            return _core.Ran(problem=self.kept(error))
        if outcome is None:
            return _core.Ran(absent=True)
        if outcome.ok and program.outputs is None:
            program.outputs = self.export.note_outputs(outcome.outputs, program.number)
        _, before, now = outcome.parted or (0, "", "")
        return _core.Ran(
            run=outcome.run, parted=outcome.parted is not None, visible=outcome.visible, before=before, now=now,
            error=outcome.error, enough=outcome.enough, untold=outcome.parted is not None and not outcome.line,
            operators=session.core.op_count(outcome.run) if outcome.ok else 0,
        )  # fmt: skip

    def inputs(self, program: Program, given: Any) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        call, calls = program.call, self.export.calls
        if given.kind == "sizes":
            tensors = program.at(given.sizes)
        elif given.kind == "other":
            owner = self.programs[given.of] if given.of >= 0 else program
            tensors = owner.with_other_values(given.sizes, given.number)
        elif given.kind == "checked":
            tensors = [t.clone() for t in self.checked[given.number]]
        elif given.kind == "next":
            call = self.programs[given.number].later
            tensors = [t.clone() for t in call.tensors]
        else:
            tensors = [calls[given.number].tensor(n).clone() for n in call.names]
        return None if tensors is None else call.with_tensors(tensors)

    def run_plain(self, step: Any) -> Any:
        """Whether the model itself accepts the example."""
        state = ModelState(self.export.model)
        call = self.export.call
        args, kwargs = call.with_tensors([t.clone() for t in call.tensors])
        try:
            with self.export.calls_alone():
                eager(self.export.model, args, kwargs)
        except Exception:  # whatever it is: the first error has said it
            return _core.Ran()
        finally:
            state.restore()
        return _core.Ran(run=0)

    def next_call(self, step: Any) -> Any:
        program = self.programs[step.program]
        with self.export.calls_alone():
            program.later = next_call(self.export.model, program.call)
        if program.later is None:
            return _core.CallFacts(found=False)
        sizes = [list(t.shape) for t in program.later.tensors]
        return _core.CallFacts(sizes=sizes, words=apart(program.call, program.later))

    # ---- programs and files ---------------------------------------------------------------------

    def build(self, step: Any) -> Any:
        program, export, probed = self.programs[step.program], self.export, self.probed(step.program)
        try:
            program.names = export.names(program.outputs)
            built = _core.build_program(
                program.session.core, step.runs, [s.name for s in probed.symbols], step.values, export.input_names,
                probed.shapes, program.names, export.keep_writes, alone_sizes,
            )  # fmt: skip
        except _core.FairleadError as error:
            return _core.Built(problem=self.kept(error))
        if step.kept:
            program.built = built
        return _core.Built(
            fragile=bool(built.fragile), reads=any(kind == "read" for kind, *_ in built.assumptions),
            fitted=bool(built.fitted), operators=program.session.core.op_count(step.runs[0]),
            questions=[_core.Question(words=w, source=s, kind=k, form=f) for w, s, k, f in built.guards],
            thin=built.thin, unseen=built.unseen,
        )  # fmt: skip

    def ask(self, step: Any) -> Any:
        program = self.programs[step.program]
        program.flips = program.built.flips(step.ranges)
        return _core.Questions(others=[
            _core.OtherAnswer(question=f.guard, symbol=f.symbol, bound=f.bound, by_values=f.by_values,
                              spare=f.spare, key=f.key, family=f.family, setting=f.setting) for f in program.flips
        ])  # fmt: skip

    def require(self, step: Any) -> Any:
        program = self.programs[step.program]
        return _core.Met(met=bool(program.built.require(program.flips[step.question])))

    def emit(self, step: Any) -> Any:
        export = self.export
        try:
            self.write(step)
        except _core.FairleadError as error:
            details = [row for row in getattr(error, "details", []) if row["kind"] == "must be constant"]
            constants = sorted({name for row in details for name in row["values"]})
            return _core.Emitted(problem=self.kept(error), culprit=export.culprit(), constants=constants)
        largest = [(row["name"], row["max"]) for row in self.contract.symbols]
        return _core.Emitted(largest=largest, fused=export.suspects())

    def write(self, step: Any) -> None:
        """The file of the programs that were asked for, with a contract of its own; nothing of it is checked."""
        export = self.export
        export.discard()
        export.opened = ("", None)
        export.left_out = dict(step.without)
        programs = [self.programs[number] for number in step.programs]
        for program in programs:
            program.verification = None
        joined = programs[0].built
        if len(programs) > 1:
            joined = _core.join_programs([(p.built, self.experiment.bounds(p.number)) for p in programs])
        self.contract = export.contract(joined, [self.programs[n] for n in self.experiment.programs])
        export.refuse_assumptions(self.contract)
        export.staged = export.make(joined, self.contract)

    def check(self, step: Any) -> Any:
        program: Any = self.programs[step.program]
        try:
            if program.verification is None:
                self.export.before_checks()
                program.verification = self.export.verification(program, self.contract)
            found = program.verification.checked(step)
        except _core.FairleadError as error:
            return _core.Checked(verdict="unable", problem=self.kept(error))
        if isinstance(found, str):
            return _core.Checked(verdict=found, parts=program.verification.parts if found == "refused" else 0)
        problem = self.kept(found.error)
        self.checked.append(found.tensors)
        self.failed[problem.number] = (program, found.tensors, program.verification.rows)
        return _core.Checked(
            verdict="differs", problem=problem, parted=isinstance(found.error, _core.Diverged), before=found.before,
            now=found.now, at=found.at, number=len(self.checked) - 1, guarded=self.export.is_guarded(found.error),
            computed=found.computed,
        )  # fmt: skip


STEPS = {
    _core.Open: Driver.open_program, _core.RunModel: Driver.run_model, _core.RunPlain: Driver.run_plain,
    _core.NextCall: Driver.next_call, _core.Build: Driver.build, _core.Ask: Driver.ask, _core.Require: Driver.require,
    _core.Emit: Driver.emit, _core.Check: Driver.check,
}  # fmt: skip
