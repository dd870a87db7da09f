"""Verification of a staged file: ONNX Runtime against eager at the user's calls and at sizes that were never probed.

1. Which calls are checked is told (`_core.CheckPlan`): those of the user with their own tensors, the example's sizes
   with other values (tree/values.py), sizes next to those that ran, and far ones. Here they are made, run and judged.
2. Where they differ, the same call is recorded: if it executes other operators, the model branched, and the place is
   known (`Diverged`); otherwise it is a `Discrepancy`, with the values that were assumed named as a likely cause.
3. A model that draws random numbers runs several times (draws.py). Where an output differs from run to run, it is a
   `Discrepancy` unless that was allowed; then shapes and types of that output are checked, and values of the others.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from fairlead import _core
from fairlead._core import Discrepancy, Diverged, InvalidInput
from fairlead.base.errors import caused
from fairlead.contract import Contract
from fairlead.patches.model_state import ModelState
from fairlead.record.outside import outside_of
from fairlead.record.outside import refusal as refusal_of
from fairlead.record.session import Outcome, RecordingSession, instead
from fairlead.record.switches import tracing_switches
from fairlead.tree.calls import Call, all_varied, moved, nudged, rounded_otherwise
from fairlead.tree.values import Variation, alone, every_variation
from fairlead.verify.calls_twice import remembered
from fairlead.verify.draws import RUNS, Draws, drawn_with, refusal
from fairlead.verify.runtime_check import OnnxSession, TensorValue, compare, difference, eager

MOST_SHOWN = 8  # sizes in the words of a contract
CHOSEN = ("unseen", "branch")  # rows of sizes that were made up; a branch is another program of the file
EXACT = (torch.int64, torch.uint64)
ROUNDING = 100  # times the tolerance: as far as an ill-conditioned model may be off, if eager itself is


@dataclass
class Setting:
    """One call to check: its tensors, in words, and by symbol where sizes were chosen."""

    kind: str  # "example", "call" (another one the user gave), "values" (other ones at the example's sizes), "unseen"
    words: str
    tensors: list[torch.Tensor]
    sizes: dict[str, int] = field(default_factory=dict)
    example_integers: Any = None  # makes the same with those of the example, where eager refuses others
    variation: Variation | None = None
    far: bool = False  # not next to what ran

    @property
    def made_up(self) -> bool:
        return self.kind in ("values", "unseen")


@dataclass
class Difference:
    """A call at which file and eager differ: its tensors, the sizes in words, and where the model branched."""

    error: Exception
    tensors: list[torch.Tensor]
    at: str
    before: str = ""
    now: str = ""
    computed: bool = True  # the file computes something there


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
    part: bool = False  # it is of a further program of the file
    staged: str = ""  # the file
    recording: Any = None  # a RecordingSession
    numbers: bool = False  # that forward returns are outputs of the file
    within: Callable[[dict[str, int]], dict[str, int]] = dict  # the nearest sizes that the file is made for

    def __post_init__(self) -> None:
        self.state = ModelState(self.model)
        self.changed: list[str] | None = None  # what the first call changed on the model
        self.rows: list[dict[str, Any]] = []
        self.stopped_by_integers = False  # at some sizes, where those of the example are taken
        self.parts = 0  # of values that were refused: what can be changed alone
        self.scales: list[float] = []  # of the outputs at the example
        self.other_values: list[Variation] = []
        self.further_values = every_variation(self.example())
        draws = any(a["kind"] == "random" for a in self.contract.assumptions)
        self.draws: Any = Draws(self.output_names, self.tolerance) if draws else None
        if draws and not self.allow_random:  # before the runtime is asked: not every one can draw
            self.check_repeats(self.of_call(0))
        try:
            self.session = self.open(self.staged)
        except Exception as error:
            cause = f"Expected a file that {self.runtime} loads, got: {first_line(error)}"
            raise caused(Discrepancy(f"[verify] {cause}. {self.nothing_written}"), cause) from error

    def checked(self, step: Any) -> str | Difference:
        """What came of a call: "right", "refused" by eager, "stopped" by the file, "excused", "absent"; or how they
        differ. Rows and notes of the contract are kept."""
        setting = self.setting_of(step)
        if setting is None:
            return "absent"
        if step.blame:
            return self.alike(setting, step.operators)
        row = self.check(self.session, setting)
        if row is None:
            self.parts = 0
            if setting.variation is not None:
                self.parts = len(alone(self.example(), self.input_names, setting.variation))
            if setting.kind == "unseen":
                self.contract.notes.append(f"eager itself refuses {setting.words}")
            return "refused"
        if row.get("stopped"):
            return "stopped"
        if not row["ok"] and setting.example_integers is not None:
            row = self.with_example_integers(self.session, setting, row)
        if not row["ok"] and (self.is_excused(setting, row) or self.is_of_tracing(self.session, setting)):
            return "excused"
        self.rows.append(row)
        return "right" if row["ok"] else self.difference(setting, row)

    def alike(self, setting: Setting, operators: bool) -> str | Difference:
        """Whether a setting differs too, to find out who is to blame."""
        if operators:
            differs = self.recorded(self.recording, setting).parted is not None
        else:
            row = self.check(self.session, setting)
            differs = row is not None and not row.get("ok", True)
        return "differs" if differs else "right"

    def difference(self, setting: Setting, row: dict[str, Any]) -> Difference:
        error, before, now = self.problem(self.recording, setting, row)
        return Difference(error, setting.tensors, setting.words, before, now, not row["failed"])

    def finish(self) -> list[dict[str, Any]]:
        """One row per call that was checked; the contract is told."""
        self.note_state()
        if not self.part:
            self.contract.drawn = dict(self.draws.axes) if self.draws else {}
        return self.rows

    @property
    def nothing_written(self) -> str:
        return f"No file was written under {self.path}." if self.path else "Nothing was exported."

    def note_state(self) -> None:
        """What the model remembers from call to call. A large one is called twice only where it changes itself."""
        if self.recording is None or self.draws or self.part:
            return
        if not self.is_small() and not self.changed:
            return
        call = self.calls[0]
        tensors = call.tensors

        def run(given: list[torch.Tensor] = tensors) -> list[torch.Tensor]:
            args, kwargs = call.with_tensors(call.of_own_classes([t.clone() for t in given]))
            return [plain(t) for t in self.run_eager(args, kwargs)]

        settings = [[max(1, s.min) for s in self.probed.symbols], list(self.probed.run_values[-1])]
        calls = [all_varied(tensors, 7), *(self.setting_at(values, 7).tensors for values in settings)]
        for other in (None, *(functools.partial(run, given) for given in calls if self.changed)):
            with contextlib.suppress(Exception):
                found = remembered(self.model, run, self.output_names, self.state, self.tolerance, other)
                if found is not None:
                    self.contract.assumptions.append(found)
                    return

    def is_small(self) -> bool:
        """Whether one more call costs nothing."""
        held = {t.data_ptr(): t.numel() * t.element_size() for t in [*self.model.parameters(), *self.model.buffers()]}
        return _core.is_small(
            sum(held.values()), self.recording.core.op_count(self.probed.runs[0]), len(self.input_names)
        )

    # ---- the calls ------------------------------------------------------------------------------

    def setting_of(self, step: Any) -> Setting | None:
        if step.kind == "call":
            return self.of_call(step.number)
        if step.kind == "sizes":
            return self.setting_at(step.values, step.seed, step.far)
        more = step.number + 1 - len(self.other_values)
        self.other_values += itertools.islice(self.further_values, max(0, more))
        if step.number >= len(self.other_values):
            return None
        variation = self.other_values[step.number]
        if step.part >= 0:
            variation = alone(self.example(), self.input_names, variation)[step.part]
        words = f"the example's sizes with other values ({variation.words})"
        return Setting("values", words, variation.tensors, self.symbols_of(self.example()), variation=variation)

    def example(self) -> list[torch.Tensor]:
        return self.calls[0].tensors

    def of_call(self, number: int) -> Setting:
        words = "the example's sizes" if len(self.calls) == 1 else f"the sizes of example {number}"
        tensors = self.calls[number].in_order_of(self.calls[0])
        return Setting("call" if number else "example", words, tensors, self.symbols_of(tensors))

    def symbols_of(self, tensors: list[torch.Tensor]) -> dict[str, int]:
        """The sizes of a call by symbol; {} where its shapes are not those of the contract."""
        found: dict[str, int] = {}
        for shape, sizes in dict.fromkeys(zip(self.probed.shapes, (t.shape for t in tensors), strict=True)):
            found.update(zip(shape, sizes, strict=True))
        values = [found.get(symbol.name, -1) for symbol in self.probed.symbols]
        if min(values, default=-1) < 1 or self.probed.sizes_at(values) != [t.shape for t in tensors]:
            return {}
        return dict(zip((s.name for s in self.probed.symbols), values, strict=True))

    def setting_at(self, values: list[int], seed: int, far: bool = False) -> Setting:
        sizes = self.within({s.name: v for s, v in zip(self.probed.symbols, values, strict=True)})
        shapes = self.probed.sizes_at(list(sizes.values()))
        tensors = varied = self.calls[0].varied_at(shapes, seed)

        def example_integers() -> list[torch.Tensor]:
            return with_integers_of(self.calls[0].at(shapes), varied)

        if any(a["kind"] == "read" for a in self.contract.assumptions):
            tensors = [moved(t) for t in tensors]  # a place that was read may be another one
        words = ", ".join(f"{k} = {v}" for k, v in sizes.items())
        return Setting("unseen", words, tensors, sizes, example_integers, far=far)

    def run_eager(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        if self.recording is not None:
            self.recording.checked += 1
        return eager(self.model, args, kwargs, self.numbers)

    def check_repeats(self, setting: Setting) -> None:
        """Eager against itself; what it refuses at the user's own call is said when that call is checked."""
        with contextlib.suppress(Exception):
            self.draws.runs(lambda: self.expected(setting))
        self.refuse_drawn()

    def refuse_drawn(self) -> None:
        if self.draws is None or not self.draws.axes or self.allow_random:
            return
        raise refusal(self.draws, self.contract.assumptions, self.nothing_written)

    def expected(self, setting: Setting) -> list[torch.Tensor]:
        """What eager computes, with the model left as it was."""
        return self.expected_at(setting.tensors)

    def expected_at(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        call = self.calls[0]
        args, kwargs = call.with_tensors(call.of_own_classes([t.clone() for t in tensors]))
        try:
            found = [plain(t) for t in self.run_eager(args, kwargs)]
            if self.changed is None:
                self.changed = self.state.changes()
            return found
        finally:
            self.state.restore()

    def check(self, session: OnnxSession, setting: Setting) -> dict[str, Any] | None:
        """The row of a setting; None where eager refuses sizes or values that were made up."""
        try:
            start = time.perf_counter()
            expected = self.draws.runs(lambda: self.expected(setting)) if self.draws else self.expected(setting)
            eager_seconds = (time.perf_counter() - start) / (RUNS if self.draws else 1)
        except Exception as error:
            if setting.example_integers is not None:
                example_integers, setting.example_integers = setting.example_integers, None
                setting.tensors = example_integers()
                return self.check(session, setting)
            if setting.made_up:
                return None
            cause = f"it raised {type(error).__name__}: {first_line(error)}"
            raise caused(
                InvalidInput(
                    f"[verify] Expected the model to accept {setting.words}, but {cause}. "
                    "Check the call; it is made after others that were recorded."
                ),
                cause,
            ) from error
        self.refuse_drawn()
        row = {"kind": setting.kind, "sizes": setting.sizes}
        if setting.variation is not None:
            row["variation"] = setting.variation.words
        try:
            start = time.perf_counter()
            got = session.run(dict(zip(self.input_names, setting.tensors, strict=True)))
            seconds = time.perf_counter() - start
        except Exception as error:
            # Sizes and values that the file is not for stop it by its own check, whose name is in the message: ONNX
            # Runtime has no code for it.
            if setting.made_up and any(words in str(error) for words in self.contract.required):
                return {"stopped": True}
            problem = f"cannot be computed: {first_line(error)}"
            return row | {"ok": False, "output": self.output_names[0], "scaled": math.inf, "abs": math.inf,
                          "problem": problem, "failed": True, "not_finite": False}  # fmt: skip
        drawn = self.draws and self.draws.axes
        if setting.kind == "example":
            self.scales = [largest_of(t) for t in expected]
        scales = self.scales if setting.made_up else []
        found = compare(self.output_names, expected, got, self.tolerance, drawn, self.contract.computed_in, scales)
        if not found["ok"] and setting.made_up and self.overflows(setting, expected, found):
            found |= {"ok": True, "problem": "", "scaled": 0.0}
        if not found["ok"] and self.tolerance is None and self.rounds_alike(setting, expected, found):
            found |= {"ok": True, "problem": ""}
        return row | found | {"failed": False, "eager_seconds": eager_seconds, "ort_seconds": seconds}

    def overflows(self, setting: Setting, expected: list[torch.Tensor], found: dict[str, Any]) -> bool:
        """Whether sums or products of integers that were made up go beyond what double holds, in which ONNX Runtime has
        some of them: said once."""
        k = self.output_names.index(found["output"]) if found["output"] in self.output_names else -1
        whole = k >= 0 and expected[k].dtype in EXACT and math.isfinite(found["abs"])
        wide = [t for t in [expected[k], *setting.tensors] if t.dtype in EXACT and t.numel()] if whole else []
        if all(int(t.max()) <= 2**53 and int(t.min()) >= -(2**53) for t in wide):
            return False
        note = f"{found['output']} is exact up to 2^53"
        if note not in self.contract.notes:
            self.contract.notes.append(note)
        return True

    def rounds_alike(self, setting: Setting, expected: list[torch.Tensor], found: dict[str, Any]) -> bool:
        """Whether eager itself moves as far where its inputs move by a rounding step: sums of large terms that cancel.
        Only up to ROUNDING times the tolerance, of the output's scale or, where all of it cancels, of a thousandth of
        the inputs'; beyond that it is a difference whatever the reason.
        """
        if found["output"] not in self.output_names or not math.isfinite(found["abs"]) or found["not_finite"]:
            return False
        inputs = [t.abs().max().item() for t in setting.tensors if t.is_floating_point() and t.numel()]
        scale = max([found["scale"], *(size / 1024 for size in inputs if math.isfinite(size))])
        if not 0 < found["abs"] <= ROUNDING * found["tolerance"] * scale:
            return False
        moved = self.moved(setting, expected, found, rounded_otherwise)
        if found["abs"] > 4 * moved:
            return False
        self.contract.notes.append(
            f"{found['output']} differs by {found['abs']:.2g} at {setting.words}; "
            f"eager itself by {moved:.2g} where its inputs are rounded otherwise"
        )
        return True

    def moved(
        self, setting: Setting, expected: list[torch.Tensor], found: dict[str, Any], change: Callable[..., Any]
    ) -> float:
        """How far eager moves in an output where its inputs are changed a little; 0 where it cannot be told."""
        k = self.output_names.index(found["output"])
        moved = 0.0
        for seed in range(2):
            other = self.expected_at([change(t, seed) for t in setting.tensors])[k]
            if other.shape != expected[k].shape:
                return 0.0
            moved = max(moved, difference(expected[k], TensorValue(other), 0.0).abs)
        return moved

    def is_excused(self, setting: Setting, row: dict[str, Any]) -> bool:
        """Whether a difference at values that were made up proves nothing, which the contract says: eager has NaN or
        nothing to compute with where nothing is selected; or it jumps there, at a tie or a threshold, and a step of
        rounding takes it as far."""
        if setting.variation is None or row["output"] not in self.output_names:
            return False
        if self.recording is not None:
            parted = self.recorded(self.recording, setting).parted
            if parted is not None:  # it branches, and that is known to the line
                return self.is_of_a_library(setting, parted)
        if setting.variation.empty and (row["not_finite"] or row["failed"]):
            self.contract.notes.append(f"output {row['output']!r} {row['problem']} at {setting.words}")
            return True
        if row["failed"] or not math.isfinite(row["abs"]):
            return False
        try:
            moved = self.moved(setting, self.expected(setting), row, nudged)
        except Exception:  # refused there: nothing is known
            return False
        if row["abs"] > 4 * moved:
            return False
        self.contract.notes.append(
            f"{row['output']} differs by {row['abs']:.2g} at {setting.words}; "
            f"eager itself by {moved:.2g} where its inputs are moved by a step of rounding"
        )
        return True

    def is_of_tracing(self, session: OnnxSession, setting: Setting) -> bool:
        """Whether the file computes what the model computes while it is traced: models ask torch.compiler, and only
        leave out a mask where they are not traced, so that values like these change the one and not the other."""
        if setting.variation is None:
            return False
        with tracing_switches():
            row = self.check(session, setting)
        if row is None or not row.get("ok"):
            return False
        self.contract.notes.append(
            f"at {setting.words} the model computes something else when torch.compiler.is_compiling(); "
            "the file has what it computes then"
        )
        return True

    def with_example_integers(self, session: OnnxSession, setting: Setting, row: dict[str, Any]) -> dict[str, Any]:
        """The row of the same sizes with the example's integers, where it is the values of others that the file refuses
        aloud, or that lead elsewhere in a package's code; the contract says it. Else the row as it is."""
        if not row["failed"] and not self.goes_by_values(setting):
            return row
        other = replace(setting, tensors=setting.example_integers(), example_integers=None)
        found = self.check(session, other)
        if found is None or not found["ok"]:
            return row
        if row["failed"] and not self.stopped_by_integers:  # the first says it
            self.stopped_by_integers = True
            self.contract.notes.append(f"with other integers at {setting.words}, {row['output']} {row['problem']}")
        return found

    def goes_by_values(self, setting: Setting) -> bool:
        """Whether values, not sizes, lead elsewhere in a package's code: with the example's, the same sizes execute the
        same operators."""
        if self.recording is None:
            return False
        other = Setting("unseen", setting.words, setting.example_integers(), setting.sizes)
        parted = self.recorded(self.recording, setting).parted
        if parted is None or self.recorded(self.recording, other).parted is not None:
            return False
        return self.is_of_a_library(setting, parted)

    def is_of_a_library(self, setting: Setting, parted: tuple[Any, ...]) -> bool:
        """Whether a branch on values is in code of an installed package, which the user cannot write otherwise: then it
        is an assumption of the contract (an error with strict), with the values that lead elsewhere."""
        op, before, now = parted
        source = self.recording.core.source(self.probed.runs[0], op)
        if not is_published(source):
            return False
        words = setting.variation.words if setting.variation else setting.words
        what = (
            f"executes {instead(before, now)} at other values ({words}): the file is for values like the example's "
            "there"
        )
        known = [a for a in self.contract.assumptions if a["kind"] == "values" and a["source"] == source]
        if not known:
            row = {"kind": "values", "what": what, "module": "", "source": source, "count": 1}
            self.contract.assumptions.append(row)
        return True

    def recorded(self, recording: RecordingSession, setting: Setting) -> Outcome:
        args, kwargs = self.calls[0].with_tensors([t.clone() for t in setting.tensors])
        with recording:
            return recording.run(args, kwargs, self.probed.runs[0])

    def problem(self, recording: RecordingSession, setting: Setting, row: dict[str, Any]) -> tuple[Exception, str, str]:
        """The error, and where the model branched: what it executed before, and there."""
        nothing = self.nothing_written
        outcome = self.recorded(recording, setting)
        _, before, now = outcome.parted or (0, "", "")
        if outcome.parted is not None and not (self.draws and before == now and ".generator" in now):
            # A generator is another object in each run: that is no branch.
            where, on = "at every size", "a size or a value"
            advice = 'Fix that dimension, or give its bounds, with dynamic_shapes={..: {0: Dim("n", min=.., max=..)}}.'
            if setting.kind == "values":
                where, on = "for all values", "a value"
                advice = "Write the choice with torch.where, or export each side as a model of its own."
            cause = f"at {setting.words} it executes {instead(before, now)}: it branches on {on} there"
            error = Diverged(
                f"[verify] Expected the model to execute the same operators {where}, but {cause}. {nothing} {advice}"
            )
            return caused(error, cause), before, now
        if setting.kind == "values":
            example = self.calls[0].tensors
            rows = outside_of(recording, self.calls[0], example, setting.tensors, self.probed.runs[0])
            if rows:
                return refusal_of(rows, nothing), "", ""
        again = self.itself(setting, row)
        if again:
            cause = f"eager differs from itself: output {row['output']!r} {again} between two calls at {setting.words}"
            unsteady = Discrepancy(
                f"[verify] Expected a model whose outputs repeat, but {cause}. {nothing} Something outside of the "
                "model decides: a counter, the time, a generator of Python or NumPy."
            )
            return caused(unsteady, cause), "", ""
        reads = [a for a in self.contract.assumptions if a["kind"] == "read"]
        more = f" The model {reads[0]['what']} at {reads[0]['source']}: that assumption may be wrong." if reads else ""
        if self.draws:
            more += (
                f" It draws with {drawn_with(self.contract.assumptions)}, and this output repeats: where it seeds a "
                "generator of its own, the file cannot draw the same. Draw ahead, and keep the numbers in a buffer."
            )
        cause = f"output {row['output']!r} {row['problem']} at {setting.words}"
        differs = Discrepancy(f"[verify] Expected {self.runtime} to agree with eager, but {cause}.{more} {nothing}")
        return caused(differs, cause), "", ""

    def itself(self, setting: Setting, row: dict[str, Any]) -> str:
        """How eager differs from itself in an output; nothing where it repeats."""
        if self.draws or row["output"] not in self.output_names:
            return ""
        k = self.output_names.index(row["output"])
        first, second = (self.expected(setting)[k] for _ in range(2))
        if first.shape != second.shape:
            return f"has other sizes, {list(first.shape)} and {list(second.shape)},"
        return difference(first, TensorValue(second), self.tolerance).problem

    def in_words(self, rows: list[dict[str, Any]]) -> str:
        worst = max((r["scaled"] for r in rows), default=0.0)
        chosen = [", ".join(f"{k}={v}" for k, v in r["sizes"].items()) for r in rows if r["kind"] in CHOSEN]
        unseen = "; ".join(chosen[:MOST_SHOWN])
        if len(chosen) > MOST_SHOWN:
            unseen += f" and {len(chosen) - MOST_SHOWN} more"
        given = len(self.calls)
        where = "at the example" if given == 1 else f"at the {given} examples"
        values = sum(r["kind"] == "values" for r in rows)
        if values:
            where += f", with {values} other values" if values > 1 else ", with other values"
        what = f"worst difference {worst:.2g} in {len(rows)} runs"
        if self.draws:
            compared = len(self.draws.axes) < len(self.output_names)
            what = f"{what}; {self.draws.in_words()}" if compared else self.draws.in_words()
        return f"in {self.runtime} {where}" + (f" and at {unseen}" if unseen else "") + f": {what}"


def with_integers_of(example: list[torch.Tensor], varied: list[torch.Tensor]) -> list[torch.Tensor]:
    """The varied floats, and everything else of the example; floats that are all zeros may be a state."""
    return [v if t.is_floating_point() and bool(t.any()) else t for t, v in zip(example, varied, strict=True)]


def is_published(source: str) -> bool:
    """Whether a line is one of an installed package, or of the checkout of one: it has a version."""
    file = source.rpartition(":")[0]
    if not file or not os.path.isabs(file):
        return bool(file)  # what follows site-packages
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == file:
            return hasattr(sys.modules.get(name.partition(".")[0]), "__version__")
    return False


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:400].rstrip(".")


def largest_of(tensor: torch.Tensor) -> float:
    """The largest finite value of floats."""
    if not tensor.is_floating_point() or not tensor.numel():
        return 0.0
    return tensor.detach().double().abs().nan_to_num(0.0, 0.0, 0.0).max().item()


def plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if type(tensor) is torch.Tensor else tensor.as_subclass(torch.Tensor)
