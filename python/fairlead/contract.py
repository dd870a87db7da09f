"""The contract of an export in words: symbols, shapes, what is fixed and why, what was assumed, what was checked.

Its rows are frozen dataclasses, and mappings as well: `row.name` and `row["name"]` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fairlead._core import Expr

LAYER = re.compile(r"\.\d+\.")  # in the name of a leaf
LARGEST = 2**63 - 1  # the largest size of a symbol that has none


class Row(Mapping[str, Any]):
    """Fields by name; those that are None are not there."""

    def __getitem__(self, key: str) -> Any:
        found = getattr(self, key, None) if key in self.__dict__ else None
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name, value in self.__dict__.items() if value is not None)

    def __len__(self) -> int:
        return sum(value is not None for value in self.__dict__.values())


@dataclass(frozen=True, eq=False)
class Symbol(Row):
    """A size that may vary."""

    name: str
    tried: Sequence[int]  # sizes at which the model ran
    min: int
    max: int  # LARGEST where it has no bound
    where: str  # "axis 0 of input_ids"


@dataclass(frozen=True, eq=False)
class Tensor(Row):
    """An input or an output of the file."""

    name: str
    dtype: str
    shape: Sequence[str]  # expressions of the symbols: ["batch", "sequence + past", "64"]

    def at(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Its shape at these sizes, given by symbol."""
        return tuple(Expr(text).evaluate(dict(sizes)) for text in self.shape)


@dataclass(frozen=True, eq=False)
class FixedDim(Row):
    """A dimension of an input that has one size, and why."""

    name: str
    axis: int
    size: int
    reason: str
    branches: bool | None = None  # another size leads to other operators


@dataclass(frozen=True, eq=False)
class Check(Row):
    """One call at which the file was compared with PyTorch."""

    kind: str  # "example", "call" (another one that was given), "values", "unseen" (sizes), "branch", "quantized"
    sizes: Mapping[str, int]  # by symbol
    output: str  # that differs most
    scaled: float  # its difference in proportion to its largest value
    abs: float
    ok: bool
    problem: str  # in words, "" where there is none
    scale: float | None = None  # the largest value
    tolerance: float | None = None  # for `scaled`
    variation: str | None = None  # which other values were tried, in words
    not_finite: bool | None = None  # NaN or infinite on one side only
    failed: bool | None = None  # one side computed nothing
    eager_seconds: float | None = None
    ort_seconds: float | None = None


# The kind of fusion after which a prompt's rows have to begin at the same position.
SHARED_CACHE = "shared cache"
SAME_POSITIONS = "RotaryEmbedding in GroupQueryAttention"


@dataclass(frozen=True, eq=False)
class Fusion(Row):
    """Operators of ONNX Runtime that stand for several of the model's."""

    kind: str  # "GroupQueryAttention"
    count: int  # how often it is in the file
    refused: Mapping[str, int]  # why it is not, and how often
    requires: str | None = None  # of sizes: the file stops otherwise


@dataclass(frozen=True, eq=False)
class Function(Row):
    """A function of the file: what several modules compute."""

    name: str  # "LlamaDecoderLayer"
    modules: str  # "model.layers.*"
    calls: int
    nodes: int  # of one call


@dataclass
class Contract:
    symbols: list[Symbol] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    fixed: list[FixedDim] = field(default_factory=list)
    assumptions: list[dict[str, Any]] = field(default_factory=list)  # kind, what, module, source, count
    ignored: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    required: list[str] = field(default_factory=list)  # of sizes and values that were read: the file stops otherwise
    computed_in: list[str] = field(default_factory=list)  # by output: the lowest precision that went into it
    drawn: dict[str, list[int]] = field(default_factory=dict)  # output drawn at each run -> axes of drawn sizes
    quantized: Any = None  # fairlead.quantize.Quantized or Kept
    fused: list[Fusion] | None = None  # None: the file is not for one runtime alone
    static_cache: int | None = None  # layers whose cache is a buffer in a portable file; None: not asked for
    functions: list[Function] | None = None  # None: they were not asked for
    verified: str = "not verified"
    proven: bool = False  # a tracer proved that the program is the same at every size

    def add_reserves(self, found: Any) -> None:
        """What the checks do not prove (`_core.Reserves`)."""
        self.notes += found.notes
        for row in found.assumed:
            what = {"kind": row.kind, "what": row.what, "module": "", "source": row.source, "count": 1}
            self.assumptions.append(what)

    def __str__(self) -> str:
        return self.text()

    def text(self, checked: bool = True) -> str:
        """In words. A file carries them without the last line: it is checked after it was written."""
        lines = ["Symbols"]
        if not self.symbols:
            lines.append("  none: every dimension is fixed")
        for s in self.symbols:
            bounds = ""
            if s.min > 1 or s.max < LARGEST:
                bounds = f", allowed {s.min} to {'any' if s.max >= LARGEST else s.max}"
            lines.append(f"  {s.name}: from {s.where}; ran at {', '.join(map(str, s.tried))}{bounds}")
        for title, rows in (("Inputs", self.inputs), ("Outputs", self.outputs)):
            lines.append(title)
            for names, dtype, shape in grouped(rows):
                lines.append(f"  {names}: {dtype}[{', '.join(shape)}]")
        if self.fixed:
            lines.append("Fixed")
            for where, size, reason in grouped_fixed(self.fixed):
                lines.append(f"  {where} = {size}: {reason}")
        if self.assumptions:
            lines.append("Assumptions")
            for a in self.assumptions:
                lines.append(f"  {a['what']} (in {a['module'] or 'the model'} at {a['source']}){times(a)}")
        for name in self.ignored:
            lines.append(f"Ignored input: {name} does not change any output")
        for name in self.written:
            lines.append(f"Written by the model: {name}")
        if self.fused is not None:
            lines += fused_words(self.fused)
        if self.quantized is not None:
            lines += self.quantized.words()
        if self.functions is not None:
            lines += function_words(self.functions)
        lines += [f"Note: {note}" for note in self.notes]
        if self.symbols and not self.proven:
            lines.append("Assumed: at sizes that were not tried the model executes the same operators")
        if checked:
            lines.append(f"Checked: {self.verified}")
        return "\n".join(lines)


def has_shared_cache(contract: Contract) -> bool:
    """Whether past and present of the file may be the same memory."""
    return bool(contract.static_cache) or any(row.kind == SHARED_CACHE and row.count for row in contract.fused or [])


def fused_words(rows: Sequence[Fusion]) -> list[str]:
    """What was fused, what was not and why: never silent."""
    lines = ["Fused for ONNX Runtime"]
    if not any(row.count for row in rows):
        lines.append("  nothing: the file has standard operators alone")
    for row in rows:
        if row.count:
            lines.append(f"  {row.kind}: {row.count} times" if row.count > 1 else f"  {row.kind}: once")
        if row.requires is not None:
            lines.append(f"    for {row.requires}; the file stops elsewhere")
        for why, count in row.refused.items():
            lines.append(f"  {row.kind} refused{f' {count} times' if count > 1 else ''}: {why}")
    return lines


def function_words(rows: Sequence[Function]) -> list[str]:
    if not rows:
        return ["Functions", "  none: no two modules of a list compute the same of their inputs"]
    return ["Functions", *(f"  {row.name} is {row.modules}: {row.calls} calls of {row.nodes} nodes" for row in rows)]


def times(assumption: Mapping[str, Any]) -> str:
    return f", {assumption['count']} times" if assumption.get("count", 1) > 1 else ""


def grouped(rows: Iterable[Tensor]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Leaves that differ only in a layer number are one line: past_key_values.{0..31}.key."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for row in rows:
        pattern = LAYER.sub(".#.", row.name) if row.name.count(".") > 1 else row.name
        key = (pattern, row.dtype, tuple(row.shape))
        groups.setdefault(key, []).append(row.name)
    return [(together(pattern, names), dtype, shape) for (pattern, dtype, shape), names in groups.items()]


def fixed_together(rows: Iterable[FixedDim]) -> list[FixedDim]:
    """Rows of fixed dimensions that differ only in a layer number are one row."""
    groups: dict[tuple[int, str, int, str], list[FixedDim]] = {}
    for row in rows:
        key = (row.axis, LAYER.sub(".#.", row.name), row.size, row.reason)
        groups.setdefault(key, []).append(row)
    return [replace(found[0], name=together(key[1], [r.name for r in found])) for key, found in groups.items()]


def grouped_fixed(rows: Iterable[FixedDim]) -> list[tuple[str, int, str]]:
    return [(f"axis {row.axis} of {row.name}", row.size, row.reason) for row in fixed_together(rows)]


def together(pattern: str, names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    numbers = [int(m.group(1)) for m in (re.search(r"\.(\d{1,9})\.", n) for n in names) if m]
    if len(numbers) < len(names):  # the same name several times: no file of ours
        return f"{names[0]} ({len(names)} times)"
    return pattern.replace(".#.", f".{{{min(numbers)}..{max(numbers)}}}.", 1)


def merged(assumptions: Iterable[tuple[str, str, str, str]]) -> list[dict[str, Any]]:
    """The same assumption at one line of the model, counted. A random one is given as the operator that draws."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for kind, what, module, source in assumptions:
        key = (kind, what, source)
        if key in found:
            found[key]["count"] += 1
        else:
            found[key] = {"kind": kind, "what": what, "module": module, "source": source, "count": 1}
            if kind == "random":
                found[key] |= {"what": f"{what} draws random numbers", "operator": what}
    return list(found.values())
