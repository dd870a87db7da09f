"""What an export keeps for its report: facts in the file's own metadata, and times in a file beside it.

1. `fairlead.report` in the metadata is JSON: model, versions, contract, differences. It does not change from one export
   to the next of the same model, so that the same model gives the same bytes.
2. Times do change. `keep_times` writes them beside the model (`model.onnx.fairlead.json`); the command line does.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from typing import Any

from fairlead import _core
from fairlead.base.json_form import problem
from fairlead.base.plain_json import plain_json
from fairlead.contract import Check, Contract, fixed_together, grouped
from fairlead.report.record_form import RECORD, TIMES

KEY = "fairlead.report"
NOT_KEPT = ("eager_seconds", "ort_seconds", "failed", "not_finite")


@dataclass
class Record:
    facts: dict[str, Any]
    text: str  # the same as JSON


def record_of(model: Any, contract: Contract, rows: list[Check], probed: Any) -> Record:
    facts = {
        "model": class_name(model),
        "versions": versions(),
        "contract": compact(contract),
        "differences": [{k: v for k, v in row.items() if k not in NOT_KEPT} for row in rows],
        "example": {s.name: v for s, v in zip(probed.symbols, probed.run_values[0], strict=True)},
    }
    return Record(facts, plain_json(facts))


def compact(contract: Contract) -> dict[str, Any]:
    """What differs only in a layer number is one row: a decoder of 32 layers takes kilobytes, not tens of them."""
    # Not asdict, which copies every row of thousands of inputs.
    rows = {f.name: getattr(contract, f.name) for f in dataclasses.fields(contract)}
    rows["symbols"] = [dict(row) for row in contract.symbols]
    rows["assumptions"] = [dict(row) for row in contract.assumptions]
    for title in ("inputs", "outputs"):
        values = grouped(getattr(contract, title))
        rows[title] = [{"name": name, "dtype": dtype, "shape": list(shape)} for name, dtype, shape in values]
    rows["fixed"] = [dict(row) for row in fixed_together(contract.fixed)]
    return {name: list(value) if isinstance(value, list) else value for name, value in rows.items()}


def class_name(model: Any) -> str:
    return type(model).__name__


def versions() -> dict[str, str]:
    import torch

    return {"fairlead": _core.__version__, "torch": torch.__version__}


def read_record(path: str) -> dict[str, Any]:
    """What the file says about itself; {} for a file that Fairlead did not write."""
    text = _core.read_summary(path)["metadata"].get(KEY, "{}")
    try:
        record: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _core.ParseError(
            f"[report] Expected JSON under {KEY} in the metadata of '{path}', got: {error}. Export the model again."
        ) from None
    if expected := problem(record, RECORD):
        raise _core.ParseError(
            f"[report] Expected {expected} under {KEY} in the metadata of '{path}', got another. "
            "Export the model again."
        )
    return record


# ---- times -------------------------------------------------------------------------------------------


def times_path(path: str) -> str:
    return f"{path}.fairlead.json"


def keep_times(result: Any) -> str:
    """Writes the times of an export beside its file, for `fairlead report` to show."""
    from fairlead.report import write_page

    times = {"model_bytes": result.model_bytes, "runs": result.runs, "timings": result.timings}
    return write_page(plain_json(times) + "\n", times_path(result.path))


def fresh_times(path: str) -> dict[str, Any]:
    """The times kept beside a file; {} where there are none, or where they are of a file that was replaced."""
    if not os.path.isfile(times_path(path)):  # a pipe would be waited for
        return {}
    try:
        with open(times_path(path), encoding="utf-8") as file:
            times = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return times if not problem(times, TIMES) and times["model_bytes"] == os.path.getsize(path) else {}
