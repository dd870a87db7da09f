"""What is known when an export fails, put on the error as `error.facts` for a report: plain data, no tensors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from fairlead import _core
from fairlead.report.record import class_name, versions
from fairlead.verify.checked_rows import rows_of
from fairlead.verify.first_differing import first_differing

CONTEXT = 6  # operators shown before and after a parting


def explain(error: _core.FairleadError, export: Any) -> None:
    """Adds the facts of a failed export. A model that branched runs once more, to see where the other side goes."""
    failed = failed_check(export)
    facts: dict[str, Any] = {
        "model": model_name(export.model),
        "versions": versions(),
        "path": export.path,
        "stage": export.progress.current,
        "timings": dict(export.progress.timings),
        "inputs": [
            {"name": name, "dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape)}
            for name, t in (zip(export.call.names, export.call.tensors, strict=True) if export.is_read else ())
        ],
        "differences": list(failed[2]) if failed else [],
    }
    probed = export.probed
    if probed is not None:
        facts["symbols"] = [{"name": s.name, "tried": list(s.tried)} for s in probed.symbols]
        facts["runs"] = [list(values) for values in export.experiment.looked_at(0) or probed.run_values]
    error.facts = facts
    tensors, reference = parting_tensors(error, export, failed)
    if tensors is not None:
        # The sentence stands without this: nothing that goes wrong here may hide it.
        with contextlib.suppress(_core.FairleadError):
            facts["parting"] = parting(export, tensors, reference)
    if isinstance(error, _core.Discrepancy) and failed is not None:
        with contextlib.suppress(Exception):  # likewise
            name_operator(error, facts, export, failed[0], failed[1])


def model_name(model: Any) -> str:
    """Its class; of a program in a file, the file."""
    return os.path.basename(os.fsdecode(model)) if isinstance(model, (str, os.PathLike)) else class_name(model)


def failed_check(export: Any) -> tuple[Any, ...] | None:
    """The program, the tensors and the rows of the check that an experiment failed with."""
    step = export.experiment.step if export.has_begun else None
    if not isinstance(step, _core.Failed) or step.finding.number < 0:
        return None
    driver = export.driver
    found = driver.measured[step.finding.number]
    rows = rows_of(driver.measured, export.experiment.rows(found.program))
    return driver.programs[found.program], found.tensors, rows


def name_operator(
    error: _core.FairleadError, facts: dict[str, Any], export: Any, program: Any, tensors: list[Any]
) -> None:
    """The operator that is to blame becomes the last sentence of the error."""
    if export.suffix != ".onnx" or program.built is None:
        return
    found = first_differing(program, tensors, export.input_names, export.options.opset)
    if found:
        facts["first_differing"] = found
        error.args = (f"{error.args[0]} {found}",)


def parting_tensors(error: Exception, export: Any, failed: tuple[Any, ...] | None) -> tuple[list[Any] | None, int]:
    """The inputs at which the run parted that the error tells of, and the run it parted from."""
    if not isinstance(error, _core.Diverged) or export.experiment is None:
        return None, -1
    if failed is not None:
        return failed[1], export.probed.runs[0]
    for sizes, reference, before, now in reversed(export.experiment.partings(0)):
        if any(is_of(row, export, sizes, before, now) for row in error.details):
            return export.call.at(sizes), reference
    return None, -1


def is_of(row: Mapping[str, Any], export: Any, sizes: list[list[int]], before: str, now: str) -> bool:
    """Whether a run that parted is the one that a detail of an error names: by its operators, or by the dimension that
    had another size in it."""
    if row["kind"] == "parting":
        return (row["before"], row["now"]) == (before, now)
    if row["kind"] == "dimension":
        leaf, axis = int(row["leaf"]), int(row["axis"])
        return bool(sizes[leaf][axis] != export.call.tensors[leaf].shape[axis])
    return False


def parting(export: Any, tensors: list[Any], reference: int) -> dict[str, Any] | None:
    """Both runs around the operator where they part, with the input sizes of each."""
    session = export.session
    args, kwargs = export.call.with_tensors([t.clone() for t in tensors])
    with session:
        outcome = session.run(args, kwargs)
    if not outcome.ok:
        return None
    found: dict[str, Any] | None = session.core.parting(reference, outcome.run, CONTEXT)
    if found is None:
        return None
    first = export.experiment.sizes_of(0, reference) or [list(t.shape) for t in export.call.tensors]
    found["sizes"] = [
        {"name": name, "first": list(before), "second": list(t.shape)}
        for name, before, t in zip(export.call.names, first, tensors, strict=True)
    ]
    return found
