"""What a command may take for a file of strangers: memory in proportion to the file.

A program of a few bytes may make a tensor of any size. A limit of the process (RLIMIT_DATA) holds whatever is run, in
PyTorch or in ONNX Runtime: what asks for more is an error there, and one line here.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

from fairlead.base.memory import at_most_more

LEAST = 2 << 30  # beyond what the process has when it begins
PROCESSOR = 64 << 20  # for each: PyTorch and ONNX Runtime have threads for all, and each of these a stack
TIMES = 64  # the bytes of the file: weights of 4 bits become floats, in PyTorch and again in ONNX Runtime
MOST_FILES = 10_000  # of a folder that are counted
VARIABLE = "FAIRLEAD_MEMORY"  # gigabytes instead; 0: as much as there is


@contextlib.contextmanager
def bounded_by(*sources: str) -> Iterator[None]:
    """For a command that runs what is in these files or folders; nothing where none of them is one."""
    found = [source for source in sources if os.path.exists(source)]
    allowed = allowance(found)
    if not found or not allowed:
        yield
        return
    with at_most_more(allowed):
        yield


def allowance(paths: list[str]) -> int:
    given = os.environ.get(VARIABLE, "")
    if re.fullmatch("[0-9]{1,6}", given):
        return int(given) << 30
    return LEAST + PROCESSOR * (os.cpu_count() or 1) + TIMES * sum(size_of(path) for path in paths)


def size_of(path: str) -> int:
    if not os.path.isdir(path):
        return os.path.getsize(path) if os.path.isfile(path) else 0
    files = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    return sum(os.path.getsize(file) for file in files[:MOST_FILES] if os.path.isfile(file))
