"""Verification of a staged file: ONNX Runtime against eager at the user's calls and at sizes that were never probed.

1. Every call the user gave is checked with its own tensors, then CHECKED_SETTINGS unseen settings that eager accepts.
2. Where they differ, the same call is recorded: if it executes other operators, the model branched, and the place is
   known (`Diverged`); otherwise it is a `Discrepancy`, with the values that were assumed named as a likely cause.
3. A model that draws random numbers runs several times (draws.py). Where an output differs from run to run, it is a
   `Discrepancy` unless that was allowed; then shapes and types of that output are checked, and values of the others.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch

from fairlead._core import Discrepancy, Diverged, InvalidInput
from fairlead.contract import Contract
from fairlead.draws import RUNS, Draws, drawn_with, refusal
from fairlead.inputs import Call, moved, resized, rounded_otherwise, varied
from fairlead.record.session import Outcome, RecordingSession
from fairlead.record.state import ModelState
from fairlead.runtime_check import TOLERANCE, OnnxSession, compare, eager

CHECKED_SETTINGS = 3
BRANCH_SETTINGS = 2  # of a further program, beside its example
CHOSEN = ("unseen", "branch")  # rows of sizes that were made up; a branch is another program of the file
ROUNDING = 10  # times the tolerance: as far as an ill-conditioned model may be off, if eager itself is


@dataclass
class Setting:
    """One call to check: its tensors, in words, and by symbol where sizes were chosen."""

    kind: str  # "example", "call" (another one the user gave), "unseen"
    words: str
    tensors: list[torch.Tensor]
    sizes: dict[str, int] = field(default_factory=dict)
    tamer: list[torch.Tensor] | None = None  # the same with the example's integers, where eager refuses others


@dataclass
class Verification:
    model: torch.nn.Module
    calls: list[Call]  # the first is the one that was probed
    probed: Any
    input_names: list[str]
    output_names: list[str]
    contract: Contract
    tolerance: float | None
    path: str  # the final name, for messages; empty where the model stays in memory
    runtime: str = "ONNX Runtime"
    open: Callable[[str], Any] = OnnxSession  # what runs the staged file
    allow_random: bool = False  # outputs may differ from run to run
    unseen: int = CHECKED_SETTINGS  # settings to check

    def run(self, staged: str, recording: RecordingSession) -> list[dict]:
        """One row per call that was checked; the contract is told. Raises where one differs."""
        self.state = ModelState(self.model)
        draws = any(a["kind"] == "random" for a in self.contract.assumptions)
        self.draws = Draws(self.output_names, self.tolerance) if draws else None
        if draws and not self.allow_random:  # before the runtime is asked: not every one can draw
            self.check_repeats(next(iter(self.settings())))
        try:
            session = self.open(staged)
        except Exception as error:
            raise Discrepancy(
                f"[verify] Expected a file that {self.runtime} loads, got: {first_line(error)}. {self.nothing_written}"
            ) from error
        rows: list[dict] = []
        for setting in self.settings():
            if setting.kind == "unseen" and sum(r["kind"] == "unseen" for r in rows) >= self.unseen:
                break
            row = self.check(session, setting)
            if row is None:
                self.contract.notes.append(f"eager itself refuses {setting.words}")
                continue
            rows.append(row)
            if not row["ok"]:
                self.rows = rows
                self.refuse(session, recording, setting, row)
        self.contract.verified = self.in_words(rows)
        self.contract.drawn = dict(self.draws.axes) if self.draws else {}
        return rows

    @property
    def nothing_written(self) -> str:
        return f"No file was written under {self.path}." if self.path else "Nothing was exported."

    def settings(self):
        for number, call in enumerate(self.calls):
            words = "the example's sizes" if len(self.calls) == 1 else f"the sizes of example {number}"
            tensors = [call.tensor(n) for n in self.calls[0].names]
            yield Setting("call" if number else "example", words, tensors, self.symbols_of(tensors))
        seed = 1
        for values in self.probed.unseen_settings(2 * CHECKED_SETTINGS):
            yield self.setting_at(values, seed)
            seed += 1000

    def symbols_of(self, tensors: list[torch.Tensor]) -> dict[str, int]:
        """The sizes of a call by symbol; {} where its shapes are not those of the contract."""
        found = {
            text: tensor.shape[axis]
            for tensor, shape in zip(tensors, self.probed.shapes, strict=True)
            for axis, text in enumerate(shape)
        }
        values = [found.get(symbol.name, -1) for symbol in self.probed.symbols]
        if min(values, default=-1) < 1 or self.probed.sizes_at(values) != [list(t.shape) for t in tensors]:
            return {}
        return dict(zip((s.name for s in self.probed.symbols), values, strict=True))

    def setting_at(self, values: list[int], seed: int) -> Setting:
        sizes = {s.name: v for s, v in zip(self.probed.symbols, values, strict=True)}
        shapes = self.probed.sizes_at(values)
        plain = [resized(t, list(s)) for t, s in zip(self.calls[0].tensors, shapes, strict=True)]
        tensors = [varied(t, seed + k) for k, t in enumerate(plain)]
        tamer = [v if t.is_floating_point() and bool(t.any()) else t for t, v in zip(plain, tensors, strict=True)]
        if any(a["kind"] == "read" for a in self.contract.assumptions):
            tensors = [moved(t) for t in tensors]  # a place that was read may be another one
        return Setting("unseen", ", ".join(f"{k} = {v}" for k, v in sizes.items()), tensors, sizes, tamer)

    def run_eager(self, args: tuple, kwargs: dict) -> list[torch.Tensor]:
        return eager(self.model, args, kwargs)

    def check_repeats(self, setting: Setting) -> None:
        """Eager against itself; what it refuses at the user's own call is said when that call is checked."""
        with contextlib.suppress(Exception):
            self.draws.runs(lambda: self.expected(setting))
        self.refuse_drawn()

    def refuse_drawn(self) -> None:
        if self.draws is None or not self.draws.axes or self.allow_random:
            return
        error = Discrepancy(refusal(self.draws, self.contract.assumptions, self.nothing_written))
        error.details = [a for a in self.contract.assumptions if a["kind"] == "random"]
        raise error

    def expected(self, setting: Setting) -> list[torch.Tensor]:
        """What eager computes, with the model left as it was."""
        args, kwargs = self.calls[0].with_tensors([t.clone() for t in setting.tensors])
        try:
            return self.run_eager(args, kwargs)
        finally:
            self.state.restore()

    def check(self, session: OnnxSession, setting: Setting) -> dict | None:
        """The row of a setting; None where eager refuses sizes that were made up."""
        try:
            start = time.perf_counter()
            expected = self.draws.runs(lambda: self.expected(setting)) if self.draws else self.expected(setting)
            eager_seconds = (time.perf_counter() - start) / (RUNS if self.draws else 1)
        except Exception as error:
            if setting.tamer is not None:
                tamer, setting.tamer = setting.tamer, None
                setting.tensors = tamer
                return self.check(session, setting)
            if setting.kind == "unseen":
                return None
            raise InvalidInput(
                f"[verify] Expected the model to accept {setting.words}, but it raised {type(error).__name__}: "
                f"{first_line(error)}. Check the call; it is made after others that were recorded."
            ) from error
        self.refuse_drawn()
        row = {"kind": setting.kind, "sizes": setting.sizes}
        try:
            start = time.perf_counter()
            got = session.run(dict(zip(self.input_names, setting.tensors, strict=True)))
            seconds = time.perf_counter() - start
        except Exception as error:
            problem = f"cannot be computed: {first_line(error)}"
            return row | {"ok": False, "output": self.output_names[0], "scaled": math.inf, "abs": math.inf,
                          "problem": problem}  # fmt: skip
        found = compare(self.output_names, expected, got, self.tolerance, self.draws and self.draws.axes)
        if not found["ok"] and self.tolerance is None and self.rounds_alike(setting, expected, found):
            found |= {"ok": True, "problem": ""}
        return row | found | {"eager_seconds": eager_seconds, "ort_seconds": seconds}

    def rounds_alike(self, setting: Setting, expected: list[torch.Tensor], found: dict) -> bool:
        """Whether eager itself moves as far where its inputs move by a rounding step: sums of large terms that cancel.
        Only up to ROUNDING times the tolerance; beyond that it is a difference whatever the reason.
        """
        k = self.output_names.index(found["output"]) if found["output"] in self.output_names else -1
        limit = TOLERANCE.get(expected[k].dtype, 0.0) if k >= 0 else 0.0
        if not limit < found["scaled"] <= ROUNDING * limit:
            return False
        moved = 0.0
        for seed in range(2):
            tensors = [rounded_otherwise(t, seed) for t in setting.tensors]
            args, kwargs = self.calls[0].with_tensors(tensors)
            try:
                other = eager(self.model, args, kwargs)[k]
            finally:
                self.state.restore()
            if other.shape != expected[k].shape:
                return False
            distance = (other.double() - expected[k].double()).abs() / expected[k].double().abs().clamp(min=1)
            moved = max(moved, distance.nan_to_num().max().item())
        if found["scaled"] > 4 * moved:
            return False
        self.contract.notes.append(
            f"{found['output']} differs by {found['scaled']:.2g} at {setting.words}; "
            f"eager itself by {moved:.2g} where its inputs are rounded otherwise"
        )
        return True

    def refuse(self, session: OnnxSession, recording: RecordingSession, setting: Setting, row: dict) -> NoReturn:
        """Raises; the error carries the symbols to blame, and whether they are smaller than wherever the model ran."""
        error = self.problem(recording, setting, row)
        parts = isinstance(error, Diverged)
        error.blamed = self.blamed(setting, self.executes_another(recording) if parts else self.differs(session))
        error.values = list(setting.sizes.values())
        symbols = self.probed.symbols
        smallest = setting.sizes == {s.name: max(1, s.min) for s in symbols}
        below = bool(error.blamed) and all(error.values[k] < symbols[k].tried[0] for k in error.blamed)
        error.smallest = setting.kind == "unseen" and (smallest or below)
        error.rows, error.at = self.rows, setting.tensors
        raise error

    def blamed(self, setting: Setting, fails: Callable[[Setting], bool]) -> list[int]:
        """The symbols that fail alone at this setting; else those without which the others do not."""
        values = list(setting.sizes.values())
        base = self.probed.run_values[0]
        if not values:
            return []

        def fails_with(changed) -> bool:
            return fails(self.setting_at([v if k in changed else base[k] for k, v in enumerate(values)], 1))

        symbols = range(len(values))
        alone = [k for k in symbols if fails_with({k})]
        return alone or [k for k in symbols if not fails_with(set(symbols) - {k})]

    def differs(self, session: OnnxSession) -> Callable[[Setting], bool]:
        def test(setting: Setting) -> bool:
            row = self.check(session, setting)
            return row is not None and not row["ok"]

        return test

    def executes_another(self, recording: RecordingSession) -> Callable[[Setting], bool]:
        def test(setting: Setting) -> bool:
            return self.recorded(recording, setting).parted is not None

        return test

    def recorded(self, recording: RecordingSession, setting: Setting) -> Outcome:
        args, kwargs = self.calls[0].with_tensors([t.clone() for t in setting.tensors])
        with recording:
            return recording.run(args, kwargs, self.probed.runs[0])

    def problem(self, recording: RecordingSession, setting: Setting, row: dict) -> Exception:
        nothing = self.nothing_written
        outcome = self.recorded(recording, setting)
        _, before, now = outcome.parted or (0, "", "")
        if outcome.parted is not None and not (self.draws and before == now and ".generator" in now):
            # A generator is another object in each run: that is no branch.
            return Diverged(
                f"[verify] Expected the model to execute the same operators at every size, but at {setting.words} it "
                f"executes {now} where it executed {before}: it branches on a size or a value there. {nothing} "
                'Fix that dimension, or give its bounds, with dynamic_shapes={..: {0: Dim("n", min=.., max=..)}}.'
            )
        reads = [a for a in self.contract.assumptions if a["kind"] == "read"]
        cause = f" The model {reads[0]['what']} at {reads[0]['source']}: that assumption may be wrong." if reads else ""
        if self.draws:
            cause += (
                f" It draws with {drawn_with(self.contract.assumptions)}, and this output repeats: where it seeds a "
                "generator of its own, the file cannot draw the same. Draw ahead, and keep the numbers in a buffer."
            )
        return Discrepancy(
            f"[verify] Expected {self.runtime} to agree with eager, but output {row['output']} {row['problem']} "
            f"at {setting.words}.{cause} {nothing}"
        )

    def in_words(self, rows: list[dict]) -> str:
        worst = max((r["scaled"] for r in rows), default=0.0)
        unseen = "; ".join(", ".join(f"{k}={v}" for k, v in r["sizes"].items()) for r in rows if r["kind"] in CHOSEN)
        given = len(self.calls)
        where = "at the example" if given == 1 else f"at the {given} examples"
        what = f"worst difference {worst:.2g}"
        if self.draws:
            compared = len(self.draws.axes) < len(self.output_names)
            what = f"{what}; {self.draws.in_words()}" if compared else self.draws.in_words()
        return f"in {self.runtime} {where}" + (f" and at {unseen}" if unseen else "") + f": {what}"


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:400].rstrip(".")
