"""Chat templates, which come with the weights: Jinja in a sandbox, as Transformers renders them, and within limits.

1. No attribute of Python and no file: jinja2's own sandbox.
2. LINES executed at most, in SECONDS: a template may loop over loops, and look through a long text in each step.
3. BYTES of memory at most beyond what the process has: it may double a text in each of sixty steps.
4. Products and powers of LONGEST bits at most: they take for ever within one instruction.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from fairlead._core import InvalidInput

LINES = 1_000_000
SECONDS = 5
BYTES = 1 << 29
LONGEST = 1 << 16


def render(template: str, folder: str, **values: Any) -> str:
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"[generate] Expected jinja2 for the chat template, but it cannot be imported ({error}). "
            "Install it with pip install jinja2, or leave --chat out."
        ) from None
    try:
        with limited():
            return str(environment().from_string(template).render(**values))
    except Exception as error:  # whatever it is, the template did it
        what = str(error).partition("\n")[0][:300] or type(error).__name__
        raise InvalidInput(
            f"[generate] Expected a chat template that takes this prompt in '{folder}', but it raised: {what}. "
            "Leave --chat out."
        ) from error


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """For whatever renders a template of strangers."""
    with memory_limited(), lines_limited():
        yield


def environment() -> Any:
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Limited(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["*", "**"])

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            bits = [value.bit_length() for value in (left, right) if isinstance(value, int)]
            if len(bits) == 2 and (sum(bits) if operator == "*" else bits[0] * abs(right)) > LONGEST:
                raise TemplateError(f"a number of more than {LONGEST} bits")
            return super().call_binop(context, operator, left, right)

    def refuse(message: Any = "") -> None:
        raise TemplateError(str(message))

    made = Limited(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    made.filters["tojson"] = lambda value, **_: json.dumps(value, ensure_ascii=False)
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = now
    return made


def now(form: str) -> str:
    from datetime import datetime

    return datetime.now().strftime(form)


@contextlib.contextmanager
def lines_limited() -> Iterator[None]:
    """Counts the lines that Python executes, of what a template was compiled to and of what it calls."""
    from jinja2 import TemplateError

    left, end = LINES, time.monotonic() + SECONDS

    def line(frame: FrameType, event: str, what: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise TemplateError(f"more than {LINES} lines executed")
        if time.monotonic() > end:
            raise TemplateError(f"more than {SECONDS} seconds")
        return line

    before = sys.gettrace()
    if before is not None:  # a debugger, or what measures coverage: theirs
        yield
        return
    sys.settrace(line)
    try:
        yield
    finally:
        sys.settrace(None)


@contextlib.contextmanager
def memory_limited() -> Iterator[None]:
    """What would take more is a MemoryError."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
    except (ImportError, OSError, ValueError):  # another system: the other limits remain
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + BYTES
    if soft != resource.RLIM_INFINITY:
        wanted = min(wanted, soft)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
