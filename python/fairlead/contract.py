"""The contract of an export in words: symbols, shapes, what is fixed and why, what was assumed, what was checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LARGEST = 2**63 - 1  # the largest size of a symbol that has none


@dataclass
class Contract:
    symbols: list[dict] = field(default_factory=list)  # name, tried, min, max, where
    inputs: list[dict] = field(default_factory=list)  # name, dtype, shape
    outputs: list[dict] = field(default_factory=list)
    fixed: list[dict] = field(default_factory=list)  # name, axis, size, reason, branches
    assumptions: list[dict] = field(default_factory=list)  # kind, what, module, source
    ignored: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    required: list[str] = field(default_factory=list)  # of sizes and values that were read: the file stops otherwise
    computed_in: list[str] = field(default_factory=list)  # by output: the lowest precision that went into it
    drawn: dict[str, list[int]] = field(default_factory=dict)  # output drawn at each run -> axes of drawn sizes
    verified: str = "not verified"
    proven: bool = False  # a tracer proved that the program is the same at every size

    def __str__(self) -> str:
        return self.text()

    def text(self, checked: bool = True) -> str:
        """In words. A file carries them without the last line: it is checked after it was written."""
        lines = ["Symbols"]
        if not self.symbols:
            lines.append("  none: every dimension is fixed")
        for s in self.symbols:
            bounds = ""
            if s["min"] > 1 or s["max"] < LARGEST:
                bounds = f", allowed {s['min']} to {'any' if s['max'] >= LARGEST else s['max']}"
            lines.append(f"  {s['name']}: from {s['where']}; ran at {', '.join(map(str, s['tried']))}{bounds}")
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
        lines += [f"Note: {note}" for note in self.notes]
        if self.symbols and not self.proven:
            lines.append("Assumed: at sizes that were not tried the model executes the same operators")
        if checked:
            lines.append(f"Checked: {self.verified}")
        return "\n".join(lines)


def times(assumption: dict) -> str:
    return f", {assumption['count']} times" if assumption.get("count", 1) > 1 else ""


def grouped(rows: list[dict]) -> list[tuple]:
    """Leaves that differ only in a layer number are one line: past_key_values.{0..31}.key."""
    groups: dict[tuple, list[str]] = {}
    for row in rows:
        key = (re.sub(r"\.\d+\.", ".#.", row["name"]), row["dtype"], tuple(row["shape"]))
        groups.setdefault(key, []).append(row["name"])
    return [(together(pattern, names), dtype, shape) for (pattern, dtype, shape), names in groups.items()]


def fixed_together(rows: list[dict]) -> list[dict]:
    """Rows of fixed dimensions that differ only in a layer number are one row."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        key = (row["axis"], re.sub(r"\.\d+\.", ".#.", row["name"]), row["size"], row["reason"])
        groups.setdefault(key, []).append(row)
    return [found[0] | {"name": together(key[1], [r["name"] for r in found])} for key, found in groups.items()]


def grouped_fixed(rows: list[dict]) -> list[tuple]:
    return [(f"axis {row['axis']} of {row['name']}", row["size"], row["reason"]) for row in fixed_together(rows)]


def together(pattern: str, names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    numbers = [int(m.group(1)) for m in (re.search(r"\.(\d{1,9})\.", n) for n in names) if m]
    if len(numbers) < len(names):  # the same name several times: no file of ours
        return f"{names[0]} ({len(names)} times)"
    return pattern.replace(".#.", f".{{{min(numbers)}..{max(numbers)}}}.", 1)


def merged(assumptions: list[tuple]) -> list[dict]:
    """The same assumption at one line of the model, counted."""
    found: dict[tuple, dict] = {}
    for kind, what, module, source in assumptions:
        key = (kind, what, source)
        if key in found:
            found[key]["count"] += 1
        else:
            found[key] = {"kind": kind, "what": what, "module": module, "source": source, "count": 1}
    return list(found.values())
