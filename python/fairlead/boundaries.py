"""Where the sizes of a program end and another program begins. A part of the export in pipeline.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead.dynamic_shapes import LARGEST
from fairlead.fixes import Fixes, changed, places_of, units_of
from fairlead.generation_step import CACHE, TOKENS
from fairlead.inputs import Call


class Boundaries:
    call: Call
    fixes: Fixes
    probed: Any
    session: Any
    branching: Any
    keeps_probed: bool
    sizes_of: dict[int, list]
    partings: list[tuple[list, int, str]]
    parted_at: dict[tuple[int, int], int]

    def leave_below(self, k: int, least: int, reason: str) -> bool:
        """Symbol k is at least that; the sizes below are another program's, or refused."""
        held = self.branching.below(self, k, least, reason)
        return self.raise_minimum(k, least, reason, note=not held)

    def raise_minimum(self, k: int, least: int, reason: str, note: bool) -> bool:
        """Where every run of this program is within, it stays as it was probed."""
        if least <= self.probed.symbols[k].tried[0]:
            self.probed.bound(k, least, LARGEST)
        else:
            self.keeps_probed = False
        return self.fixes.raise_minimum(self.probed, k, least, reason, note)

    def lower_maxima(self, error: Any, reason: str) -> bool:
        """Symbols that are to blame far beyond what ran are at most that: the model executes another program there,
        which has no one boundary, or the file is wrong."""
        symbols = self.probed.symbols
        beyond = [k for k, size in enumerate(error.values) if size > symbols[k].tried[-1]]
        larger = [k for k in beyond if k in error.blamed] or beyond
        for k in larger:
            self.probed.bound(k, 1, symbols[k].tried[-1])
        learnt = [self.fixes.lower_maximum(self.probed, k, symbols[k].tried[-1], reason) for k in larger]
        return any(learnt)

    def leave_beyond(self, k: int, size: int, reason: str) -> bool:
        """Symbol k ran at other sizes than this one, where the model executes another program: the boundary is found.
        False where it lies between sizes that ran, or was found before."""
        probed = self.probed
        symbol, places = probed.symbols[k], places_of(probed, k)
        if not self.branching.open or not places or any(place in self.parted_at for place in places):
            return False
        if size < symbol.tried[0]:
            return self.leave_below(k, self.smallest_alike(k, size), reason)
        if size <= symbol.tried[-1]:
            return False
        at = self.boundary(symbol.tried[-1], size, lambda n: self.with_size(k, n))
        probed.bound(k, 1, at)
        self.fixes.maximum.update((place, at * unit) for place, unit in units_of(probed, k).items())
        self.parted_at.update(dict.fromkeys(places, size))
        return True

    def boundary(self, alike: int, differs: int, sizes_at: Callable[[int], list[list[int]]]) -> int:
        """The last size towards `differs` at which the model executes the same operators as in the reference run."""
        with self.session as session:
            while abs(differs - alike) > 1:
                tried = (alike + differs) // 2
                args, kwargs = self.call.with_tensors(self.tensors_at(sizes_at(tried)))
                if session.run(args, kwargs, self.probed.runs[0]).ok:
                    alike = tried
                else:
                    differs = tried
        return alike

    def with_size(self, k: int, size: int) -> list[list[int]]:
        """Sizes of the reference run, but for symbol k."""
        return self.probed.sizes_at(changed(self.probed.run_values[0], k, size))

    def smallest_together(self, symbols: list[int]) -> list[tuple[int, int]]:
        """The smallest sizes of symbols, at least 2, at which together the model still executes the same operators."""
        probed = self.probed
        ran = {k: max(2, probed.symbols[k].tried[0]) for k in symbols}

        def sizes_at(size: int) -> list[list[int]]:
            setting = [min(size, ran[k]) if k in ran else v for k, v in enumerate(probed.run_values[0])]
            return probed.sizes_at(setting)

        alike = self.boundary(max(ran.values(), default=2), 1, sizes_at) if symbols else 2
        return [(k, min(alike, ran[k])) for k in symbols]

    def smallest_alike(self, k: int, differs: int = 1) -> int:
        """The smallest size of symbol k, at least 2, at which the model still executes the same operators."""
        ran = max(differs + 1, self.probed.symbols[k].tried[0])
        return self.boundary(ran, differs, lambda size: self.with_size(k, size))

    def parting(self, sizes: list[list[int]], call: Call | None = None) -> str:
        """What the model executes at these sizes, in words; "" where that is the program at hand, or nothing at all."""
        call = call or self.call
        tensors = self.tensors_at(sizes) if call is self.call else [t.clone() for t in call.tensors]
        args, kwargs = call.with_tensors(tensors)
        with self.session as session:
            parted = session.run(args, kwargs, self.probed.runs[0]).parted
        return "" if parted is None else f"{parted[2]} instead of {parted[1]}"

    def open_above(self, places: list[tuple[int, int]]) -> bool:
        """Whether this program takes every size above the smallest of these dimensions."""
        shapes = self.probed.shapes
        names = {shapes[leaf][axis] for leaf, axis in places}
        symbols = [s for s in self.probed.symbols if s.name in names]
        return bool(symbols) and all(s.max >= LARGEST and not s.other_above for s in symbols)

    def is_fixed(self, places: list[tuple[int, int]]) -> bool:
        shapes = self.probed.shapes
        return all(shapes[leaf][axis].isdigit() for leaf, axis in places)

    def stuck_in_generation(self) -> bool:
        """Whether a cache, or the number of new tokens, has a fixed size because the model branches on it."""
        if self.call.named.get(CACHE) is None or self.probed is None:
            return False
        return any(
            (self.call.names[f.leaf].startswith(CACHE) or (self.call.names[f.leaf] in TOKENS and f.axis == 1))
            and ((f.leaf, f.axis) in self.fixes.fixed or f.branches or f.empty)
            for f in self.probed.fixed
        )

    def finds_boundary(self) -> bool:
        """A dimension that was fixed because larger sizes execute another program, although some larger ones did not:
        it is dynamic up to there, and probed again."""
        if not self.branching.open or self.call.named.get(CACHE) is not None:  # a cache is followed by its next call
            return False
        groups: dict[tuple[int, str], list[tuple[int, int]]] = {}
        for f in self.probed.fixed:
            if f.branches and (f.leaf, f.axis) not in self.parted_at:
                groups.setdefault((f.size, f.reason), []).append((f.leaf, f.axis))
        found = False
        for (size, _), places in groups.items():
            way = self.way_to_parting(places, size)
            if way is not None:
                ran, parted, sizes_at = way
                self.fixes.maximum.update(dict.fromkeys(places, self.boundary(ran, parted, sizes_at)))
                self.parted_at.update(dict.fromkeys(places, parted))
                found = True
        return found

    def way_to_parting(self, places: list[tuple[int, int]], size: int) -> tuple[int, int, Callable] | None:
        """A larger size of these dimensions than `size` that ran, one at which the run parts, and the sizes of all
        inputs on the way: a dimension that grew as much (a mask) grows with them."""
        leaf, axis = places[0]
        for parted, _, _ in self.partings:
            for ran in self.sizes_of.values():
                step = parted[leaf][axis] - ran[leaf][axis]
                alike = all(ran[i][a] == ran[leaf][axis] and parted[i][a] - ran[i][a] == step for i, a in places)
                if step < 1 or ran[leaf][axis] <= size or not alike:
                    continue

                def sizes_at(n: int, ran=ran, parted=parted, step=step) -> list[list[int]]:
                    by = n - ran[leaf][axis]
                    rows = zip(ran, parted, strict=True)
                    return [[a + by if b - a == step else a for a, b in zip(*row, strict=True)] for row in rows]

                if self.parting(sizes_at(parted[leaf][axis])):
                    return ran[leaf][axis], parted[leaf][axis], sizes_at
        return None

    def branch_above(self) -> None:
        """Larger sizes that execute another program become a branch."""
        probed = self.probed
        for k, symbol in enumerate(probed.symbols):
            places = places_of(probed, k)
            if symbol.other_above and self.branching.open and not any(place in self.parted_at for place in places):
                parted = [sizes[leaf][axis] for sizes, _, _ in self.partings for leaf, axis in places]
                larger = [size for size in parted if size > symbol.max]
                if larger:
                    self.leave_beyond(k, min(larger), "")
            differs = next((self.parted_at[place] for place in places if place in self.parted_at), 0)
            if differs:
                self.branching.above(self, k, self.fixes.most_of(probed, k), differs)
