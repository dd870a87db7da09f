"""What the command line prints: progress while something takes long, tables, errors. Colour on a terminal only.

Results go to stdout, everything else to stderr, so that `--json` can be piped. NO_COLOR and TERM=dumb are respected.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

import click

from fairlead.base.plain_json import plain_json
from fairlead.base.plain_text import escaped, one_line


def coloured(stream: Any = None) -> bool:
    stream = stream or sys.stdout
    return (
        stream is not None and stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


class Styled(str):
    """Text that was escaped and has our own colours in it; what is added to it is escaped too."""

    def __add__(self, other: str) -> Styled:
        return Styled(str(self) + (other if isinstance(other, Styled) else escaped(other)))


def style(text: str, stream: Any = None, **how: Any) -> Styled:
    return Styled(click.style(escaped(text), **how) if coloured(stream) else escaped(text))


def say(text: str = "") -> None:
    """One line of a result."""
    click.echo(text if isinstance(text, Styled) else one_line(text))


def say_json(value: Any) -> None:
    """JSON in ASCII."""
    click.echo(plain_json(value, indent=2).replace("\x7f", "\\u007f"))


def tell(text: str) -> None:
    """One line, to stderr, where somebody reads it."""
    with suppress(OSError, ValueError):
        click.echo(text if isinstance(text, Styled) else one_line(text), err=True)


def heading(text: str) -> None:
    say(style(one_line(text), bold=True))


def failed(text: str) -> None:
    tell(style("error:", sys.stderr, fg="red", bold=True) + f" {one_line(text)}")


def table(rows: list[tuple[Any, ...]], indent: str = "  ") -> None:
    """Columns as wide as their longest cell; numbers are aligned by whoever made them text."""
    if not rows:
        return
    lines = [[cell if isinstance(cell, Styled) else one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    for line in lines:
        say((indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))).rstrip())


class Stages:
    """Tells of stages as they begin: one line that is rewritten on a terminal, a line each otherwise.

    Off a terminal a stage is told only when the work as a whole takes longer than a second.
    """

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.start = time.perf_counter()
        self.status: Any = None  # of rich, on a terminal

    def __call__(self, what: str) -> None:
        if self.quiet:
            return
        if self.status is not None:
            self.status.update(rich_text(what))
        elif time.perf_counter() - self.start > 1.0:
            tell(f"fairlead: {what} ({time.perf_counter() - self.start:.1f} s so far)")


def rich_text(what: str) -> Any:
    """Plain text: [bold] in the name of a file is no markup."""
    from rich.text import Text

    return Text(one_line(what))


@contextmanager
def progress(first: str, quiet: bool = False) -> Iterator[Any]:
    """Yields a function that is called with each stage. What code of a model prints meanwhile is no result."""
    with redirect_stdout(sys.stderr), stages_shown(first, quiet) as stages:
        yield stages


@contextmanager
def stages_shown(first: str, quiet: bool) -> Iterator[Any]:
    stages = Stages(quiet)
    if quiet:
        yield stages
        return
    if not coloured(sys.stderr):
        tell(f"fairlead: {first}")
        yield stages
        return
    try:
        from rich.console import Console
    except ImportError:
        yield stages
        return
    with Console(stderr=True).status(rich_text(first)) as stages.status:
        yield stages
