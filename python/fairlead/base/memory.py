"""How much memory there is, and whether there was too little."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fairlead.base.plain_text import text_of

# PyTorch on a CPU and ONNX Runtime have no class of errors for it: their words, here and nowhere else.
WORDS = ("can't allocate memory", "not enough memory", "Failed to allocate memory", "bad allocation", "std::bad_alloc")


def free_memory() -> int:
    """Bytes that could be used now; what files have in memory can be given back."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return int(rows["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return 4 << 30


def held_bytes() -> int | None:
    """What a limit of the process counts, as the system says it; None where it does not."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData"))
    except (OSError, StopIteration, ValueError):
        return None


@contextlib.contextmanager
def at_most_more(allowed: int) -> Iterator[None]:
    """Who asks for more bytes than that, in PyTorch or in ONNX Runtime, gets an error; the system would end the
    process."""
    held = held_bytes()
    if held is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [held + allowed, *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def lacks_memory(error: BaseException) -> bool:
    """Whether something was not computed because there was no memory for it."""
    return isinstance(error, MemoryError) or any(words in text_of(error) for words in WORDS)


def raise_if_memory_lacks(error: BaseException) -> None:
    """For who takes an error for an answer: that of a machine says nothing about a model or a file."""
    if lacks_memory(error):
        raise MemoryError(str(error).partition("\n")[0]) from error
