"""Where things stand in the pictures of a report: bars in percent, differences on a logarithmic axis."""

from __future__ import annotations

import math
from typing import Any

STAGES = ("probe", "solve", "lower", "write", "verify")


def time_bar(timings: dict[str, float]) -> list[dict[str, Any]]:
    """One segment per stage in percent of all; what no stage accounts for is "other"."""
    total = timings.get("total") or sum(timings.values())
    named = {k: v for k, v in timings.items() if k != "total"}
    rest = total - sum(named.values())
    rows = sorted(named.items(), key=lambda item: STAGES.index(item[0]) if item[0] in STAGES else len(STAGES))
    if rest > 0.01 * total:
        rows.append(("other", rest))
    return [
        {"name": name, "seconds": seconds, "percent": 100 * seconds / total if total else 0.0, "color": k % 6}
        for k, (name, seconds) in enumerate(rows)
    ]


def number(value: Any) -> float:
    """A difference as it was kept: JSON has infinities and NaN as strings."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


LEFT_OUT = {"tolerance": 0.0, "problem": "", "variation": "", "output": ""}  # what a record may lack


def differences(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The axis and a place for each row, in percent; what is exactly 0 stands at its left end."""
    if not rows:
        return None
    found = [(number(row.get("scaled", 0.0)), number(row.get("tolerance", 0.0))) for row in rows]
    shown = [x for pair in found for x in pair if 0 < x < math.inf]
    low = math.floor(math.log10(min([*shown, 1e-7]))) - 1
    high = math.ceil(math.log10(max([*shown, 1e-3])) + 0.3)

    def place(x: float) -> float:
        if not math.isfinite(x):
            return 98.0
        if x <= 0:
            return 1.5
        return round(6 + 90 * (math.log10(x) - low) / (high - low), 2)

    marks = []
    for row, (scaled, tolerance) in zip(rows, found, strict=True):
        marks.append({
            "row": LEFT_OUT | row, "x": place(scaled), "text": difference_text(scaled, row),
            "ok": bool(row.get("ok", True)),
            "tolerance": place(tolerance) if 0 < tolerance < math.inf else None, "kind": row.get("kind", ""),
            "at": ", ".join(f"{k} = {v}" for k, v in row.get("sizes", {}).items()),
        })  # fmt: skip
    step = max(1, math.ceil((high - low) / 6))
    ticks = [{"x": place(10.0**k), "text": f"1e{k}"} for k in range(low + 1, high + 1, step)]
    limits = sorted({tolerance for _, tolerance in found if 0 < tolerance < math.inf})
    return {"marks": marks, "ticks": ticks, "tolerances": limits}


def difference_text(scaled: float, row: dict[str, Any]) -> str:
    if not math.isfinite(scaled):
        return row.get("problem") or "not finite"
    return "exact" if not scaled else f"{scaled:.1e}" if scaled < 0.01 else f"{scaled:.3g}"
