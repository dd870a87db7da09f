"""Exports a row and compares the file with plain eager wherever the contract says that it may be used.

Nothing of Fairlead's verification is used: sizes, values, the comparison and its tolerance are this file's own.

1. The example's leaves are matched with the contract's inputs in order; every dim is an expression of the symbols.
2. Settings: each symbol alone and pairs of them at SIZES within their bounds, in both orders; random sizes; the
   example's own sizes with values of every mode.
3. Eager is one object that is called again and again, as a user would; so is the session.
4. Beyond the contract (a bound, a step between multiples) the file may stop or be right; another answer is `unguarded`.

Kinds, worst first: see KINDS.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import os
import random
import re
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass, field

import torch

import fairlead

from .compare import Session, copied, difference, first_line, flat_tensors, run_eager
from .rows import MODES, Row, numel

KINDS = {
    "wrong": "another answer than eager within the contract, in silence",
    "abort": "the process ended",
    "hang": "no end within the time",
    "crash": "an exception that is not Fairlead's, or one of its own invariants",
    "fails": "the runtime fails within the contract where eager runs",
    "unguarded": "another answer than eager beyond the contract, where the file should stop",
    "unclean": "refused, but not in one line",
    "unlisted": "something is built into the file that the contract does not say",
    "listed": "another answer than eager, under an assumption that the contract lists",
    "stops": "the file stops with a message of its own at a size within the symbols' bounds",
    "narrow": "right, but a dim that eager lets vary is fixed or bounded",
    "refused": "refused with an error of one line",
    "right": "as eager everywhere",
}
BAD = ("wrong", "abort", "hang", "crash", "fails", "unguarded", "unclean", "unlisted")
SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 21, 37, 41, 64, 65, 100, 128, 257, 1024, 1025)
PAIRS = ((1, 1), (2, 3), (3, 2), (7, 16), (16, 7), (8, 8), (20, 21), (21, 20), (37, 41), (41, 37), (3, 64), (64, 3),
         (65, 2), (2, 65), (100, 7), (7, 100), (128, 128), (257, 1), (1, 257), (12, 1025), (1025, 12))  # fmt: skip
MOST_ELEMENTS = 2_000_000
SECONDS = 60
SLOW = 0.4  # seconds of one setting, beyond which no larger one is tried


@dataclass
class Verdict:
    id: str
    kind: str
    detail: str = ""  # expected and got, or the error
    setting: str = ""  # where
    source: str = ""
    checked: int = 0  # settings at which both ran
    seconds: float = 0.0
    narrow: list[str] = field(default_factory=list)
    contract: str = ""

    def text(self) -> str:
        lines = [f"{self.kind}: {self.id}" + (f" at {self.setting}" if self.setting else ""), f"    {self.detail}"]
        if self.source:
            lines += ["    | " + line[:300] for line in self.source.strip().splitlines()]
        return "\n".join(lines)


class TimeUp(BaseException):
    """Not an Exception: the code under test must not be able to catch it."""


@contextlib.contextmanager
def time_limit(seconds: float):
    """Raises TimeUp; a timer of somebody else (pytest's) goes on afterwards."""

    def ring(*_):
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    start = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(0.01, left - (time.monotonic() - start)))


def check(row: Row, seconds: float = SECONDS, seed: int = 0) -> Verdict:
    start = time.monotonic()
    verdict = _check(row, seconds, seed)
    verdict.seconds = round(time.monotonic() - start, 3)
    verdict.source = verdict.source or row.source or source_of(row)
    return verdict


def source_of(row: Row) -> str:
    model = row.build()
    with contextlib.suppress(OSError, TypeError):
        fn = model.__dict__.get("forward") or type(model).forward
        return inspect.getsource(fn)
    return ""


def _check(row: Row, seconds: float, seed: int) -> Verdict:
    folder = tempfile.mkdtemp(prefix="hostile-")
    path = os.path.join(folder, "m.onnx")
    try:
        try:
            with time_limit(seconds):
                result = fairlead.export(row.build(), row.call(), path, **row.options)
        except TimeUp:
            return Verdict(row.id, "hang", f"the export took more than {seconds} s")
        except fairlead.InternalError as error:
            return Verdict(row.id, "crash", f"{type(error).__name__}: {error}")
        except fairlead.FairleadError as error:
            text = str(error)
            clean = text.startswith("[") and "\n" not in text.strip() and "Traceback" not in text
            return Verdict(row.id, "refused" if clean else "unclean", f"{type(error).__name__}: {text}")
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            at = f"{os.path.basename(where.filename)}:{where.lineno}"
            return Verdict(row.id, "crash", f"{type(error).__name__}: {error} ({at})")
        try:
            with time_limit(2 * seconds):
                return Comparison(row, result, path, seed).run()
        except TimeUp:
            return Verdict(row.id, "hang", f"the comparison took more than {2 * seconds} s")
    finally:
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        os.rmdir(folder)


def far(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest distance of floats; of anything else, and where one is not finite, any difference is infinite."""
    if not a.is_floating_point() or not bool(a.isfinite().all() and b.isfinite().all()):
        return 0.0 if torch.equal(a, b) else math.inf
    return float((a.double() - b.double()).abs().max()) if a.numel() else 0.0


def example_sizes(contract, shapes: list) -> dict[str, int]:
    """The symbols at the example, found from its shapes: dims that are a symbol first, then what is left by trying."""
    found: dict[str, int] = {}
    names = [s["name"] for s in contract.symbols]
    for entry, shape in zip(contract.inputs, shapes, strict=True):
        for text, size in zip(entry["shape"], shape, strict=True):
            if text in names:
                found.setdefault(text, size)
    left = [n for n in names if n not in found]
    options = [range(1, 1 + max(itertools.chain.from_iterable(shapes), default=1))] * len(left)
    for values in itertools.islice(itertools.product(*options), 50_000):
        trial = found | dict(zip(left, values, strict=True))
        if shapes_at(contract, trial) == [tuple(s) for s in shapes]:
            return trial
    return found


def value_of(text: str, sizes: dict[str, int]) -> int:
    words = {"min": min, "max": max, "Min": min, "Max": max, "ceil": math.ceil, "floor": math.floor}
    return int(eval(text.replace("^", "**"), {"__builtins__": {}}, words | sizes))


def shapes_at(contract, sizes: dict[str, int]) -> list[tuple[int, ...]]:
    return [tuple(value_of(text, sizes) for text in entry["shape"]) for entry in contract.inputs]


OWN_STOP = re.compile(r"Name:'[^']* [^']*'")  # nodes are named after modules; a name with words in it is a message


class Comparison:
    def __init__(self, row: Row, result, path: str, seed: int):
        self.row, self.contract, self.path, self.seed = row, result.contract, path, seed
        self.random = random.Random(seed * 1000 + sum(map(ord, row.id)))
        self.shapes = [k.shape for k in row.kinds]
        self.checked = 0
        self.found: dict[str, tuple[str, str]] = {}  # kind -> (detail, setting), the first of each

    def run(self) -> Verdict:
        try:
            self.session = Session(self.path)
        except Exception as error:
            return self.verdict("fails", f"the runtime does not load the file: {first_line(error)}")
        if len(self.contract.inputs) != len(self.shapes):
            return self.verdict(
                "crash", f"the contract has {len(self.contract.inputs)} inputs, the call {len(self.shapes)}"
            )
        self.model = self.row.build()
        self.example = example_sizes(self.contract, self.shapes)
        for shapes, words, mode in sorted(self.settings(), key=lambda setting: numel(setting[0])):
            start = time.process_time()
            self.compare(shapes, words, mode, within=True)
            if "wrong" in self.found or time.process_time() - start > SLOW:
                break  # what is larger says nothing new, or takes longer
        for shapes, words in self.settings_beyond():
            self.compare(shapes, words, "plain", within=False)
        if self.row.mentions and not re.search(self.row.mentions, str(self.contract)):
            self.found["unlisted"] = (f"the contract does not say {self.row.mentions!r}", "")
        narrow = self.narrow()
        for kind in KINDS:
            if kind in self.found:
                return self.verdict(kind, *self.found[kind], narrow=narrow)
        return self.verdict("narrow" if narrow else "right", "; ".join(narrow), narrow=narrow)

    def verdict(self, kind: str, detail: str, setting: str = "", narrow=()) -> Verdict:
        return Verdict(
            self.row.id, kind, detail, setting, checked=self.checked, narrow=list(narrow), contract=str(self.contract)
        )

    # ---- settings --------------------------------------------------------------------------------

    def allowed(self, sizes: dict[str, int]) -> bool:
        return all(s["min"] <= sizes[s["name"]] <= s["max"] for s in self.contract.symbols)

    def settings(self):
        for mode in MODES:
            yield self.shapes, f"the example's sizes, {mode} values", mode
        names = [s["name"] for s in self.contract.symbols]
        least = {s["name"]: s["min"] for s in self.contract.symbols}
        most = {s["name"]: s["max"] for s in self.contract.symbols}
        chosen = []
        for name in names:
            near = [least[name], least[name] + 1, most[name], most[name] - 1]
            drawn = [self.random.randint(1, top) for top in (60, 60, 60, self.row.largest, self.row.largest)]
            chosen += [self.example | {name: size} for size in (*SIZES, *near, *drawn)]
            # A bound beyond a small dim is not seen: once more where the others are large.
            large = {n: min(50, most[n], self.row.largest) for n in names}
            chosen += [large | {name: size} for size in (1, 2, 4, 6, 9, 11, 14, 18, 30)]
        couples = list(itertools.combinations(names, 2))
        for one, other in couples:
            drawn = [(self.random.randint(1, 50), self.random.randint(1, 50)) for _ in range(3)]
            drawn += [(size, size) for size in (2, 8, 41, self.example[one], self.example[other])]
            pairs = self.random.sample(PAIRS, max(6, len(PAIRS) // len(couples)))
            chosen += [self.example | {one: a, other: b} for a, b in (*pairs, *drawn)]
        if len(names) > 2:
            chosen += [{n: self.random.randint(1, 24) for n in names} for _ in range(6)]
        tried = set()
        for sizes in chosen:
            key = tuple(sizes.values())
            changed = [size for name, size in sizes.items() if size != self.example[name]]
            if key in tried or not self.allowed(sizes) or max(changed, default=0) > self.row.largest:
                continue
            tried.add(key)
            shapes = shapes_at(self.contract, sizes)
            if numel(shapes) > MOST_ELEMENTS or any(d < 1 for s in shapes for d in s):
                continue
            yield shapes, ", ".join(f"{k} = {v}" for k, v in sizes.items()), "plain"

    def settings_beyond(self):
        """One step outside of every bound, and between the steps of a dim that is a multiple."""
        for symbol in self.contract.symbols:
            for size in (symbol["min"] - 1, symbol["max"] + 1):
                if 1 <= size <= 2 * self.row.largest:
                    shapes = shapes_at(self.contract, self.example | {symbol["name"]: size})
                    if numel(shapes) <= MOST_ELEMENTS and all(d >= 1 for s in shapes for d in s):
                        yield shapes, f"{symbol['name']} = {size} (beyond the contract)"
        for k, entry in enumerate(self.contract.inputs):
            for axis, text in enumerate(entry["shape"]):
                if re.search(r"\d\s*\*", text):
                    for off in (1, -1):
                        shapes = [list(s) for s in self.shapes]
                        was = shapes[k][axis]
                        for leaf, other in enumerate(self.contract.inputs):
                            for a, t in enumerate(other["shape"]):
                                if t == text:
                                    shapes[leaf][a] = was + off
                        if was + off > 0:
                            yield shapes, f"axis {axis} of {entry['name']} = {was + off}, not of the form {text}"

    # ---- one setting -----------------------------------------------------------------------------

    def compare(self, shapes, words: str, mode: str, within: bool) -> None:
        self.seed += 1
        call = self.row.call(shapes, self.seed, mode)
        try:
            want = run_eager(self.model, call)
        except Exception:
            return  # what eager refuses proves nothing
        feeds = dict(zip([e["name"] for e in self.contract.inputs], flat_tensors(call), strict=True))
        try:
            got = self.session.run(feeds)
        except Exception as error:
            if within:
                own = OWN_STOP.search(str(error)) is not None
                self.found.setdefault("stops" if own else "fails", (first_line(error), words))
            return
        self.checked += within
        problem = difference(want, got, self.row.tolerance)
        if not problem:
            return
        if not within:
            self.found.setdefault("unguarded", (problem, words))
        elif not self.unstable(call, want, got):
            listed = self.contract.assumptions or self.contract.written
            self.found.setdefault("listed" if listed else "wrong", (problem, words))

    def unstable(self, call, want, got) -> bool:
        """Whether eager itself moves as far where its inputs are rounded otherwise: a long sum may, a number of its own
        by less than is allowed anyway.
        """
        if len(want) != len(got) or any(
            w.shape != g.shape or w.dtype != g.dtype for w, g in zip(want, got, strict=True)
        ):
            return False
        generator = torch.Generator().manual_seed(0)
        moves = [0.0] * len(want)
        for _ in range(4):
            call = copied(call)
            for t in flat_tensors(call):
                if t.is_floating_point():
                    noise = torch.rand(t.shape, generator=generator, dtype=torch.float64) * 2 - 1
                    t.copy_(t.double() * (1 + 64 * torch.finfo(t.dtype).eps * noise))
            try:
                other = run_eager(self.model, call)
            except Exception:
                return False
            if [o.shape for o in other] != [w.shape for w in want]:
                return False
            moves = [max(m, far(w, o)) for m, w, o in zip(moves, want, other, strict=True)]
        return all(far(w, g) <= 8 * m or not difference([w], [g]) for w, g, m in zip(want, got, moves, strict=True))

    # ---- what could have varied ------------------------------------------------------------------

    def narrow(self) -> list[str]:
        """Dims that are fixed, or bounded from above, where eager takes other sizes."""
        if "dynamic_shapes" in self.row.options:
            return []
        said = []
        for k, entry in enumerate(self.contract.inputs):
            for axis, text in enumerate(entry["shape"]):
                if text.isdigit() and self.takes(k, axis):
                    said.append(f"axis {axis} of {entry['name']} is fixed at {text}")
        for symbol in self.contract.symbols:
            name, most, least = symbol["name"], symbol["max"], symbol["min"]
            if most < self.row.largest and self.runs(shapes_at(self.contract, self.example | {name: most + 1})):
                said.append(f"{name} is at most {most}")
            if least > 1 and self.runs(shapes_at(self.contract, self.example | {name: least - 1})):
                said.append(f"{name} is at least {least}")
        return said

    def takes(self, leaf: int, axis: int) -> bool:
        """Whether the dim may change: alone, or with all that are as large."""
        size = self.shapes[leaf][axis]
        for other in (size + 1, size + 2, max(1, size - 1)):
            alone = [list(s) for s in self.shapes]
            alone[leaf][axis] = other
            together = [[other if d == size else d for d in s] for s in self.shapes]
            if other != size and (self.runs(alone) or self.runs(together)):
                return True
        return False

    def runs(self, shapes) -> bool:
        try:
            run_eager(self.model, self.row.call(shapes, 5))
        except Exception:
            return False
        return True
