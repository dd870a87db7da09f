"""Nothing is fetched, and nobody is asked, while files of strangers are read, whatever they name.

Transformers takes `local_files_only` for the files of a checkpoint; what its configuration names besides (a backbone,
the classes of a processor) it would look for on the hub. Both switches are those of the process and answer by thread:
who downloads in another one is not disturbed.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from fairlead.base.alone import during
from fairlead.record.switches import switched

_here = threading.local()  # .depth: how many blocks of this thread are open


def reads_here() -> bool:
    return getattr(_here, "depth", 0) > 0


class Offline:
    """Whether the hub is off: here it is, elsewhere as it was."""

    def __init__(self, before: Any):
        self.before = before

    def __bool__(self) -> bool:
        return reads_here() or bool(self.before)


class Unasked(int):
    """The seconds for which a terminal is asked whether code is run: none here."""

    def __gt__(self, other: int) -> bool:
        return not reads_here() and int(self) > other


@contextlib.contextmanager
def unfetched() -> Iterator[None]:
    from huggingface_hub import constants
    from transformers import dynamic_module_utils as code

    def enter() -> tuple[Any, ...]:
        before = getattr(_here, "depth", 0)
        _here.depth = before + 1
        return (before,)

    def leave(depth: int) -> None:
        _here.depth = depth

    with (
        during(enter, leave),
        switched(constants, "HF_HUB_OFFLINE", Offline),
        switched(code, "TIME_OUT_REMOTE_CODE", Unasked),
    ):
        yield
