"""`fairlead sweep`: a list of models, with a live table on a terminal and a line per model otherwise."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from fairlead.base.units import size_text
from fairlead.cli.printing import coloured, failed, say, say_json, tell

LONGEST = 10 * 365 * 86400  # seconds that a timer of every system takes
SHOWN = 12  # rows of models that are done; those that run are always shown


@click.command()
@click.argument("list_path", metavar="LIST", type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--out", type=click.Path(), default="sweep", show_default=True, help="Folder for everything.")
@click.option("-j", "--jobs", "workers", type=click.IntRange(1), default=1, show_default=True, help="Models at a time.")
@click.option(
    "--timeout", type=click.FloatRange(min=1, max=LONGEST), default=600, show_default=True, help="Seconds per model."
)
@click.option(
    "--again", type=click.Choice(["none", "failed", "all"]), default="none", show_default=True,
    help="What is run although results.jsonl has it.",
)  # fmt: skip
@click.option("--ray", is_flag=True, help="Run on a Ray cluster; without an address on -j workers of this machine.")
@click.option("--ray-address", default=None, help="Of the cluster; by default RAY_ADDRESS.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def sweep(
    list_path: Any, out: Any, workers: Any, timeout: Any, again: Any, ray: Any, ray_address: Any, as_json: Any
) -> None:
    """Exports every model of LIST into a folder of OUT, each in a process of its own.

    LIST has one SOURCE per line, as export takes it; the task and the dtype may follow, - leaves one open, # begins
    a comment. Results are appended to OUT/results.jsonl: run the same command again to go on after an interruption.
    OUT/index.html shows all. Exits with 1 where a model failed.

    \b
    Examples:
      fairlead sweep models.txt -j 2
      fairlead sweep models.txt -o results/ --timeout 120 --again failed
      fairlead sweep models.txt --ray --ray-address auto
    """
    from fairlead.cli.sweep import run as sweeps

    jobs = sweeps.read_list(list_path)
    # Rows that no model of the list has any more stay in the file, and are not shown.
    known = sweeps.Results(out).latest()
    try:
        with table_or_lines(jobs, known, as_json) as shown:
            rows = sweeps.sweep(
                jobs, out, workers=workers, timeout=timeout, again=again, ray=ray or ray_address is not None,
                address=ray_address, began=shown.began, ended=shown.ended,
            )  # fmt: skip
    except KeyboardInterrupt:
        done = sum(job.key in sweeps.Results(out).latest() for job in jobs)
        failed(f"interrupted with {done} of {len(jobs)} models done. Run the same command to go on")
        raise click.exceptions.Exit(130) from None
    wrong = [row for row in rows if row["status"] != "ok"]
    if as_json:
        say_json({"ok": not wrong, "rows": rows})
    else:
        say(f"{len(rows) - len(wrong)} of {len(jobs)} models exported and checked: {out}/{sweeps.PAGE}")
    if wrong:
        raise click.exceptions.Exit(1)


def line(row: dict[str, Any]) -> str:
    """What is said about a model that is done."""
    if row["status"] != "ok":
        return f"{row['status']}: {row['error']}"
    worst = row.get("worst_difference")
    return f"{size_text(row['bytes'])}, difference {'not verified' if worst is None else f'{worst:.1e}'}"


class Lines:
    """Off a terminal: one line per model that is done."""

    def __init__(self, jobs: Any, known: Any, quiet: bool = False) -> None:
        self.count, self.done, self.quiet = len(jobs), sum(job.key in known for job in jobs), quiet
        if self.done and not quiet:
            tell(f"fairlead: going on, {self.done} of {self.count} are done")

    def began(self, job: Any, stage: str) -> None:
        pass

    def ended(self, job: Any, row: Any) -> None:
        self.done = min(self.count, self.done + 1)
        if not self.quiet:
            tell(f"[{self.done}/{self.count}] {job.name}: {line(row)} ({row['seconds']:.1f} s)")


class Live:
    """On a terminal: what runs with its stage and time, above it the last ones that are done."""

    def __init__(self, jobs: Any, known: Any) -> None:
        self.jobs, self.lock = jobs, threading.Lock()
        self.rows = [(job, known[job.key]) for job in jobs if job.key in known]
        self.now: dict[Any, tuple[str, float]] = {}

    def began(self, job: Any, stage: str) -> None:
        with self.lock:
            self.now[job] = stage, self.now.get(job, ("", time.perf_counter()))[1]

    def ended(self, job: Any, row: Any) -> None:
        with self.lock:
            self.now.pop(job, None)
            self.rows = [(other, old) for other, old in self.rows if other != job] + [(job, row)]

    def __rich__(self) -> Any:
        from rich.markup import escape
        from rich.table import Table

        with self.lock:
            rows, now = list(self.rows), dict(self.now)
        good = sum(row["status"] == "ok" for _, row in rows)
        title = f"{len(rows)} of {len(self.jobs)} done, {len(rows) - good} failed"
        made = Table("model", "task", "status", "seconds", title=title, title_justify="left", expand=True)
        for job, row in rows[-SHOWN:]:
            colour = "green" if row["status"] == "ok" else "red"
            task = row.get("task") or job.task or ""
            made.add_row(escape(job.name), task, f"[{colour}]{escape(line(row))}[/]", f"{row.get('seconds', 0):.1f}")
        for job, (stage, start) in now.items():
            made.add_row(escape(job.name), job.task or "", escape(stage), f"{time.perf_counter() - start:.1f}")
        return made


@contextmanager
def table_or_lines(jobs: Any, known: Any, quiet: bool) -> Iterator[Any]:
    try:
        if quiet or not coloured(sys.stderr):
            raise ImportError
        from rich.console import Console
        from rich.live import Live as Screen
    except ImportError:
        yield Lines(jobs, known, quiet)
        return
    shown = Live(jobs, known)
    with Screen(shown, console=Console(stderr=True), refresh_per_second=4):
        yield shown
