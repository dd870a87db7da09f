"""The figures of checks, kept until it is known which of them are rows of the contract; and these in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from fairlead.verify.draws import Draws

MOST_SHOWN = 8  # sizes in the words of a contract
CHOSEN = ("unseen", "branch")  # rows of sizes that were made up; a branch is another program of the file


@dataclass
class Measured:
    """The figures of one check, and its tensors where file and eager are not equal."""

    program: int
    row: dict[str, Any]
    tensors: list[torch.Tensor] | None = None


def rows_of(measured: list[Measured], judged: Iterable[tuple[int, bool, str]]) -> list[dict[str, Any]]:
    """(number, whether it is right, and why although it differs) -> rows."""
    rows = []
    for number, right, excuse in judged:
        row = measured[number].row
        if right and not row["ok"]:
            row = row | {"ok": True, "problem": ""} | ({"scaled": 0.0} if excuse == "overflows" else {})
        rows.append(row)
    return rows


def in_words(rows: list[dict[str, Any]], runtime: str, examples: int, outputs: int, draws: Draws | None) -> str:
    """For the last line of the contract."""
    worst = max((r["scaled"] for r in rows), default=0.0)
    chosen = [", ".join(f"{k}={v}" for k, v in r["sizes"].items()) for r in rows if r["kind"] in CHOSEN]
    unseen = "; ".join(chosen[:MOST_SHOWN])
    if len(chosen) > MOST_SHOWN:
        unseen += f" and {len(chosen) - MOST_SHOWN} more"
    where = "at the example" if examples == 1 else f"at the {examples} examples"
    values = sum(r["kind"] == "values" for r in rows)
    if values:
        where += f", with {values} other values" if values > 1 else ", with other values"
    what = f"worst difference {worst:.2g} in {len(rows)} runs"
    if draws:
        what = f"{what}; {draws.in_words()}" if len(draws.axes) < outputs else draws.in_words()
    return f"in {runtime} {where}" + (f" and at {unseen}" if unseen else "") + f": {what}"
