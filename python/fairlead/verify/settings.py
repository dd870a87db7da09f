"""The calls at which a file is checked, made from the example: other sizes, other values, other integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from fairlead.tree.calls import Call, moved
from fairlead.tree.values import Variation, alone, every_variation


@dataclass
class Setting:
    """One call to check: its tensors, in words, and by symbol where sizes were chosen."""

    kind: str  # "example", "call" (another one the user gave), "values" (other ones at the example's sizes), "unseen"
    words: str
    tensors: list[torch.Tensor]
    sizes: dict[str, int] = field(default_factory=dict)
    variation: Variation | None = None
    expected: list[torch.Tensor] | None = None  # what eager computes, where the file computes something else
    got: list[Any] | None = None  # what the file computes there

    @property
    def made_up(self) -> bool:
        return self.kind in ("values", "unseen")


class Settings:
    """Makes them as they are asked for (`_core.Check`)."""

    def __init__(
        self, calls: list[Call], probed: Any, names: list[str], within: Callable[[dict[str, int]], dict[str, int]],
        elsewhere: bool,
    ):  # fmt: skip
        self.calls, self.probed, self.names, self.within = calls, probed, names, within
        self.elsewhere = elsewhere  # a place that was read may be another one: floats are moved
        self.other_values: list[Variation] = []
        self.further_values = every_variation(self.example)
        self.last: tuple[Any, Setting | None] = (None, None)

    @property
    def example(self) -> list[torch.Tensor]:
        return self.calls[0].tensors

    def of(self, step: Any) -> Setting | None:
        """None where there are no more other values. What is asked about the last one is about the same tensors."""
        key = (step.kind, step.number, step.part, step.values, step.seed, step.how)
        if self.last[0] != key:
            self.last = (key, self.made(step))
        return self.last[1]

    def made(self, step: Any) -> Setting | None:
        if step.kind == "call":
            return self.of_call(step.number)
        if step.kind == "sizes":
            return self.at(step.values, step.seed, step.how == "integers")
        more = step.number + 1 - len(self.other_values)
        self.other_values += itertools.islice(self.further_values, max(0, more))
        if step.number >= len(self.other_values):
            return None
        variation = self.other_values[step.number]
        if step.part >= 0:
            variation = self.parts(variation)[step.part]
        words = f"the example's sizes with other values ({variation.words})"
        return Setting("values", words, variation.tensors, self.symbols_of(self.example), variation)

    def parts(self, variation: Variation) -> list[Variation]:
        return alone(self.example, self.names, variation)

    def of_call(self, number: int) -> Setting:
        words = "the example's sizes" if len(self.calls) == 1 else f"the sizes of example {number}"
        tensors = self.calls[number].in_order_of(self.calls[0])
        return Setting("call" if number else "example", words, tensors, self.symbols_of(tensors))

    def at(self, values: list[int], seed: int, example_integers: bool = False) -> Setting:
        sizes = self.within({s.name: v for s, v in zip(self.probed.symbols, values, strict=True)})
        shapes = self.probed.sizes_at(list(sizes.values()))
        tensors = self.calls[0].varied_at(shapes, seed)
        if example_integers:
            tensors = with_integers_of(self.calls[0].at(shapes), tensors)
        elif self.elsewhere:
            tensors = [moved(t) for t in tensors]
        return Setting("unseen", ", ".join(f"{k} = {v}" for k, v in sizes.items()), tensors, sizes)

    def symbols_of(self, tensors: list[torch.Tensor]) -> dict[str, int]:
        """The sizes of a call by symbol; {} where its shapes are not those of the contract."""
        found: dict[str, int] = {}
        for shape, sizes in dict.fromkeys(zip(self.probed.shapes, (t.shape for t in tensors), strict=True)):
            for size, n in zip(shape, sizes, strict=True):
                found.update({name: n for name in size.symbols if size.unit(name) == 1})
        values = [found.get(symbol.name, -1) for symbol in self.probed.symbols]
        if min(values, default=-1) < 1 or self.probed.sizes_at(values) != [t.shape for t in tensors]:
            return {}
        return dict(zip((s.name for s in self.probed.symbols), values, strict=True))


def with_integers_of(example: list[torch.Tensor], varied: list[torch.Tensor]) -> list[torch.Tensor]:
    """The varied floats, and everything else of the example; floats that are all zeros may be a state."""
    return [v if t.is_floating_point() and bool(t.any()) else t for t, v in zip(example, varied, strict=True)]
