"""SIGTERM as Ctrl-C: what is staged is removed and what was switched is switched back before the process ends."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator


class Terminated(KeyboardInterrupt):
    """SIGTERM came. Whoever takes an interrupt for what it is takes this for one too."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """While the block runs SIGTERM raises Terminated in it, and afterwards ends the process as it would have.

    Nothing is changed where somebody handles the signal already, or in another thread than the main one, in which no
    handler can be set.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    came = []

    def stop(number: int, frame: object) -> None:
        came.append(number)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one does not stop the tidying up
        raise Terminated

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if came:  # also where somebody caught the exception
            os.kill(os.getpid(), signal.SIGTERM)


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
