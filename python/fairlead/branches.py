"""Sizes at which a model executes another program: the file holds that program too, and the sizes choose.

1. Where a run parts at a size, the boundary is found by halving; what lies beyond is a branch: an export of its own
   up to the solved program, from an example on that side.
2. A cache that branches on how full it is: the call that comes next in generation is a branch.
3. The programs are joined (`_core.join_programs`), and each is verified at its own example and at unseen sizes.
4. A branch that cannot be solved, or that is wrong, is dropped: the sizes are refused or fixed, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from fairlead import _core
from fairlead.contract import Contract
from fairlead.dynamic_shapes import LARGEST
from fairlead.fixes import changed, places_of, reason_of, setting_of
from fairlead.generation_step import next_call
from fairlead.inputs import Call, with_other_tensors

MOST_PROGRAMS = 6


@dataclass
class Branch:
    job: Any  # an export with an example of its own
    words: str  # where it runs: "sequence = 1"
    why: str  # what it executes there
    places: list[tuple[int, int]]  # (leaf, axis) of the dimensions that decide
    dropped: Callable[[str], None]  # what is done instead, told why
    above: bool = False  # every larger size is to be its own
    symbol: str = ""  # that has a range of sizes here
    rest: Callable[[], None] | None = None  # what to try where it turns out to be of one size only
    step: bool = False  # a call of generation: its sizes are not looked at for further branches


class Branches:
    """The further programs of one export. `root` is the export of the example."""

    def __init__(self, root: Any):
        self.root = root
        self.held: list[Branch] = []
        self.tried: set[tuple] = set()  # boundaries that were looked at
        self.notes: list[str] = []  # about those that could not be held
        self.followed = False
        self.places: dict[str, tuple[int, int]] = {}  # of the file's symbols: (leaf, axis)

    @property
    def jobs(self) -> list[Any]:
        return [self.root, *(branch.job for branch in self.held)]

    @property
    def open(self) -> bool:
        """Whether one more may be tried."""
        options = self.root.options
        return self.root.several and not options["strict"] and len(self.held) + 1 < MOST_PROGRAMS

    def first_time(self, job: Any, places: list[tuple[int, int]], side: str) -> bool:
        own = self.branch_of(job)
        if own is not None and own.step:
            return False
        shapes = job.probed.shapes
        if any("*" in shapes[leaf][axis] for leaf, axis in places):
            return False  # bounds are of dimensions, and these are multiples of a symbol
        key = (job, tuple(places), side)
        fresh = key not in self.tried
        self.tried.add(key)
        return fresh and self.open

    # ---- boundaries -----------------------------------------------------------------------------

    def below(self, job: Any, k: int, least: int, reason: str) -> bool:
        """A branch for the sizes of symbol k below `least`; False where there is none to try."""
        probed = job.probed
        symbol, places = probed.symbols[k].name, places_of(probed, k)
        why = job.parting(job.with_size(k, least - 1))
        if not why or not self.first_time(job, places, "below"):
            return False
        if least <= 3:  # one or two sizes: each is a program of its own
            self.each(job, k, range(least - 1, 0, -1), reason)
            return True
        most = least - 1
        size = [n for n in range(2, most + 1) if all(n % d for d in range(2, n))][-2:][0]

        def refuse(cause: str) -> None:
            job.fixes.notes.append(f"the file refuses {symbol} below {least}: {reason}; {cause}")

        def rest() -> None:  # the program is for one size only: the others may have theirs
            self.each(job, k, [n for n in (1, *range(most, 1, -1)) if n != size], reason)

        setting = changed(probed.run_values[0], k, size)
        branch = self.add(job, setting, places, False, f"{symbol} = 1 to {most}", why, refuse)
        branch.symbol, branch.rest = symbol, rest
        branch.job.fixes.maximum.update(dict.fromkeys(places, most))
        return True

    def each(self, job: Any, k: int, sizes: Iterable[int], reason: str) -> None:
        """A branch for every single size of symbol k."""
        symbol, places = job.probed.symbols[k].name, places_of(job.probed, k)
        for size in sizes:

            def refuse(cause: str, size=size) -> None:
                which = "below 2" if size == 1 else f"= {size}"
                job.fixes.notes.append(f"the file refuses {symbol} {which}: {reason}; {cause}")

            setting = changed(job.probed.run_values[0], k, size)
            if self.open:
                why = job.parting(job.probed.sizes_at(setting)) or reason
                self.add(job, setting, places, True, f"{symbol} = {size}", why, refuse)
            else:
                refuse(f"there are {MOST_PROGRAMS} programs in the file")

    def above(self, job: Any, k: int, most: int, size: int) -> bool:
        """A branch for the sizes of symbol k above `most`, from an example of `size`."""
        probed = job.probed
        symbol, places = probed.symbols[k].name, places_of(probed, k)
        why = job.parting(job.with_size(k, size))
        if not why or not self.first_time(job, places, "above"):
            return False

        def refuse(cause: str) -> None:
            job.fixes.notes.append(f"the file refuses {symbol} above {most}: there the model executes {why}; {cause}")

        setting = changed(probed.run_values[0], k, size)
        branch = self.add(job, setting, places, False, f"{symbol} = {most + 1} and more", why, refuse)
        branch.above, branch.symbol = True, symbol
        branch.job.fixes.minimum.update(dict.fromkeys(places, most + 1))
        return True

    def aside(self, job: Any, setting: list[int], words: str, why: str) -> bool:
        """A branch from an example at which a guard has the other answer; False where there is none to try."""
        key = (job, words)
        own = self.branch_of(job)
        if key in self.tried or (own is not None and own.step):
            return False
        self.tried.add(key)
        sizes = job.probed.sizes_at(setting)
        if any(other.solved is not None and other is not job and not other.parting(sizes) for other in self.jobs):
            return True  # the file holds that program

        def refuse(cause: str) -> None:
            job.fixes.notes.append(f"the file refuses {words}: {why}; {cause}")

        # A call of the user's that goes the same way is a better example than one that is made up.
        given = next((c for c in self.root.calls if self.goes_aside(job, c)), None)
        if given is None:
            self.add(job, setting, [], False, words, why, refuse)
        else:
            self.append(job.branch(given, [], fixed=False), words, why, [], refuse)
        return True

    def goes_aside(self, job: Any, call: Call) -> bool:
        return call is not self.root.call and bool(job.parting([list(t.shape) for t in call.tensors], call))

    def at_example(self, job: Any, ones: list[int], reason: str) -> bool:
        """The example has sizes of 1 and larger ones are another program: its own is a branch of the larger one."""
        probed = job.probed
        base = probed.run_values[0]
        ones = [k for k in ones if job.parting(probed.sizes_at(changed(base, k, 1)))]
        places = [place for k in ones for place in places_of(probed, k)]
        why = job.parting([list(t.shape) for t in job.call.tensors])
        if not ones or not why or not self.first_time(job, places, "example"):
            return False
        words = ", ".join(f"{probed.symbols[k].name} = 1" for k in ones)

        def keep_example(cause: str) -> None:
            job.fixes.minimum = {p: least for p, least in job.fixes.minimum.items() if p not in places}
            job.fixes.fixed.update(dict.fromkeys(places, f"{reason}; {cause}"))
            job.solved, job.keeps_probed = None, False

        for k in ones:
            job.raise_minimum(k, job.smallest_alike(k), reason, note=False)
        self.append(job.branch(job.call, places, fixed=True), words, why, places, keep_example)
        return True

    def add(
        self, job: Any, setting: list[int], places: list, fixed: bool, words: str, why: str, refuse: Callable
    ) -> Branch:
        tensors = job.tensors_at(job.probed.sizes_at(setting))
        made = job.branch(with_other_tensors(job.call, tensors), places, fixed)
        return self.append(made, words, why, places, refuse)

    def append(self, job: Any, words: str, why: str, places: list, dropped: Callable) -> Branch:
        outer = next((branch.words + " and " for branch in self.held if branch.job is job.parent), "")
        self.held.append(Branch(job, outer + words, why, places, dropped))
        return self.held[-1]

    # ---- generation -----------------------------------------------------------------------------

    def follow(self) -> None:
        """The next calls of generation, where a cache or the number of tokens is fixed because the model branches."""
        job = self.root
        if self.followed or not job.stuck_in_generation():
            return
        self.followed = True
        while self.open and job.stuck_in_generation():
            call = next_call(job.model, job.call)
            if call is None:
                return
            sizes = [list(t.shape) for t in call.tensors]
            why = [other.parting(sizes, call) for other in self.jobs if other.solved is not None]
            if not all(why):
                return
            made = job.branch(call, [], fixed=False, inherit=False)
            made.parent = self.root
            self.append(made, words_of(job.call, call), why[0], [], self.notes.append).step = True
            job = made
            if not self.solve(job):
                return

    # ---- solving and joining --------------------------------------------------------------------

    def solve_all(self) -> None:
        """Every program that has not been solved yet; solving may find further branches."""
        while True:
            waiting = [job for job in self.jobs if job.solved is None]
            if not waiting:
                return
            if waiting[0] is self.root:
                self.root.solve()
                self.drop_fixed()
                self.follow()
            else:
                self.solve(waiting[0])

    def solve(self, job: Any) -> bool:
        """Solves a branch; drops it where that fails, or where it is not what it was to be."""
        try:
            job.solve()
        except _core.FairleadError as error:
            if not job.learns_from(error):
                self.drop(job, error)
                return False
            return self.solve(job)
        branch = self.branch_of(job)
        if branch is not None and branch.above and not job.open_above(branch.places):
            self.drop(job, "that program has a largest size too")
            return False
        if branch is not None and branch.rest is not None and job.is_fixed(branch.places):
            branch.rest()
            branch.rest = None
        return branch is not None

    def branch_of(self, job: Any) -> Branch | None:
        return next((branch for branch in self.held if branch.job is job), None)

    def drop(self, job: Any, why: Exception | str) -> None:
        branch = self.branch_of(job)
        if branch is None:
            return
        self.held.remove(branch)
        for inner in [b for b in self.held if b.job.parent is job]:
            self.held.remove(inner)
        text = why if isinstance(why, str) else reason_of(why).splitlines()[0].removesuffix(".")
        branch.dropped(f"the program at {branch.words} is not in the file: {text}")

    def drop_fixed(self) -> None:
        """A dimension that the example's program has fixed meanwhile decides nothing any more."""
        fixed = self.root.fixes.fixed
        self.held = [b for b in self.held if not b.places or not all(place in fixed for place in b.places)]

    def joined(self) -> Any:
        """The program of the file."""
        if not self.held:
            return self.root.solved.program
        # Those with the fewest sizes that vary come first: where two take a call, the one that was made for it runs.
        jobs = sorted(self.jobs, key=lambda job: len(job.probed.symbols))
        return _core.join_programs([(job.solved.program, job.fixes.bounds(job.probed)) for job in jobs])

    # ---- the contract ---------------------------------------------------------------------------

    def describe(self, contract: Contract, shapes: list[list[str]]) -> None:
        """Puts what the branches change into the contract of the example's program."""
        contract.notes += self.notes
        if not self.held:
            return
        contract.fixed = [
            row for row in contract.fixed if shapes[self.root.input_names.index(row["name"])][row["axis"]].isdigit()
        ]
        self.places = {}
        symbols = {row["name"]: row for row in contract.symbols}
        contract.symbols = []
        for leaf, shape in enumerate(shapes):
            for axis, text in enumerate(shape):
                name = text.split("*")[-1]
                if text != name and name in symbols and not any(row["name"] == name for row in contract.symbols):
                    contract.symbols.append(symbols[name])  # a number of times the symbol
                if not text.isidentifier() or any(row["name"] == text for row in contract.symbols):
                    continue
                row = symbols.get(text, {"name": text, "where": f"axis {axis} of {self.root.input_names[leaf]}"})
                self.places[text] = (leaf, axis)
                contract.symbols.append(row | self.range_at(leaf, axis))
        for row, shape in zip(contract.inputs, shapes, strict=True):
            row["shape"] = shape
        for branch in self.held:
            where = self.where(branch)
            contract.notes.append(f"at {where} the model executes another program ({branch.why}): the file holds both")
            contract.notes += [f"where {where}: {note}" for note in branch.job.own_notes() + self.narrower(branch)]
        own = self.narrower(None)
        if own:
            contract.notes.append("the example's program: " + "; ".join(own))

    def narrower(self, branch: Branch | None) -> list[str]:
        """Sizes that vary in the file and are fixed in a program (None: the example's) although they do not decide."""
        if branch is not None and branch.step:
            return []  # they are all in its words
        job, decide = (self.root, []) if branch is None else (branch.job, branch.places)
        said = []
        for name, (leaf, axis) in self.places.items():
            size = job.probed.shapes[leaf][axis]
            if size.isdigit() and (leaf, axis) not in decide:
                why = next((f.reason for f in job.probed.fixed if (f.leaf, f.axis) == (leaf, axis)), "")
                said.append(f"{name} is {size} only" + (f", {job.fixes.fixed.get((leaf, axis), why)}" if why else ""))
        return said

    def where(self, branch: Branch) -> str:
        """In words: the sizes that the program turned out to be for."""
        probed = branch.job.probed
        if branch.step:  # a call of generation is known by what is fixed in its program
            shapes = probed.shapes
            fixed = {name: shapes[leaf][axis] for name, (leaf, axis) in self.places.items()}
            words = [f"{name} = {size}" for name, size in fixed.items() if size.isdigit()]
            return shown(words, 3) if words else branch.words
        if not branch.symbol:
            return branch.words
        outer = branch.words[: branch.words.rindex(branch.symbol)]
        leaf, axis = branch.places[0]
        symbol = next((s for s in probed.symbols if s.name == probed.shapes[leaf][axis]), None)
        if symbol is None:
            return f"{outer}{branch.symbol} = {probed.shapes[leaf][axis]}"
        least, most = branch.job.fixes.range_of(probed, symbol)
        return f"{outer}{branch.symbol} = {least} " + ("and more" if most >= LARGEST else f"to {most}")

    def with_sizes(self, job: Any, rows: list[dict]) -> list[dict]:
        """Rows of a program's verification, with the sizes of the file's symbols."""
        found = []
        for row in rows:
            values = list(row["sizes"].values())
            if len(values) == len(job.probed.symbols):
                sizes = job.probed.sizes_at(values)
                row = row | {"sizes": {s: sizes[leaf][axis] for s, (leaf, axis) in self.places.items()}}
            if job is not self.root and row["kind"] == "example":
                row = row | {"kind": "branch"}
            found.append(row)
        return found

    def range_at(self, leaf: int, axis: int) -> dict:
        """Sizes of a dimension that ran, and the bounds, over all programs."""
        tried: set[int] = set()
        low, high = LARGEST, 0
        for job in self.jobs:
            ran = {job.probed.sizes_at(values)[leaf][axis] for values in job.probed.run_values}
            tried |= ran
            text = job.probed.shapes[leaf][axis]
            symbol = next((s for s in job.probed.symbols if s.name == text), None)
            if text.isdigit():
                low, high = min(low, int(text)), max(high, int(text))
            elif symbol is None:
                low, high = min(low, *ran), LARGEST
            else:
                least, most = job.fixes.range_of(job.probed, symbol)
                low, high = min(low, least), max(high, most)
        return {"tried": sorted(tried), "min": low, "max": high}


def words_of(before: Call, after: Call) -> str:
    """What tells two calls apart: "input_ids [13, 1], past_key_values.0.key [13, 1, 6, 32], ..." """
    differing = [
        f"{name} {list(t.shape)}"
        for name, t in zip(after.names, after.tensors, strict=True)
        if list(t.shape) != list(before.tensor(name).shape)
    ]
    return shown(differing, 3)


def shown(words: list[str], most: int = 4) -> str:
    return ", ".join(words[:most]) + (", ..." if len(words) > most else "")


def ones_in(probed: Any, tensors: list[torch.Tensor]) -> list[int]:
    """Symbols that are 1 in a call."""
    setting = setting_of(probed, [list(t.shape) for t in tensors]) or []
    return [k for k, size in enumerate(setting) if size == 1]
