"""Does the steps of an experiment (`_core.Experiment`): runs and records the model, builds, writes, checks.

What to do next, and what follows from what came of it, is decided there. An error that a step meets is kept here under
a number, and raised where the experiment ends with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead import _core
from fairlead.base.errors import cause_of, code_of
from fairlead.experiment.generation_step import apart, next_call
from fairlead.experiment.inputs import Inputs, accepts
from fairlead.experiment.model_program import Program
from fairlead.experiment.progress import Stages
from fairlead.experiment.request import request_of
from fairlead.experiment.transcripts import are_written, write_transcript
from fairlead.record.session import RecordingSession
from fairlead.tree.dynamic_shapes import unknown_symbol
from fairlead.verify.verification import error_of

if TYPE_CHECKING:
    from fairlead.experiment.job import Job
    from fairlead.verify.checked_rows import Measured


class Driver:
    def __init__(self, export: Job):
        self.export = export
        self.programs: dict[int, Program] = {}
        self.problems: list[Exception] = []
        self.measured: list[Measured] = []  # the figures of every check
        self.inputs = Inputs(export.calls, self.programs, self.measured)
        self.contract: Any = None  # of the last file
        self.stages = Stages(export.progress)
        export.experiment = self.experiment = _core.Experiment(request_of(export), are_written())

    def run(self) -> None:
        """Until the file is made and checked. Raises where that cannot be."""
        try:
            while not self.experiment.over:
                step = self.experiment.step
                start = time.perf_counter()
                self.enter(step)
                answer = self.answer(step)
                seconds = time.perf_counter() - start
                self.export.progress.spent(seconds)
                self.experiment.answer(answer, round(seconds, 4))
        finally:
            write_transcript(self.experiment, self.export.model)
        if isinstance(self.experiment.step, _core.Failed):
            raise self.failure(self.experiment.step)

    def enter(self, step: Any) -> None:
        stage, words = self.experiment.stage, {"runtime": self.export.runtime}
        if isinstance(step, _core.Build):
            count = self.programs[step.program].session.core.op_count(step.runs[0])
            words |= {"operators": str(count), "runs": str(len(step.runs))}
        elif stage == "solve":  # it begins when something is built
            return
        self.stages.enter(stage, words)

    def answer(self, step: Any) -> Any:
        try:
            return STEPS[type(step)](self, step)
        except _core.FairleadError as error:
            if type(step) not in UNABLE:
                raise
            self.problems.append(error)
            number = len(self.problems) - 1
            problem = _core.Problem(number=number, code=code_of(error), cause=cause_of(error))
            return UNABLE[type(step)](self, problem, error)

    def failure(self, step: Any) -> Exception:
        if step.unknown:
            return unknown_symbol(self.experiment.probed(0), step.unknown)
        if step.finding.number < 0:
            return self.problems[int(step.problem)]
        return error_of(step.finding, self.contract, self.export.runtime, self.export.nothing_written)

    # ---- runs -----------------------------------------------------------------------------------

    def open_program(self, step: Any) -> Any:
        export, call = self.export, self.inputs.example(step.input, step.parent)
        session = RecordingSession(export.model, export.rolls, not step.plain)
        session.numbers, session.carry = export.keeps_numbers, not step.forgets
        session.placed = export.options.placed
        self.programs[step.program] = Program(step.program, call, session, export)
        return _core.CallFacts(sizes=[list(t.shape) for t in call.tensors])

    def run_model(self, step: Any) -> Any:
        program = self.programs[step.program]
        return program.run(step, lambda: self.inputs.of(program, step.input))

    def foresee(self, step: Any) -> Any:
        session = self.programs[step.program].session
        return _core.Foreseen(first=session.core.foreseen(step.run, step.sizes))

    def run_plain(self, step: Any) -> Any:
        with self.export.calls_alone():
            return _core.Ran(run=0 if accepts(self.export.model, self.export.call) else -1)

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
        return self.programs[step.program].build(step, self.experiment.probed(step.program))

    def ask(self, step: Any) -> Any:
        return self.programs[step.program].ask(step.ranges)

    def require(self, step: Any) -> Any:
        return _core.Met(met=self.programs[step.program].require(step.question))

    def emit(self, step: Any) -> Any:
        for program in self.programs.values():
            program.verification = None
        self.contract = self.export.write([self.programs[number] for number in step.programs], dict(step.without))
        largest = [(row["name"], row["max"]) for row in self.contract.symbols]
        return _core.Emitted(largest=largest, fused=self.export.suspects())

    def not_emitted(self, problem: Any, error: Exception) -> Any:
        details = [row for row in getattr(error, "details", []) if row["kind"] == "must be constant"]
        constants = sorted({name for row in details for name in row["values"]})
        return _core.Emitted(problem=problem, culprit=self.export.culprit(), constants=constants)

    def check(self, step: Any) -> Any:
        return self.verification(step.program).check(step)

    def look(self, step: Any) -> Any:
        return self.verification(step.at.program).look(step)

    def verification(self, number: int) -> Any:
        program = self.programs[number]
        if program.verification is None:
            self.export.before_checks()
            program.verification = self.export.verification(program, self.contract, self.measured)
        return program.verification


STEPS = {
    _core.Open: Driver.open_program, _core.RunModel: Driver.run_model, _core.Foresee: Driver.foresee,
    _core.RunPlain: Driver.run_plain, _core.NextCall: Driver.next_call, _core.Build: Driver.build,
    _core.Ask: Driver.ask, _core.Require: Driver.require, _core.Emit: Driver.emit, _core.Check: Driver.check,
    _core.Look: Driver.look,
}  # fmt: skip
# Steps that may meet an error which the experiment should know of.
UNABLE: dict[type, Callable[[Driver, Any, Exception], Any]] = {
    _core.RunModel: lambda self, problem, error: _core.Ran(problem=problem),
    _core.Build: lambda self, problem, error: _core.Built(problem=problem),
    _core.Emit: Driver.not_emitted,
    _core.Check: lambda self, problem, error: _core.Checked(outcome="unable", problem=problem),
    _core.Look: lambda self, problem, error: _core.Looked(problem=problem),
}
