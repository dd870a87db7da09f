"""Threads of a model while it is recorded: modes are of one thread, so what others run would not be seen.

1. What the recorded thread hands to a ThreadPoolExecutor, or runs in a Thread, runs under the modes too.
2. One after the other: the thread that hands it over waits until it is done, so that every run has the same order.
3. Where that takes longer than PATIENCE the two wait for each other, and the run is refused.
Threads that others start meanwhile are left alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import torch

from fairlead._core import Unsupported
from fairlead.base.alone import during
from fairlead.record.switches import here

PATIENCE = 20.0  # seconds

_here = threading.local()  # .modes: what a thread that is recorded gives to those it starts


def recorded_here() -> bool:
    """Whether this thread runs the model that is recorded."""
    return getattr(_here, "modes", None) is not None


@contextlib.contextmanager
def _recorded(modes: Callable[[], Any]) -> Iterator[None]:
    before = getattr(_here, "modes", None)

    def enter() -> tuple[Any, ...]:
        _here.modes = modes
        return (before,)

    with during(enter, lambda before: setattr(_here, "modes", before)), here(), torch.no_grad(), modes():
        yield


def _within(modes: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        with _recorded(modes):
            return function(*args, **kwargs)

    return run


def _refuse() -> None:
    raise Unsupported(
        f"[record] Expected threads of the model that end by themselves, got one that did not in {PATIENCE:g} seconds "
        "while the thread that started it waited. Export the model without threads."
    )


@contextlib.contextmanager
def recorded_threads(modes: Callable[[], Any]) -> Iterator[None]:
    """Runs a block under the modes, and what it hands to other threads as well."""
    pool: Any = ThreadPoolExecutor  # whose methods are others for a while
    threads: Any = threading.Thread
    submit, start = pool.submit, threads.start

    def submit_recorded(self: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        given = getattr(_here, "modes", None)
        if given is None:
            return submit(self, function, *args, **kwargs)
        _here.modes = None  # the pool starts a worker, which goes on
        try:
            future = submit(self, _within(given, function), *args, **kwargs)
        finally:
            _here.modes = given
        if wait([future], PATIENCE).not_done:
            _refuse()
        return future

    def start_recorded(self: threading.Thread) -> None:
        given = getattr(_here, "modes", None)
        if given is None or self.daemon:
            start(self)
            return
        target, raised = _within(given, self.run), []

        def run() -> None:  # what a thread raises is printed, at sizes that were only tried too
            try:
                target()
            except BaseException as error:
                raised.append(error)

        self.run = run  # type: ignore[method-assign]
        start(self)
        self.join(PATIENCE)
        if self.is_alive():
            _refuse()
        for error in raised:
            if not isinstance(error, Exception):  # another program: the run ends here
                raise error

    def put() -> tuple[Any, ...]:
        pool.submit, threads.start = submit_recorded, start_recorded
        return submit, start

    def put_back(submit: Any, start: Any) -> None:
        pool.submit, threads.start = submit, start

    with during(put, put_back), _recorded(modes):
        yield
