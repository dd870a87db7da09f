"""The other side of every question that a model asked about its sizes. A part of the export (pipeline.py).

A program holds where its guards have the answers they had. For each, the experiment goes to the nearest sizes with the
other answer and runs the model there:

1. The same operators: the run is solved with the others, and the question decides nothing but numbers.
2. Others, at every size beyond: the guard is a bound, and what lies beyond it a branch of the file.
3. Others, here and there (n % 2, n == 37, n < m): the file requires the guard, and holds the other program besides.
4. Refused by the model, or too large to try: the file refuses it too, with the reason in the contract.
"""

from __future__ import annotations

import math
import time
from typing import Any

from fairlead.fixes import Fixes, changed, places_of, units_of
from fairlead.inputs import Call

ROUNDS = 6  # what is learnt on the other side of a guard may ask further questions
MOST_TRIED = 48  # guards of one program
MOST_SECONDS = 6.0  # for them
FAR_VOLUME = 1 << 18  # elements of the inputs of a run for integers that are only fitted
FAR_SECONDS = 2.0
QUICK = 0.03  # seconds of a run that is worth a few more beside it
LARGEST_TRIAL = 1 << 26  # elements of the inputs


class Guards:
    call: Call
    fixes: Fixes
    probed: Any
    session: Any
    branching: Any
    options: dict

    def settle_guards(self, program: Any, solve: Any) -> Any:
        """The program, solved again with the runs from the other sides, and with what it requires."""
        with self.session:
            return self.settled_program(program, solve, set())

    def settled_program(self, program: Any, solve: Any, asked: set[tuple]) -> Any:
        start = time.monotonic()
        if self.go_far(bool(program.fitted)):
            program = solve()
        for _ in range(ROUNDS):
            learnt = False
            guards = program.guards
            for flip in program.flips(self.symbol_ranges()):
                once = (flip.key, flip.symbol, tuple(flip.setting))
                late = len(asked) >= MOST_TRIED or time.monotonic() - start > MOST_SECONDS
                if late or once in asked or flip.key in self.required:
                    continue
                asked.add(once)
                _, source, kind = guards[flip.guard]
                learnt |= self.settle(flip, source, kind == "rival")
            for setting in program.thin:
                once = ("", -1, tuple(setting))
                if once not in asked and time.monotonic() - start <= MOST_SECONDS:
                    asked.add(once)
                    learnt |= self.go_around(setting)
            if not learnt:
                break
            program = solve()
        done = set()
        for flip in program.flips(self.symbol_ranges()):
            _, source, kind = program.guards[flip.guard]
            once = (flip.key, flip.symbol, tuple(flip.setting))
            if once not in asked and kind != "rival" and flip.key not in self.required:
                self.required[flip.key] = "not tried"
                self.fixes.notes.append(f"the file refuses {flip.key}, asked at {source}: it was not tried")
            if flip.key in self.required and flip.key not in done:
                done.add(flip.key)
                if not program.require(flip):
                    self.fixes.notes.append(
                        f"at {flip.key} (asked at {source}) the file may differ: {self.required[flip.key]}"
                    )
        for words, source, kind in program.guards:
            if kind == "value":  # nothing was found on its other side, and the file stops there
                self.fixes.notes.append(f"the file requires {words}, which the model asks at {source}")
        return program

    def go_far(self, fitted: bool) -> bool:
        """Runs at sizes far from those that ran: where an integer only fits the runs, it may be another one there. True
        where there are any."""
        start, before = time.monotonic(), len(self.crossed)
        for setting in self.probed.far_settings(11):
            sizes = self.probed.sizes_at(setting)
            if sum(math.prod(s) for s in sizes) > FAR_VOLUME:
                continue
            if time.monotonic() - start > (FAR_SECONDS if fitted else FAR_SECONDS / 20):
                break
            outcome = self.try_at(sizes)
            if outcome.ok:
                self.crossed.append((outcome.run, list(setting)))
            # Where the model refuses, or executes other operators for no reason that it told, it is left to
            # verification.
        return len(self.crossed) > before

    def go_further(self, flip: Any) -> None:
        """A number that forgot where it comes from looks like a constant where one run alone is on that side."""
        if flip.symbol >= 0:
            size, base = flip.setting[flip.symbol], self.probed.run_values[0][flip.symbol]
            others = (size + 1, size + 5, 2 * size + 1) if size > base else (size - 1, size - 3, size // 2)
            self.go_beside(flip.setting, flip.symbol, others)

    def go_around(self, setting: list[int]) -> bool:
        """True where there is another run at sizes beside these."""
        before = len(self.crossed)
        for k, size in enumerate(setting):
            self.go_beside(setting, k, (size + 1, size - 1, size + 2, size // 2))
        return len(self.crossed) > before

    def go_beside(self, setting: list[int], k: int, others: tuple[int, ...]) -> None:
        least, most = self.symbol_ranges()[k]
        for other in others:
            there = changed(setting, k, other)
            sizes = self.probed.sizes_at(there)
            if max(1, least) <= other <= most and sum(math.prod(s) for s in sizes) <= FAR_VOLUME:
                outcome = self.try_at(sizes)
                if outcome.ok:
                    self.crossed.append((outcome.run, there))

    def try_at(self, sizes: list[list[int]]) -> Any:
        tensors = self.tensors_at(sizes)
        heavy = sum(math.prod(s) for s in sizes) > FAR_VOLUME
        return self.session.run_cheaply(lambda: self.call.with_tensors(tensors), self.probed.runs[0], heavy)

    def symbol_ranges(self) -> list[tuple[int, int]]:
        return [self.fixes.range_of(self.probed, s) for s in self.probed.symbols]

    def settle(self, flip: Any, source: str, ours: bool) -> bool:
        """Runs the model there. True where another run is to be solved."""
        sizes = self.probed.sizes_at(flip.setting)
        if ours:
            outcome = self.try_at(sizes)
            if outcome.ok:
                self.crossed.append((outcome.run, list(flip.setting)))
            return outcome.ok
        if sum(math.prod(s) for s in sizes) > LARGEST_TRIAL:
            return self.stop_before(flip, f"{flip.key} ({source}) is too large to be tried", False)
        began = time.monotonic()
        outcome = self.try_at(sizes)
        if outcome.ok:
            self.crossed.append((outcome.run, list(flip.setting)))
            if time.monotonic() - began < QUICK:
                self.go_further(flip)
            return True
        if outcome.parted is not None:
            _, before, now = outcome.parted
            return self.stop_before(flip, f"the model executes {now} instead of {before}", True)
        return self.stop_before(flip, f"the model refuses it: {outcome.error}", False)

    def stop_before(self, flip: Any, why: str, other: bool) -> bool:
        """The program ends at that guard: a bound of a symbol, or a requirement of the file."""
        k, setting = flip.symbol if flip.bound else -1, flip.setting
        symbols = self.probed.symbols
        if k >= 0 and setting[k] > symbols[k].tried[-1]:
            self.end_at(k, setting[k] - 1, setting[k] if other else 0, why)
        elif k >= 0 and setting[k] < symbols[k].tried[0]:
            if not (other and self.branching.open and self.branching.below(self, k, setting[k] + 1, why)):
                self.fixes.notes.append(f"the file refuses {symbols[k].name} below {setting[k] + 1}: {why}")
            self.raise_minimum(k, setting[k] + 1, why, note=False)
        else:
            self.required[flip.key] = why
            if not (other and self.branching.open and self.branching.aside(self, setting, flip.key, why)):
                self.fixes.notes.append(f"the file refuses {flip.key}: {why}")
        return False

    def end_at(self, k: int, most: int, size: int, why: str) -> None:
        probed = self.probed
        probed.bound(k, 1, most)
        self.fixes.maximum.update((place, most * unit) for place, unit in units_of(probed, k).items())
        places = places_of(probed, k)
        if size and self.branching.open and not any(place in self.parted_at for place in places):
            self.parted_at.update(dict.fromkeys(places, size))
            self.branching.above(self, k, most, size)
        else:
            self.fixes.notes.append(f"the file refuses {probed.symbols[k].name} above {most}: {why}")
