"""An end to programs of files that have none: a loop whose test is always true."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import threading
from collections.abc import Iterator

# What a call of something that was read from a file may take.
LEAST_SECONDS = 5
BYTES_A_SECOND = 1 << 20


def seconds_for(path: str) -> float:
    """By the size of a file and of the data beside it."""
    files = [path, *glob.glob(glob.escape(path) + ".*")]
    return LEAST_SECONDS + sum(os.path.getsize(file) for file in files if os.path.isfile(file)) / BYTES_A_SECOND


class TookTooLong(BaseException):
    """What runs in this thread is to end; not an error of the model, which would be an answer."""


@contextlib.contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """Raises TookTooLong in the block after so long, between two lines of Python: an operator is not interrupted."""
    if seconds is None:
        yield
        return
    thread, lock, state = threading.get_ident(), threading.Lock(), {"over": False, "asked": False}
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def late() -> None:
        with lock:
            if not state["over"]:
                state["asked"] = True
                raise_in(ctypes.c_ulong(thread), ctypes.py_object(TookTooLong))

    timer = threading.Timer(seconds, late)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            state["over"] = True
        timer.cancel()
        if state["asked"]:
            # One that did not come yet comes here. To take it back leaves the interpreter waiting for it for good:
            # slower, and with sys.settrace in Python 3.11 without an end.
            with contextlib.suppress(TookTooLong):
                for _ in range(100):
                    pass
