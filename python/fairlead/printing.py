"""What the command line prints: progress while something takes long, tables, errors. Colour on a terminal only.

Results go to stdout, everything else to stderr, so that `--json` can be piped. NO_COLOR and TERM=dumb are respected.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager

import click


def coloured(stream=None) -> bool:
    stream = stream or sys.stdout
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def style(text: str, stream=None, **how) -> str:
    return click.style(text, **how) if coloured(stream) else text


def say(text: str = "") -> None:
    click.echo(text)


def heading(text: str) -> None:
    say(style(text, bold=True))


def failed(text: str) -> None:
    click.echo(f"{style('error:', sys.stderr, fg='red', bold=True)} {text}", err=True)


def size_text(size: int) -> str:
    """12 -> "12 B", 1536 -> "1.5 kB" (of 1,000 bytes, as disks are sold)."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def table(rows: list[tuple], indent: str = "  ") -> None:
    """Columns as wide as their longest cell; numbers are aligned by whoever made them text."""
    if not rows:
        return
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        say((indent + "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip())


class Stages:
    """Tells of stages as they begin: one line that is rewritten on a terminal, a line each otherwise.

    Off a terminal a stage is told only when the work as a whole takes longer than a second.
    """

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.start = time.perf_counter()
        self.status = None

    def __call__(self, what: str) -> None:
        if self.quiet:
            return
        if self.status is not None:
            self.status.update(what)
        elif time.perf_counter() - self.start > 1.0:
            click.echo(f"fairlead: {what} ({time.perf_counter() - self.start:.1f} s so far)", err=True)


@contextmanager
def progress(first: str, quiet: bool = False):
    """Yields a function that is called with each stage."""
    stages = Stages(quiet)
    if quiet:
        yield stages
        return
    if not coloured(sys.stderr):
        click.echo(f"fairlead: {first}", err=True)
        yield stages
        return
    try:
        from rich.console import Console
    except ImportError:
        yield stages
        return
    with Console(stderr=True).status(first) as stages.status:
        yield stages
