"""SIGTERM as Ctrl-C: what is staged is removed and what was switched is switched back before the process ends."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


class Terminated(KeyboardInterrupt):
    """SIGTERM came. Whoever takes an interrupt for what it is takes this for one too."""


@contextlib.contextmanager
def terminated_as_exception() -> Iterator[None]:
    """For a program of our own: SIGTERM raises Terminated, and what to exit with is left to the caller."""

    def stop(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
