"""What an export learns about dimensions after it was probed: some have to be fixed, some need a larger minimum.

A dimension that makes the model branch, or that an integer depends on in a way nothing explains, is fixed; one that
only fails at a size of 1 gets the smallest size that ran as its minimum. Both are in the contract with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlead.dynamic_shapes import AUTO, LARGEST, STATIC_REQUEST


@dataclass
class Wrong:
    """A setting at which the file differed from eager although the model executed the same operators."""

    values: list[int]  # by symbol
    blamed: list[int]  # symbols
    smallest: bool
    reason: str
    far: bool = False  # far beyond what ran


@dataclass
class Fixes:
    fixed: dict[tuple[int, int], str] = field(default_factory=dict)  # (leaf, axis) -> why
    minimum: dict[tuple[int, int], int] = field(default_factory=dict)
    maximum: dict[tuple[int, int], int] = field(default_factory=dict)
    only: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)  # (leaf, axis) -> symbol, its one size
    notes: list[str] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)  # settings to be solved for as well
    calls: list[list] = field(default_factory=list)  # tensors with other values: runs to be solved for as well
    given_up: list[list[int]] = field(default_factory=list)  # those whose integers nothing explains

    def solve_for(self, error: Exception) -> bool:
        """A setting at which the file was wrong joins the runs, once; wrong there again, it is a discrepancy."""
        values = getattr(error, "values", [])
        if getattr(error, "other_values", None) and not self.calls:
            self.calls.append(error.other_values)
            return True
        if not values or values in self.given_up or any(w.values == values for w in self.wrong):
            return False
        self.wrong.append(Wrong(values, error.blamed, error.smallest, reason_of(error), error.far))
        return True

    def give_up(self, probed) -> bool:
        """Nothing explains the integers at those settings: bounds where only the smallest size fails, else fixes."""
        learnt = []
        for wrong in self.wrong:
            self.given_up.append(wrong.values)
            for k in wrong.blamed:
                if wrong.smallest:
                    least = max(2, probed.symbols[k].tried[0])
                    learnt.append(self.raise_minimum(probed, k, least, wrong.reason))
                elif wrong.far and wrong.values[k] > probed.symbols[k].tried[-1]:
                    learnt.append(self.lower_maximum(probed, k, probed.symbols[k].tried[-1], wrong.reason))
                else:
                    learnt.append(self.fix(probed, k, wrong.reason))
        self.wrong = []
        return any(learnt)

    def apply(self, asked: list[list[tuple]]) -> None:
        """Changes the requests of the next probing."""
        for (leaf, axis), minimum in self.minimum.items():
            kind, name, _, most = asked[leaf][axis]
            asked[leaf][axis] = (kind, name, minimum, most)
        for (leaf, axis), maximum in self.maximum.items():
            kind, name, least, _ = asked[leaf][axis]
            asked[leaf][axis] = (kind, name, least, maximum)
        for (leaf, axis), (name, size) in self.only.items():  # it cannot move, but may be part of a sum
            asked[leaf][axis] = (AUTO, name, size, size)
        for leaf, axis in self.fixed:
            asked[leaf][axis] = STATIC_REQUEST

    def fix(self, probed, symbol: int, reason: str) -> bool:
        places = [place for place in places_of(probed, symbol) if place not in self.fixed]
        self.fixed.update(dict.fromkeys(places, reason))
        return bool(places)

    def bounds(self, probed) -> list[tuple[str, int, int]]:
        """(symbol, min, max) of the sizes outside of which the model is known to do something else."""
        found = []
        for k, symbol in enumerate(probed.symbols):
            units = units_of(probed, k)
            learnt = max((self.minimum.get(place, 1) // unit for place, unit in units.items()), default=1)
            least = symbol.min if symbol.other_below or learnt == 1 else learnt
            most = self.most_of(probed, k)
            if most == LARGEST:  # one that was declared, too: nobody looked beyond it
                most = symbol.max
            if least > 1 or most < LARGEST:
                found.append((symbol.name, least, most))
        return found

    def most_of(self, probed, symbol: int) -> int:
        """The largest size of a symbol that was learnt."""
        if not self.maximum:
            return LARGEST
        units = units_of(probed, symbol).items()
        return min((self.maximum[place] // unit for place, unit in units if place in self.maximum), default=LARGEST)

    def range_of(self, probed, symbol) -> tuple[int, int]:
        """The sizes of a symbol that the contract allows."""
        most = {name: most for name, _, most in self.bounds(probed)}.get(symbol.name, LARGEST)
        return symbol.min, symbol.max if most == LARGEST else most

    def raise_minimum(self, probed, symbol: int, smallest: int, reason: str, note: bool = True) -> bool:
        sizes = {place: smallest * unit for place, unit in units_of(probed, symbol).items()}
        places = [place for place, size in sizes.items() if self.minimum.get(place, 1) < size]
        self.minimum.update((place, sizes[place]) for place in places)
        if places and note:
            self.notes.append(f"the file refuses {probed.symbols[symbol].name} below {smallest}: {reason}")
        return bool(places)

    def lower_maximum(self, probed, symbol: int, largest: int, reason: str) -> bool:
        sizes = {place: largest * unit for place, unit in units_of(probed, symbol).items()}
        places = [place for place, size in sizes.items() if self.maximum.get(place, LARGEST) > size]
        self.maximum.update((place, sizes[place]) for place in places)
        if places:
            self.notes.append(f"the file refuses {probed.symbols[symbol].name} above {largest}: {reason}")
        return bool(places)


def places_of(probed, symbol: int) -> list[tuple[int, int]]:
    """(leaf, axis) of the dimensions that are this symbol, or a multiple of it."""
    return list(units_of(probed, symbol))


def units_of(probed, symbol: int) -> dict[tuple[int, int], int]:
    """The same, each with times what it is the symbol."""
    if _units[0] is not probed:  # asked for every symbol again and again, of calls of thousands of inputs
        found: dict[str, dict[tuple[int, int], int]] = {}
        for leaf, shape in enumerate(probed.shapes):
            for axis, text in enumerate(shape):
                factor, _, _ = text.partition("*")
                for name in {text, factor, text.rpartition("*")[2]}:
                    found.setdefault(name, {})[leaf, axis] = int(factor) if factor.isdigit() else 1
        _units[:] = probed, found
    return _units[1].get(probed.symbols[symbol].name, {})


_units: list = [None, {}]  # the experiment that was asked about last: by name, places and factors


def changed(setting: list[int], k: int, size: int) -> list[int]:
    """A setting but for symbol k."""
    return [size if i == k else v for i, v in enumerate(setting)]


def setting_of(probed, sizes: list[list[int]]) -> list[int] | None:
    """The value of every symbol in a call of these sizes; None where the call does not fit the symbols."""
    setting = []
    for symbol in probed.symbols:
        seen = [
            sizes[leaf][axis] // int(text.removesuffix(f"*{symbol.name}") if "*" in text else 1)
            for leaf, shape in enumerate(probed.shapes)
            for axis, text in enumerate(shape)
            if text == symbol.name or (text.endswith(f"*{symbol.name}") and text.split("*")[0].isdigit())
        ]
        if not seen or not seen[0]:
            return None
        setting.append(seen[0])
    return setting if probed.sizes_at(setting) == sizes else None


def reason_of(error: Exception) -> str:
    """The part of an error that says what happened."""
    text = str(error).split("] ", 1)[-1].split(". No file", 1)[0].split(". Fix the", 1)[0]
    return text.split(", but ", 1)[-1]
