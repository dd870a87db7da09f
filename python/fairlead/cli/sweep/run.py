"""Many models at once: each is exported in a process of its own, and each result is a line in a file.

1. LIST has one SOURCE per line, and after it, where wanted, the task and the dtype.
2. A model runs as `fairlead export SOURCE OUT/NAME --json`: what crashes, hangs or runs out of memory is a row.
3. A row is appended to OUT/results.jsonl as soon as it is known, so an interrupted sweep goes on where it stopped.
4. OUT/index.html has all rows, and links the reports.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from fairlead._core import InvalidInput, WriteError
from fairlead.base.json_form import among, problem, whole

RESULTS, PAGE = "results.jsonl", "index.html"
EXIT = {1: "failed", 2: "refused"}  # of fairlead export; a signal is a crash


@dataclass(frozen=True)
class Job:
    source: str
    task: str | None
    dtype: str | None
    name: str  # of its folder in OUT

    @property
    def key(self) -> tuple[Any, ...]:
        return self.source, self.task, self.dtype

    def words(self, out: str) -> list[str]:
        """What is run for it."""
        target = os.path.join(out, self.name)
        if ":" in self.source and not self.source.startswith("package:"):
            os.makedirs(target, exist_ok=True)
            target = os.path.join(target, "model.onnx")
        words = [sys.executable, "-m", "fairlead", "export", "--json", "--report"]
        words += [f"--task={self.task}"] if self.task else []
        words += [f"--dtype={self.dtype}"] if self.dtype else []
        return [*words, "--", self.source, target]  # a line of the list is no option


LONGEST = 4096  # of a line: no path is longer
LEFT_TO_READ = 2.0  # seconds for what an export said last


def read_list(path: str) -> list[Job]:
    """The jobs of a list; `-` stands for a column that is left open."""
    try:
        if not os.path.isfile(path):  # a pipe would be waited for, and a device has no end
            raise OSError("it is no file")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"[sweep] Expected a text file with one source per line, got '{path}' ({error}).") from None
    jobs: list[Job] = []
    taken: set[str] = set()
    for number, line in enumerate(lines, 1):
        if "\0" in line or len(line) > LONGEST:
            raise InvalidInput(
                f"[sweep] Expected lines of at most {LONGEST} letters, without zeros, got another in line {number} of "
                f"'{path}'."
            )
        columns = line.partition("#")[0].split()
        if not columns:
            continue
        if len(columns) > 3:
            raise InvalidInput(
                f"[sweep] Expected SOURCE, task and dtype in line {number} of '{path}', got {len(columns)} columns."
            )
        source, task, dtype = [None if c == "-" else c for c in [*columns, "-", "-"][:3]]
        if source is None:
            raise InvalidInput(f"[sweep] Expected a SOURCE in line {number} of '{path}', got -.")
        if any(job.key == (source, task, dtype) for job in jobs):
            continue
        jobs.append(Job(source, task, dtype, folder_name(source, task, dtype, taken)))
    if not jobs:
        raise InvalidInput(f"[sweep] Expected at least one source in '{path}', got none.")
    return jobs


def folder_name(source: str, task: str | None, dtype: str | None, taken: set[str]) -> str:
    """./models/SmolLM2 -> SmolLM2; what is taken gets a number."""
    words = [os.path.basename(source.rstrip("/")) or source, task, dtype]
    base = re.sub(r"[^\w.-]+", "_", "-".join(w for w in words if w)).strip("._") or "model"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def text_or_none(value: Any) -> str:
    return "" if value is None or isinstance(value, str) else "a text"


def real(value: Any) -> str:
    return "" if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) else "a number"


def plain_name(value: Any) -> str:
    return "" if isinstance(value, str) and re.fullmatch(r"[\w.-]+", value) else "the name of a folder"


COUNT = whole(0, 1 << 62)
ROW = {
    "source": str, "name": plain_name, "status": among("ok", "timeout", "crashed", *EXIT.values()), "seconds": real,
    "error": str, "task_asked?": text_or_none, "dtype_asked?": text_or_none, "bytes?": COUNT, "nodes?": COUNT,
    "worst_difference?": real, "export_seconds?": real,
}  # fmt: skip


class Results:
    """OUT/results.jsonl: one line per model that is done. A line that was cut off is taken away."""

    def __init__(self, out: str):
        self.path = os.path.join(out, RESULTS)
        self.rows: list[dict[str, Any]] = []
        whole = 0
        try:
            os.makedirs(out, exist_ok=True)
            if os.path.exists(self.path) and not os.path.isfile(self.path):  # a pipe would be waited for
                raise OSError(0, "it is no file")
            with open(self.path, "a+b") as file:
                file.seek(0)
                for line in file:
                    try:
                        row = json.loads(line) if line.endswith(b"\n") else None
                    except (ValueError, RecursionError):
                        row = None
                    if row is None or problem(row, ROW):
                        break
                    self.rows.append(row)
                    whole += len(line)
                file.truncate(whole)
        except OSError as error:
            raise WriteError(f"[sweep] Could not write '{self.path}': {error.strerror}. Choose another -o.") from None

    def append(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def latest(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """A model that was tried again has its last row."""
        return {(row["source"], row.get("task_asked"), row.get("dtype_asked")): row for row in self.rows}


def run_job(
    job: Job, out: str, timeout: float, folder: str, tell: Callable[[str], None] = lambda stage: None
) -> dict[str, Any]:
    """The row of one model, run in `folder`; `tell` is called with its stages. Whatever it does, a row comes back."""
    start = time.perf_counter()
    row: dict[str, Any] = {"source": job.source, "task_asked": job.task, "dtype_asked": job.dtype, "name": job.name}
    with tempfile.TemporaryFile("w+") as answer:
        child = subprocess.Popen(
            job.words(out), stdout=answer, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
            env=os.environ | {"NO_COLOR": "1", "PYTHONSAFEPATH": "1", "FAIRLEAD_FAULTS": "1"}, cwd=folder,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        late = threading.Event()
        running(child, True)

        def stop_late() -> None:
            late.set()
            stop(child)

        timer = threading.Timer(timeout, stop_late)
        timer.start()
        said, stage = "", "starting"

        def read() -> None:
            nonlocal said, stage
            for line in iter(lambda: child.stderr.readline(LONGEST) if child.stderr else "", ""):
                if line.startswith("fairlead: "):
                    stage = line.removeprefix("fairlead: ").partition(" (")[0].strip()
                    tell(stage)
                elif line.strip() and not said.startswith("error: "):  # after it comes where the report is
                    said = line.strip()

        # What a model has started may hold the pipe when the model is long done: nobody waits for that.
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            code = child.wait()
            reader.join(LEFT_TO_READ)
        finally:
            timer.cancel()
            running(child, False)
            if child.poll() is None:
                stop(child)
                child.wait()
        row["seconds"] = round(time.perf_counter() - start, 2)
        if late.is_set():
            return row | {"status": "timeout", "error": f"not done after {timeout:g} s, while {stage}"}
        if code < 0:
            return row | {"status": "crashed", "error": f"{signal_name(-code)} while {stage}"}
        if code:
            text = said.removeprefix("error: ")
            return row | {"status": EXIT.get(code, "crashed"), "error": text or f"exit code {code}"}
        answer.seek(0)
        try:
            return row | {"status": "ok", "error": ""} | figures(json.load(answer))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # code of a model may end Python
            return row | {"status": "crashed", "error": f"it ended without a result while {stage}"}


def signal_name(number: int) -> str:
    return signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"


def figures(result: dict[str, Any]) -> dict[str, Any]:
    """What a row keeps of the JSON of an export."""
    parts = result.get("parts") or {os.path.basename(result["path"]): result}
    found = [row["scaled"] for part in parts.values() for row in part["discrepancies"]]
    return {
        "task": result.get("task"), "architecture": result.get("architecture"), "dtype": result.get("dtype"),
        "parts": list(parts), "nodes": sum(part["nodes"] for part in parts.values()),
        "bytes": sum(part["model_bytes"] + part["external_bytes"] for part in parts.values()),
        "worst_difference": max(found, default=None),
        "export_seconds": round(sum(part["timings"].get("total", 0.0) for part in parts.values()), 3),
    }  # fmt: skip


_CHILDREN: set[subprocess.Popen[str]] = set()


def running(child: subprocess.Popen[str], is_running: bool) -> None:
    (_CHILDREN.add if is_running else _CHILDREN.discard)(child)


def stop(child: subprocess.Popen[str]) -> None:
    """The process and those it started: they are a session of their own."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        child.kill()


def stop_all() -> None:
    for child in list(_CHILDREN):
        stop(child)


# ---- engines: (job, row) of each model as it is done ---------------------------------------------------------


def on_this_machine(
    jobs: list[Job], out: str, timeout: float, workers: int, tell: Callable[[Job, str], None]
) -> Iterator[tuple[Job, dict[str, Any]]]:
    ended = threading.Event()

    def work(job: Job) -> dict[str, Any] | None:
        if ended.is_set():
            return None
        tell(job, "starting")
        return run_job(job, out, timeout, os.getcwd(), lambda stage: tell(job, stage))

    with ThreadPoolExecutor(workers) as pool:
        waiting = {pool.submit(work, job): job for job in jobs}
        try:
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    job, row = waiting.pop(future), future.result()
                    if row is not None:
                        yield job, row
        finally:  # interrupted: what runs is stopped, what waits is not begun
            ended.set()
            stop_all()


def on_ray(
    jobs: list[Job], out: str, timeout: float, workers: int, tell: Callable[[Job, str], None], address: str | None
) -> Iterator[tuple[Job, dict[str, Any]]]:
    """On a Ray cluster: that at `address` or RAY_ADDRESS, else one of `workers` processes on this machine.

    Every node needs Fairlead, the sources and OUT under the same paths (a shared file system).
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            f"[sweep] Expected Ray for --ray, but it cannot be imported ({error}). Install it with pip install ray."
        ) from None
    address = address or os.environ.get("RAY_ADDRESS")
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    mine = not ray.is_initialized()
    try:
        if mine and address:
            ray.init(address=address, **quiet)
        elif mine:
            ray.init(num_cpus=workers, include_dashboard=False, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        text = " ".join(str(error).split())[:200].rstrip(".")
        raise InvalidInput(f"[sweep] Expected a Ray cluster at {address or 'this machine'}, got: {text}.") from error
    try:
        # A crash of the worker itself (its node went away) is tried once more by Ray, then it is a row.
        remote = ray.remote(num_cpus=1, max_retries=1)(run_job)
        pending: dict[Any, Job] = {}
        ahead = iter(jobs)
        top = max(workers, int(ray.cluster_resources().get("CPU", 1)))
        while True:
            while len(pending) < top and (job := next(ahead, None)) is not None:
                pending[remote.remote(job, out, timeout, os.getcwd())] = job
                tell(job, "given to Ray")
            if not pending:
                return
            done, _ = ray.wait(list(pending), num_returns=1)
            job = pending.pop(done[0])
            try:
                row = ray.get(done[0])
            except ray.exceptions.RayError as error:
                row = {"source": job.source, "task_asked": job.task, "dtype_asked": job.dtype, "name": job.name,
                       "status": "crashed", "error": " ".join(str(error).split())[:300], "seconds": 0.0}  # fmt: skip
            yield job, row
    finally:
        if mine:
            ray.shutdown()


def sweep(
    jobs: list[Job],
    out: str,
    *,
    workers: int = 1,
    timeout: float = 600.0,
    again: str = "none",
    ray: bool = False,
    address: str | None = None,
    began: Callable[[Job, str], None] | None = None,
    ended: Callable[[Job, dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Runs what has no row yet (again="failed": and what failed; "all": everything). The rows, in the list's order."""
    from fairlead.cli.sweep.page import write_page

    out = os.path.abspath(out)
    results = Results(out)
    known = results.latest()

    def is_open(job: Job) -> bool:
        row = known.get(job.key)
        return row is None or again == "all" or (again == "failed" and row["status"] != "ok")

    todo = [job for job in jobs if is_open(job)]
    tell = began or (lambda job, stage: None)
    engine = on_ray(todo, out, timeout, workers, tell, address) if ray else None
    engine = engine or on_this_machine(todo, out, timeout, workers, tell)
    try:
        for job, row in engine:
            results.append(row)
            if ended is not None:
                ended(job, row)
    finally:
        if isinstance(engine, Generator):
            engine.close()
        rows = [results.latest()[job.key] for job in jobs if job.key in results.latest()]
        write_page(os.path.join(out, PAGE), rows, len(jobs))
    return rows
