"""The report: one HTML page about an export, or about why there is none. It needs no network and nothing beside it.

    result.report("model.html")                     # of what fairlead.export returned
    fairlead.report.write_report("out/")                   # of files alone: one section per ONNX file
    fairlead.report.report_failure(error, "why.html")      # of a FairleadError; error.report("why.html") is the same

The core counts and orders (`_core.file_report`), `page.py` lays out, `templates/` has the HTML, CSS and JavaScript.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fairlead import _core
from fairlead.report.record import fresh_times, read_record


def write_report(source: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> str:
    """Writes a page about an ONNX file, or about all ONNX files of a folder, and returns its path.

    source: a .onnx file or a folder with some. What Fairlead knew when it wrote them is in the files.
    path: the page; by default report.html in that folder.
    """
    from fairlead.report.page import render_parts

    source = Path(source)
    # Clients that look for files in a folder of their own (onnx/) find them there, and so does this.
    models = sorted(source.glob("*.onnx")) or sorted(source.rglob("*.onnx")) if source.is_dir() else [source]
    if not models:
        raise _core.InvalidInput(
            f"[report] Expected a folder with .onnx files, got none in '{source}'. Give a file or another folder."
        )
    folder = source if source.is_dir() else source.parent
    parts = [(str(model), read_record(str(model)), fresh_times(str(model))) for model in models]
    return write_page(render_parts(parts, folder), path or folder / "report.html")


def report_result(result: Any, path: str | os.PathLike[str]) -> str:
    """ExportResult.report."""
    from fairlead.report.page import render_parts

    times = {"timings": result.timings, "runs": result.runs}
    return write_page(render_parts([(result.path, result.record, times)], None), path)


def report_failure(error: Exception, path: str | os.PathLike[str]) -> str:
    """Writes a page about an export that failed and returns its path: where, why, what to try.

    >>> try:
    ...     fairlead.export(model, inputs, "model.onnx")
    ... except fairlead.FairleadError as error:
    ...     fairlead.report.report_failure(error, "why.html")
    """
    from fairlead.report.page import render_failure

    return write_page(render_failure(error), path)


def write_page(text: str, path: str | os.PathLike[str]) -> str:
    """Beside its name first, then renamed: a page is whole or not there."""
    path = os.fspath(path)
    _core.write_file(path, text.encode("utf-8", errors="replace"), "report")
    return path
