"""The runs that an export solves, and more of them where few do not tell enough: a part of the export (pipeline.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from fairlead import _core
from fairlead.dynamic_shapes import LARGEST
from fairlead.fixes import Fixes, changed, setting_of
from fairlead.inputs import Call, other_floats, other_integers
from fairlead.record.session import RecordingSession


@dataclass
class Runs:
    """Recorded runs of one program, and the value of every symbol in each."""

    numbers: list[int]
    values: list[list[int]]


class Solving:
    model: Any
    call: Call
    calls: list[Call]
    options: dict
    fixes: Fixes
    probed: Any
    session: Any
    looked_at: Runs
    input_names: list[str]
    keep_writes: bool
    crossed: list[tuple[int, list[int]]]

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
        settings = [w.values for w in self.fixes.wrong if len(w.values) == len(probed.symbols)]
        for k, symbol in enumerate(probed.symbols):  # the last sizes of this program
            most = self.fixes.most_of(probed, k)
            if most < LARGEST and most not in symbol.tried:
                settings.append(changed(probed.run_values[0], k, most))
        for setting in settings:
            self.add_run(session, runs, setting, self.tensors_at(probed.sizes_at(setting)))
        for number, setting in self.crossed:
            runs.numbers.append(number)
            runs.values.append(setting)
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
        for tensors in self.fixes.calls:
            setting = setting_of(probed, [list(t.shape) for t in tensors])
            if setting is not None:
                self.add_run(session, more, setting, [t.clone() for t in tensors])
        return more

    def at_more_sizes(self, session: RecordingSession, probed, runs: Runs) -> Runs:
        """More runs, one symbol at a time at further sizes: few runs do not tell a quotient or a remainder from other
        forms, or of which symbol it is."""
        more = Runs(list(runs.numbers), list(runs.values))
        for k, symbol in enumerate(probed.symbols):
            least, most = symbol.tried[0], symbol.tried[-1]
            for size in (least * 3 // 4, least // 2 + 1, most + max(1, most // 8), most + 2):
                if max(1, symbol.min) <= size <= symbol.max and size not in symbol.tried:
                    setting = changed(probed.run_values[0], k, size)
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
        asks = bool(self.fixes.calls) or any(kind == "value" for *_, kind in program.guards)
        if not asks and not any(kind == "read" for kind, *_ in program.assumptions):
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
