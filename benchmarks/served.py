"""Files in ONNX Runtime, each in a process of its own, timed in turn.

In one process the file that is loaded first is up to 15 % slower than the same file loaded last, by where its weights
come to lie: more than what is compared here. So each file has a process, and after some turns another one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

# How an input is made: shape, element type, and one of "integers" (from, to), "counted" (from) along the last axis,
# "filled" (with a number); floats about 0 without.
Feed = dict[str, Any]


def timed(
    files: dict[str, Path], calls: dict[str, dict[str, dict[str, Feed]]], rounds: int, seconds: float
) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of CPU of every run, by file and column. `calls` has the inputs by column, file and name; each
    column has `seconds` a round."""
    found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in files}
    names = list(files)
    for turn in range(rounds):
        order = names[turn % len(names) :] + names[: turn % len(names)]
        started = {name: Served(files[name]) for name in order}
        for column, by_file in calls.items():
            given = [name for name in order if name in by_file]
            for name in given:
                started[name].ask(by_file[name])
            until = time.monotonic() + seconds
            while given:
                for name in given:
                    found[name][column].append(started[name].ask(None))
                given = given[1:] + given[:1]
                if time.monotonic() > until:
                    break
        for one in started.values():
            one.close()
    return found


class Served:
    """The process of a file; a question is the inputs of the runs that follow, or None for another run of the last."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, __file__, str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, question: dict[str, Feed] | None) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"Expected milliseconds of {self.process.args}, got the end of its process.")
        return float(answer)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def array(feed: Feed) -> np.ndarray:
    draw = np.random.default_rng(0)
    shape, dtype = feed["shape"], np.dtype(feed["dtype"])
    if "integers" in feed:
        return draw.integers(*feed["integers"], shape).astype(dtype)
    if "counted" in feed:
        return np.broadcast_to(np.arange(feed["counted"], feed["counted"] + shape[-1]), shape).astype(dtype)
    if "filled" in feed:
        return np.full(shape, feed["filled"], dtype)
    return (0.1 * draw.standard_normal(shape)).astype(dtype)


def serve(path: str) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options)
    feeds: dict[str, np.ndarray] = {}
    for line in sys.stdin:
        question = json.loads(line)
        if question is not None:  # the first run of a size plans its memory: it is the answer, and is not counted
            feeds = {name: array(feed) for name, feed in question.items()}
        start = time.thread_time()
        session.run(None, feeds)
        print(1e3 * (time.thread_time() - start), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
