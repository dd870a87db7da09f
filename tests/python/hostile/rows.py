"""A row of the table: a model, its inputs by kind, so that others of any size can be made, and what to try.

    row("slices", "last twelve", lambda x: x[:, -12:].mean(1), floats(3, 6, 4))

Inputs of other sizes keep their kind: ids stay below `high`, lengths within the axis they count, masks prefixes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

MODES = ("plain", "negative", "small", "large", "zero", "low", "high")


@dataclass
class Kind:
    """One tensor input: its example's shape and what its values are."""

    shape: tuple[int, ...]
    what: str = "floats"  # floats, unit, ids, lengths, mask, bools, positions
    high: int = 50  # ids are below it
    low: int = 0
    of: tuple[int, int] = (0, 1)  # lengths and masks: (input, axis) that they count; axis -1 for the last
    dtype: torch.dtype = torch.float32

    def make(self, shape: tuple[int, ...], seed: int, mode: str, shapes: list) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        if self.what in ("floats", "unit"):
            return self.make_floats(shape, generator, mode)
        if self.what == "bools":
            drawn = torch.rand(shape, generator=generator) > 0.5
            return {"zero": drawn & False, "low": drawn & False, "high": drawn | True}.get(mode, drawn)
        if self.what == "positions":
            return torch.arange(shape[-1], dtype=self.dtype).expand(shape).clone()
        if self.what == "mask":  # a prefix of every row
            lengths = self.counts((*shape[:-1], 1), shape[-1], generator, mode)
            return (torch.arange(shape[-1]) < lengths).to(self.dtype)
        if self.what == "lengths":
            leaf, axis = self.of
            return self.counts(shape, shapes[leaf][axis], generator, mode).to(self.dtype)
        low = self.low
        drawn = torch.randint(low, self.high, shape, generator=generator)
        if mode in ("zero", "low"):
            drawn = torch.full(shape, low)
        elif mode == "high":
            drawn = torch.full(shape, self.high - 1)
        return drawn.to(self.dtype)

    def make_floats(self, shape, generator, mode) -> torch.Tensor:
        drawn = (
            torch.rand(shape, generator=generator) if self.what == "unit" else torch.randn(shape, generator=generator)
        )
        if self.what == "floats":
            drawn = {"negative": -drawn.abs(), "large": drawn * 30}.get(mode, drawn)
        drawn = {"small": drawn * 1e-3, "zero": drawn * 0}.get(mode, drawn)
        return torch.complex(drawn, drawn.flip(-1)) if self.dtype.is_complex else drawn.to(self.dtype)

    def counts(self, shape, most: int, generator, mode) -> torch.Tensor:
        low = min(max(1, self.low), most)
        drawn = torch.randint(low, most + 1, shape, generator=generator)
        if mode in ("zero", "low"):
            return torch.full(shape, low)
        return torch.full(shape, most) if mode == "high" else drawn


def floats(*shape, dtype=torch.float32) -> Kind:
    return Kind(shape, "floats", dtype=dtype)


def unit(*shape) -> Kind:
    return Kind(shape, "unit")


def ids(*shape, high=50, low=0, dtype=torch.int64) -> Kind:
    return Kind(shape, "ids", high=high, low=low, dtype=dtype)


def lengths(*shape, of=(0, 1), low=1, dtype=torch.int64) -> Kind:
    return Kind(shape, "lengths", of=of, low=low, dtype=dtype)


def mask(*shape, dtype=torch.int64, low=1) -> Kind:
    return Kind(shape, "mask", dtype=dtype, low=low)


def bools(*shape) -> Kind:
    return Kind(shape, "bools", dtype=torch.bool)


def positions(*shape) -> Kind:
    return Kind(shape, "positions", dtype=torch.int64)


@dataclass
class Row:
    family: str
    name: str
    build: Callable[[], torch.nn.Module]
    inputs: Any  # a tuple or a dict of Kinds, lists and dicts of them, and plain values
    options: dict = field(default_factory=dict)  # of export
    largest: int = 1025  # a size beyond which eager itself is too slow
    source: str = ""
    tolerance: float = 1.0  # times the usual one
    mentions: str = ""  # what the contract has to say, as a pattern

    @property
    def id(self) -> str:
        return f"{self.family}: {self.name}"

    @property
    def kinds(self) -> list[Kind]:
        return [leaf for leaf in leaves(self.inputs) if isinstance(leaf, Kind)]

    def call(self, shapes: list | None = None, seed: int = 0, mode: str = "plain") -> Any:
        """Inputs of these shapes, by leaf; the example's without."""
        kinds = self.kinds
        shapes = [tuple(s) for s in shapes] if shapes is not None else [k.shape for k in kinds]
        pairs = enumerate(zip(kinds, shapes, strict=True))
        made = [kind.make(shape, seed * 97 + at, mode, shapes) for at, (kind, shape) in pairs]
        return rebuilt(self.inputs, iter(made))


ROWS: list[Row] = []


class Function(torch.nn.Module):
    """A function as a model; its parameters are the inputs' names."""

    def __init__(self, fn):
        super().__init__()
        self.forward = fn


def row(family: str, name: str, model: Callable, *inputs: Any, **fields: Any) -> None:
    """Adds a row: `model` is a function of the inputs, or a class of modules that is made without arguments."""
    if isinstance(model, type):

        def build() -> torch.nn.Module:
            torch.manual_seed(0)
            return model().eval()
    else:

        def build() -> torch.nn.Module:
            return Function(model).eval()

    given = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], dict) else inputs
    ROWS.append(Row(family, name, build, given, **fields))


def leaves(value: Any) -> list:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [value]


def rebuilt(value: Any, made) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[rebuilt(item, made) for item in value])
    if isinstance(value, (tuple, list)):
        return type(value)(rebuilt(item, made) for item in value)
    if isinstance(value, dict):
        return {key: rebuilt(item, made) for key, item in value.items()}
    return next(made) if isinstance(value, Kind) else value


def numel(shapes) -> int:
    return sum(math.prod(s) for s in shapes)
