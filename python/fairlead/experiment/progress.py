"""The stages of an export: shown as they begin, and the time that each took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Progress:
    """Stage names and times; `show` is called at the start of each stage."""

    def __init__(self, show: Callable[[str], None] | None):
        self.show = show
        self.timings: dict[str, float] = {}
        self.current = ""  # the stage that is running, or that failed
        self.open = False

    @contextmanager
    def stage(self, name: str, what: str) -> Iterator[None]:
        start = time.perf_counter()
        self.enter(name, what)
        try:
            yield
        finally:
            self.spent(time.perf_counter() - start)
            self.leave()

    def enter(self, name: str, what: str) -> None:
        """What was spent from now on is spent on that."""
        if self.show is not None:
            self.show(what)
        self.current, self.open = name, True

    def leave(self) -> None:
        self.open = False

    def spent(self, seconds: float) -> None:
        if self.open:
            self.timings[self.current] = self.timings.get(self.current, 0.0) + seconds


# Of an experiment: the name of each stage, and what is shown.
STAGES = {
    "probe": "probing which dimensions may vary", "solve": "solving {operators} operators over {runs} runs",
    "guards": "asking what else the model would do", "verify": "verifying in {runtime} at sizes never probed",
}  # fmt: skip


class Stages:
    """The stages of an experiment, each shown when it begins."""

    def __init__(self, progress: Progress):
        self.progress, self.stage = progress, ""

    def enter(self, stage: str, words: dict[str, str]) -> None:
        if stage == self.stage:
            return
        self.stage = stage
        if stage in STAGES:
            self.progress.enter("solve" if stage == "guards" else stage, STAGES[stage].format(**words))
        else:
            self.progress.leave()  # writing has stages of its own
