"""One program of a model, as the driver of an experiment holds it: its example, its recordings, what was built of
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from fairlead import _core
from fairlead.record.alone_sizes import alone_sizes
from fairlead.tree.calls import Call, other_floats, other_integers
from fairlead.tree.values import variations

if TYPE_CHECKING:
    from fairlead.experiment.job import Job
    from fairlead.record.session import RecordingSession
    from fairlead.verify.verification import Verification


@dataclass
class Program:
    number: int
    call: Call  # its example
    session: RecordingSession
    export: Job
    outputs: Any = None  # names of its first run's
    names: list[str] = field(default_factory=list)  # as the file has them
    built: Any = None
    flips: list[Any] = field(default_factory=list)  # where its questions have other answers
    others: list[Any] | None = None  # the example with other values
    verification: Verification | None = None
    later: Call | None = None  # the next call of generation

    @property
    def after(self) -> Call:
        """The next call of generation, which was found."""
        assert self.later is not None
        return self.later

    def at(self, sizes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
        """The example's tensors, repeated or cut to sizes."""
        return self.call.at(sizes)

    def with_other_values(self, sizes: Sequence[tuple[int, ...]], number: int) -> Any:
        """The same with other integers, or floats at other places, in one input, or other values in all of them; None
        where there is no such way."""
        if self.others is None or number == 0:
            base = self.at(sizes)
            self.others = [
                [other if i == k else t for i, t in enumerate(base)]
                for k, tensor in enumerate(base)
                for other in [*other_integers(tensor), *other_floats(tensor)]
            ]
            self.others += [variation.tensors for variation in variations(base)]
        return [t.clone() for t in self.others[number]] if number < len(self.others) else None

    def run(self, step: Any, inputs: Callable[[], tuple[tuple[Any, ...], dict[str, Any]] | None]) -> Any:
        """A `_core.Ran`. `inputs` makes the arguments; a run may change them."""
        first = inputs()
        if first is None:
            return _core.Ran(absent=True)
        session, fresh = self.session, [first]
        outcome: Any

        def again() -> Any:
            return fresh.pop() if fresh else inputs()

        with session:
            if step.reference < 0 and session.placed is None:
                outcome = session.run(*first, keep=True)
            else:
                outcome = session.run_cheaply(again, step.reference, step.heavy, step.spare, step.brief)
        if outcome is None:
            return _core.Ran(absent=True)
        if outcome.ok and self.outputs is None:
            self.outputs = self.export.note_outputs(outcome.outputs, self.number)
        _, before, now = outcome.parted or (0, "", "")
        return _core.Ran(
            run=outcome.run, parted=outcome.parted is not None, visible=outcome.visible, before=before, now=now,
            error=outcome.error, enough=outcome.enough, untold=outcome.parted is not None and not outcome.line,
            operators=session.core.op_count(outcome.run) if outcome.ok else 0,
        )  # fmt: skip

    def build(self, step: Any, probed: Any) -> Any:
        """A `_core.Built`."""
        export, core = self.export, self.session.core
        self.names = export.names(self.outputs)
        built = _core.build_program(
            core, step.runs, [s.name for s in probed.symbols], step.values, export.input_names, probed.shapes,
            self.names, export.keep_writes, alone_sizes,
        )  # fmt: skip
        if step.kept:
            self.built = built
        return _core.Built(
            fragile=bool(built.fragile), reads=any(kind == "read" for kind, *_ in built.assumptions),
            fitted=bool(built.fitted), operators=core.op_count(step.runs[0]),
            questions=[_core.Question(words=w, source=s, kind=k, form=f) for w, s, k, f in built.guards],
            thin=built.thin, unseen=built.unseen,
        )  # fmt: skip

    def ask(self, ranges: Any) -> Any:
        """A `_core.Questions`: where they have other answers."""
        self.flips = self.built.flips(ranges)
        return _core.Questions(others=[
            _core.OtherAnswer(question=f.guard, symbol=f.symbol, bound=f.bound, by_values=f.by_values,
                              spare=f.spare, rest=f.rest, key=f.key, family=f.family, setting=f.setting)
            for f in self.flips
        ])  # fmt: skip

    def require(self, question: int) -> bool:
        return bool(self.built.require(self.flips[question]))
