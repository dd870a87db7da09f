"""Panics of libraries in Rust: an exception that no `except Exception` takes, and lines on standard error before it."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator


class PanickedError(RuntimeError):
    """A library found itself in a state that it has no error for."""


@contextlib.contextmanager
def panics_raised() -> Iterator[None]:
    """A panic in the block is PanickedError, and nothing is printed; whatever else is printed there comes behind it."""
    sys.stderr.flush()
    try:
        before = os.dup(2)
    except OSError:  # nobody listens
        with as_error():
            yield
        return
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        panicked = False
        try:
            with as_error():
                yield
        except PanickedError:
            panicked = True
            raise
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
            if not panicked and said.seek(0, os.SEEK_END):
                said.seek(0)
                os.write(2, said.read())


@contextlib.contextmanager
def as_error() -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # every extension has a class of its own, of this name
            raise
        raise PanickedError(" ".join(str(error).split())[:200]) from None
