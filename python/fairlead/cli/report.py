"""`fairlead report`, and the pages that `fairlead export` writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from fairlead._core import FairleadError, InvalidInput, WriteError
from fairlead.cli.printing import say, tell


@click.command()
@click.argument("path", type=click.Path(exists=True), default=".")
@click.option(
    "-o", "--output", type=click.Path(), default=None, help="The page; report.html beside the model if not given."
)
def report(path: str, output: Any) -> None:
    """Writes a page about the ONNX file PATH, or about all in the folder PATH: contract, differences, structure, sizes.

    One HTML file that loads nothing. It says what the files carry; the weights are not read, and PyTorch is not needed.

    \b
    Examples:
      fairlead report out/
      fairlead report model.onnx -o model.html
    """
    from fairlead.report import write_report

    say(f"Written {write_report(path, output)}")


def page_beside(output: str) -> str:
    """report.html in the folder that is exported to, or in the folder of the file."""
    folder = output if os.path.isdir(output) else os.path.dirname(output)
    if folder:
        os.makedirs(folder, exist_ok=True)  # that of a checkpoint which could not be exported is not there yet
    return os.path.join(folder, "report.html")


@contextmanager
def failures_reported(output: str, wanted: bool | None) -> Iterator[None]:
    """An export that fails leaves a page that says why, unless it was told not to or the request itself was wrong."""
    try:
        yield
    except FairleadError as error:
        usage = isinstance(error, InvalidInput | WriteError)
        if wanted or (wanted is None and not usage):
            from fairlead.report import report_failure

            try:
                vars(error)["page"] = report_failure(error, page_beside(output))  # named after the error is printed
            except (WriteError, ImportError) as problem:  # the error itself is what matters
                tell(f"fairlead: no report: {problem}")
        raise


def success_reported(result: Any, wanted: bool | None) -> None:
    """Keeps the times for `fairlead report`; the page itself where it is wanted."""
    from fairlead.report.record import keep_times

    try:
        keep_times(result)
    except WriteError as problem:  # a name that is too long by its ending: the model itself is there
        tell(f"fairlead: no times: {problem}")
    if wanted:
        path = result.report(page_beside(result.path))
        tell(f"fairlead: report: {path}")
