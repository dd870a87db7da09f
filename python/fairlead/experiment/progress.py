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
