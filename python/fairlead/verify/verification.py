"""Verification of a staged file: ONNX Runtime against eager at the user's calls and at sizes that were never probed.

1. Which calls are checked, and how a difference is judged, is decided in the core (fairlead/experiment/judging.h). Here
   calls are made, run and measured (`check`), and single facts about a call are found out (`look`).
2. A model that draws random numbers runs several times (draws.py). Where an output differs from run to run, it is a
   `Discrepancy` unless that was allowed; then shapes and types of that output are checked, and values of the others.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from fairlead import _core
from fairlead._core import Discrepancy, InvalidInput
from fairlead.base.errors import caused, error_found
from fairlead.base.memory import lacks_memory, raise_if_memory_lacks
from fairlead.contract import Contract
from fairlead.patches.model_state import ModelState
from fairlead.record.outside import outside_of
from fairlead.record.switches import tracing_switches
from fairlead.tree.calls import Call, all_varied, nudged, rounded_otherwise
from fairlead.verify.calls_twice import remembered
from fairlead.verify.checked_rows import Measured
from fairlead.verify.draws import RUNS, Draws, drawn_with, refusal
from fairlead.verify.runtime_check import OnnxSession, TensorValue, compare, difference, eager
from fairlead.verify.settings import Setting, Settings

EXACT = (torch.int64, torch.uint64)
TIED = 0.01  # of an output's elements: more are no ties that numbers happen to have
NUDGES = 8  # of two equal numbers each comes first in half of them
MOST_CHANGING = 3  # calls that change the model otherwise than the example does


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
    program: int = 0  # whose checks they are
    staged: str = ""  # the file
    recording: Any = None  # a RecordingSession
    numbers: bool = False  # that forward returns are outputs of the file
    within: Callable[[dict[str, int]], dict[str, int]] = dict  # the nearest sizes that the file is made for
    is_guarded: Callable[[], bool] = bool  # whether a guard of torch.export in the program ended the last run
    measured: list[Measured] = field(default_factory=list)  # every check, by number
    # Calls of all programs that change the model otherwise than the example does, by what they change.
    changing: dict[tuple[Any, ...], Callable[[], list[torch.Tensor]]] = field(default_factory=dict)
    first: Verification | None = None  # that of the example, where there is one

    def __post_init__(self) -> None:
        self.state = ModelState(self.model) if self.recording is None else self.recording.state
        self.changed: list[str] | None = None  # what the first call changed on the model
        self.scales: list[float] = []  # of the outputs at the example
        kinds = {a["kind"] for a in self.contract.assumptions}
        self.settings = Settings(self.calls, self.probed, self.input_names, self.within, "read" in kinds)
        self.draws: Any = Draws(self.output_names, self.tolerance) if "random" in kinds else None
        if self.draws and not self.allow_random:  # before the runtime is asked: not every one can draw
            self.check_repeats(self.settings.of_call(0))
        try:
            self.session = self.open(self.staged)
        except Exception as error:
            raise_if_memory_lacks(error)
            cause = f"Expected a file that {self.runtime} loads, got: {first_line(error)}"
            raise caused(Discrepancy(f"[verify] {cause}. {self.nothing_written}"), cause) from error

    @property
    def nothing_written(self) -> str:
        return nothing_written(self.path)

    # ---- eager ------------------------------------------------------------------------------------

    def run_eager(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        if self.recording is not None:
            self.recording.checked += 1
        return eager(self.model, args, kwargs, self.numbers)

    def expected(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """What eager computes, with the model left as it was."""
        try:
            found = self.called(tensors)
            changed = self.state.changes()
            if self.changed is None:
                self.changed = changed
            known = self.program == 0 and changed == self.changed
            if changed and not known and len(self.changing) < MOST_CHANGING:
                self.changing.setdefault((self.program, *changed), functools.partial(self.called, tensors))
            return found
        finally:
            self.state.restore()

    def called(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        call = self.calls[0]
        args, kwargs = call.with_tensors(call.of_own_classes([t.clone() for t in tensors]))
        return [plain(t) for t in self.run_eager(args, kwargs)]

    def check_repeats(self, setting: Setting) -> None:
        """Eager against itself; what it refuses at the user's own call is said when that call is checked."""
        with contextlib.suppress(Exception):
            self.draws.runs(lambda: self.expected(setting.tensors))
        self.refuse_drawn()

    def refuse_drawn(self) -> None:
        if self.draws is None or not self.draws.axes or self.allow_random:
            return
        raise refusal(self.draws, self.contract.assumptions, self.nothing_written)

    # ---- one check ----------------------------------------------------------------------------------

    def check(self, step: Any) -> Any:
        """A `_core.Checked`. Raises where the model refuses a call of the user's, or repeats nothing."""
        setting = self.settings.of(step)
        if setting is None:
            return _core.Checked(outcome="absent")
        with told_to_trace(step):
            try:
                start = time.perf_counter()
                run = functools.partial(self.expected, setting.tensors)
                expected = self.draws.runs(run) if self.draws else run()
                eager_seconds = (time.perf_counter() - start) / (RUNS if self.draws else 1)
            except Exception as error:
                if not setting.made_up:
                    raise_if_memory_lacks(error)
                return self.refused(setting, error)
            self.refuse_drawn()
            empty = [name for name, t in zip(self.output_names, expected, strict=False) if t.is_meta]
            if empty:
                raise InvalidInput(
                    f"[export] Expected outputs with values, got {empty[0]} on meta. Leave it on the device of the "
                    f"inputs. {self.nothing_written}".rstrip()
                )
            row: dict[str, Any] = {"kind": setting.kind, "sizes": setting.sizes}
            if setting.variation is not None:
                row["variation"] = setting.variation.words
            try:
                start = time.perf_counter()
                got = self.session.run(dict(zip(self.input_names, setting.tensors, strict=True)))
                seconds = time.perf_counter() - start
            except Exception as error:
                if lacks_memory(error) and setting.made_up:
                    return self.refused(setting, error)
                raise_if_memory_lacks(error)
                # Sizes and values that the file is not for stop it by its own check, whose name is in the message: ONNX
                # Runtime has no code for it.
                if setting.made_up and any(words in str(error) for words in self.contract.required):
                    return _core.Checked(outcome="stopped", at=setting.words)
                row |= {"ok": False, "output": self.output_names[0], "scaled": math.inf, "abs": math.inf,
                        "problem": f"cannot be computed: {first_line(error)}", "failed": True,
                        "not_finite": False}  # fmt: skip
                return self.answered(setting, row, expected)
            drawn = self.draws and self.draws.axes
            if setting.kind == "example":
                self.scales = [largest_of(t) for t in expected]
            scales = self.scales if setting.made_up else []
            row |= compare(self.output_names, expected, got, self.tolerance, drawn, self.contract.computed_in, scales)
            row |= {"failed": False, "eager_seconds": eager_seconds, "ort_seconds": seconds}
            return self.answered(setting, row, expected, got)

    def refused(self, setting: Setting, error: Exception) -> Any:
        if not setting.made_up:
            cause = f"it raised {type(error).__name__}: {first_line(error)}"
            raise caused(
                InvalidInput(
                    f"[verify] Expected the model to accept {setting.words}, but {cause}. "
                    "Check the call; it is made after others that were recorded."
                ),
                cause,
            ) from error
        parts = 0 if setting.variation is None else len(self.settings.parts(setting.variation))
        return _core.Checked(outcome="refused", at=setting.words, parts=parts)

    def answered(
        self, setting: Setting, row: dict[str, Any], expected: list[torch.Tensor], got: list[Any] | None = None
    ) -> Any:
        number, known = len(self.measured), {"draws": self.draws is not None, "changes": bool(self.changed)}
        equal = row["ok"]
        self.measured.append(Measured(self.program, row, None if equal else setting.tensors))
        if equal:
            return _core.Checked(number=number, **known)
        setting.expected, setting.got = expected, got
        output = row["output"] if row["output"] in self.output_names else ""
        wide = (0, 0)
        if output and math.isfinite(row["abs"]):
            wide = range_of([expected[self.output_names.index(output)], *setting.tensors])
        return _core.Checked(
            outcome="failed" if row["failed"] else "differs", number=number, at=setting.words, output=output,
            values=setting.variation.words if setting.variation is not None else "", text=row["problem"],
            abs=row["abs"], scale=row.get("scale", 0.0), tolerance=row.get("tolerance", 0.0),
            inputs=max([0.0, *filter(math.isfinite, map(largest_with_all, setting.tensors))]),
            least=wide[0], most=wide[1], told=self.tolerance is not None, not_finite=row["not_finite"],
            empty=setting.variation is not None and setting.variation.empty,
            guarded=self.is_guarded(), **known,
        )  # fmt: skip

    def computed_in(self, k: int) -> str:
        """The lowest precision that went into an output, where it is known."""
        return self.contract.computed_in[k] if self.contract.computed_in else ""

    # ---- single facts -------------------------------------------------------------------------------

    def look(self, step: Any) -> Any:
        """A `_core.Looked`."""
        setting = self.settings.of(step.at)
        if setting is None:
            return _core.Looked(known=False)
        with told_to_trace(step.at):
            return LOOKS[step.what](self, setting, step.output)

    def operators(self, setting: Setting, output: str) -> Any:
        if self.recording is None:
            return _core.Looked(known=False)
        args, kwargs = self.calls[0].with_tensors([t.clone() for t in setting.tensors])
        with self.recording as recording:
            parted = recording.run(args, kwargs, self.probed.runs[0]).parted
        if parted is None:
            return _core.Looked()
        op, before, now = parted
        source = self.recording.core.source(self.probed.runs[0], op)
        return _core.Looked(
            parted=True, before=before, now=now, source=source, published=is_published(source),
            generator=before == now and ".generator" in now,
        )  # fmt: skip

    def moved(self, setting: Setting, output: str, change: Callable[..., torch.Tensor]) -> Any:
        """How far eager moves in an output where its inputs are changed a little."""
        k = self.output_names.index(output)
        expected, moved = (setting.expected or self.expected(setting.tensors))[k], 0.0
        for seed in range(2):
            try:
                other = self.expected([change(t, seed) for t in setting.tensors])[k]
            except Exception:  # refused there: nothing is known
                return _core.Looked(known=False)
            if other.shape != expected.shape:
                return _core.Looked(known=False)
            moved = max(moved, difference(expected, TensorValue(other), 0.0).abs)
        return _core.Looked(moved=moved)

    def tied(self, setting: Setting, output: str) -> Any:
        """How far eager moves at the elements of an output where the file differs, if these are few."""
        if setting.got is None:
            return _core.Looked(known=False)
        k = self.output_names.index(output)
        want, got = TensorValue((setting.expected or self.expected(setting.tensors))[k]), setting.got[k]
        found = difference(want.tensor, got, self.tolerance, self.computed_in(k))
        others: list[TensorValue] = []
        for seed in range(NUDGES):
            with contextlib.suppress(Exception):  # refused there: nothing is known of it
                others.append(TensorValue(self.expected([nudged(t, seed) for t in setting.tensors])[k]))
        own = [other.data_ptr() for other in others if other.shape() == want.shape()]
        count = want.tensor.numel()
        limit, most = found.limit * found.scale, max(1, int(count * TIED))
        apart = _core.tied_elements(want.data_type(), want.data_ptr(), got.data_ptr(), own, count, limit, most)
        if not 0 < apart.apart <= most:
            return _core.Looked(known=False)
        return _core.Looked(moved=apart.moved, ratio=apart.ratio)

    def rounded(self, setting: Setting, output: str) -> Any:
        return self.moved(setting, output, rounded_otherwise)

    def nudged(self, setting: Setting, output: str) -> Any:
        return self.moved(setting, output, nudged)

    def repeated(self, setting: Setting, output: str) -> Any:
        """How eager differs from itself in an output; nothing where it repeats."""
        if self.recording is None:
            return _core.Looked(known=False)
        k = self.output_names.index(output)
        first, second = (self.expected(setting.tensors)[k] for _ in range(2))
        if first.shape != second.shape:
            return _core.Looked(text=f"has other sizes, {list(first.shape)} and {list(second.shape)},")
        return _core.Looked(text=difference(first, TensorValue(second), self.tolerance).problem)

    def outside(self, setting: Setting, output: str) -> Any:
        if self.recording is None:
            return _core.Looked(known=False)
        rows = outside_of(self.recording, self.calls[0], self.settings.example, setting.tensors, self.probed.runs[0])
        return _core.Looked(outside=[row for row, _ in rows])

    def remembers(self, setting: Setting, output: str) -> Any:
        """What the model remembers from call to call, by the example and, where it changes itself, by other calls."""
        tensors = setting.tensors
        if self.program != 0:  # what it leaves for the example's
            return _core.Looked() if self.first is None else self.first.after(self.changing)
        run = functools.partial(self.called, tensors)
        settings = [[max(1, s.min) for s in self.probed.symbols], list(self.probed.run_values[-1])]
        calls = [all_varied(tensors, 7), *(self.settings.at(values, 7).tensors for values in settings)]
        for other in (None, *(functools.partial(self.called, given) for given in calls if self.changed)):
            with contextlib.suppress(Exception):
                found = remembered(self.model, run, self.output_names, self.state, self.tolerance, other)
                if found is not None:
                    return _core.Looked(text=found[0], source=found[1])
        return self.after(self.changing)

    def after(self, calls: dict[tuple[Any, ...], Callable[[], list[torch.Tensor]]]) -> Any:
        """How the example's call differs behind others, which change what it leaves alone (self.long = n > 64)."""
        run = functools.partial(self.called, self.settings.of_call(0).tensors)
        for before in calls.values():
            with contextlib.suppress(Exception):
                found = remembered(self.model, before, self.output_names, self.state, self.tolerance, run)
                if found is not None:
                    return _core.Looked(text=found[0], source=found[1])
        return _core.Looked()


LOOKS: dict[str, Callable[[Verification, Setting, str], Any]] = {
    "operators": Verification.operators, "rounded": Verification.rounded, "nudged": Verification.nudged,
    "tied": Verification.tied, "repeated": Verification.repeated, "outside": Verification.outside,
    "state": Verification.remembers,
}  # fmt: skip


@contextlib.contextmanager
def told_to_trace(step: Any) -> Iterator[None]:
    with tracing_switches() if step.how == "traced" else contextlib.nullcontext():
        yield


def is_published(source: str) -> bool:
    """Whether a line is one of an installed package, or of the checkout of one: it has a version."""
    file = source.rpartition(":")[0]
    if not file or not os.path.isabs(file):
        return bool(file)  # what follows site-packages
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == file:
            return hasattr(sys.modules.get(name.partition(".")[0]), "__version__")
    return False


def nothing_written(path: str) -> str:
    return f"No file was written under {path}." if path else "Nothing was exported."


def error_of(finding: Any, contract: Contract, runtime: str, nothing: str) -> _core.FairleadError:
    """What a check found that failed, with what the contract assumes."""
    read = next(((a["what"], a["source"]) for a in contract.assumptions if a["kind"] == "read"), ("", ""))
    return error_found(finding, nothing, runtime, "eager", read, drawn_with(contract.assumptions))


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:400].rstrip(".")


def largest_of(tensor: torch.Tensor) -> float:
    """The largest finite value of floats."""
    if not tensor.is_floating_point() or not tensor.numel():
        return 0.0
    return tensor.detach().double().abs().nan_to_num(0.0, 0.0, 0.0).max().item()


def largest_with_all(tensor: torch.Tensor) -> float:
    """The largest value of floats, infinite and NaN among them."""
    if not tensor.is_floating_point() or not tensor.numel():
        return 0.0
    return tensor.detach().double().abs().max().item()


def range_of(tensors: list[torch.Tensor]) -> tuple[int, int]:
    """The least and the largest 64-bit integer of all, where the first has such. Of the unsigned PyTorch knows no
    order: those that no signed one holds are taken for the largest of these."""
    if tensors[0].dtype not in EXACT:
        return 0, 0
    least = most = 0
    for tensor in tensors:
        if tensor.dtype in EXACT and tensor.numel():
            signed = tensor.view(torch.int64)
            low, high = int(signed.min()), int(signed.max())
            if tensor.dtype == torch.uint64 and low < 0:
                low, high = 0, 2**63 - 1
            least, most = min(least, low), max(most, high)
    return least, most


def plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if type(tensor) is torch.Tensor else tensor.as_subclass(torch.Tensor)
