"""The entry of the command line: what every command shares about errors and exit codes.

Exit codes: 0 done; 1 the model cannot be exported, or a file not be written; 2 usage: a wrong option, input or path;
130 interrupted with Ctrl-C; 143 ended by SIGTERM.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from contextlib import nullcontext, suppress
from typing import Any

from fairlead._core import FairleadError, InvalidInput, LastWords
from fairlead.base.lazy import explain

TRACEBACK = "FAIRLEAD_TRACEBACK"
FAULTS = "FAIRLEAD_FAULTS"  # 1: they end the process as ever, for a parent that looks at signals
TOO_LITTLE = (
    "[fairlead] Expected enough memory for this model, got less. Use a smaller one or another machine; "
    "FAIRLEAD_MEMORY=N in the environment allows a file of others N GB."
)
# Said by the core where a fault of a library ends the process, which nothing can go on from.
ENDED = (
    "error: [fairlead] Expected a file that PyTorch and ONNX Runtime can run, got one by which they ended the process "
    "({}). With FAIRLEAD_TRACEBACK=1 in the environment the system says more."
)


def main() -> None:
    try:
        import click
    except ImportError as error:
        print(f"fairlead: the command line needs click ({error}): pip install click rich", file=sys.stderr)
        sys.exit(2)

    from fairlead.base.memory import lacks_memory
    from fairlead.base.panics import as_error
    from fairlead.base.plain_text import one_line, text_of
    from fairlead.base.signals import Terminated, terminated_as_exception
    from fairlead.cli.commands import fairlead
    from fairlead.cli.printing import failed, tell

    try:
        left_alone = os.environ.get(TRACEBACK) or os.environ.get(FAULTS)
        words = nullcontext() if left_alone else LastWords(ENDED, 1)
        with terminated_as_exception(), words, as_error():
            code = called(fairlead)
    except click.exceptions.Exit as done:
        code = done.exit_code
    except click.ClickException as error:  # usage: shown with the command's own help line
        error.message = one_line(error.message)  # type: ignore[misc]  # click calls it final, and prints it
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as stopped:
        failed("interrupted, nothing was written")
        sys.exit(143 if isinstance(stopped, Terminated) or isinstance(stopped.__cause__, Terminated) else 130)
    except FairleadError as error:
        failed(str(error))
        if page := getattr(error, "page", None):
            tell(f"Where, why and what to try: {page}")
        sys.exit(2 if isinstance(error, InvalidInput) else 1)
    except ImportError as error:  # torch or another package is missing: the message says what to install
        failed(str(explain(error, "this command")))
        sys.exit(2)
    except RecursionError:
        failed(
            "[fairlead] Expected files and inputs that are nested some hundred levels deep at most, got deeper ones."
        )
        sys.exit(2)
    except UnicodeError as error:
        failed(f"[fairlead] Expected text in UTF-8, got other bytes ({error}).")
        sys.exit(2)
    except MemoryError:
        failed(TOO_LITTLE)
        sys.exit(1)
    except BaseException as error:  # a file may be wrong in ways that nobody thought of
        if os.environ.get(TRACEBACK):
            raise
        if lacks_memory(error):
            failed(TOO_LITTLE)
            sys.exit(1)
        if isinstance(error, OSError) and was_printing(error):
            deaf()
            failed(f"[fairlead] Could not write to standard output: {error.strerror}.")
            sys.exit(1)
        if isinstance(error, OSError) and isinstance(error.filename, (str, bytes)):
            failed(f"[fairlead] Could not use '{os.fsdecode(error.filename)}': {error.strerror}.")
            sys.exit(1)
        text = text_of(error)
        said = f"{type(error).__name__}: {' '.join(text.split())[:300].rstrip('.')}"
        if place := own_place(error):
            failed(f"[fairlead] Expected code that runs, but it raised {said} at {place}.")
            sys.exit(2)
        failed(
            f"[fairlead] Unexpected {said}. This is a fault in Fairlead; please "
            "report it, with what FAIRLEAD_TRACEBACK=1 in the environment shows."
        )
        sys.exit(1)
    sys.exit(code)


def called(command: Any) -> int:
    """The exit code of a command. Code of the user's own that ends Python has made nothing, whatever it says."""
    import click

    try:
        return command.main(prog_name="fairlead", standalone_mode=False) or 0
    except SystemExit as ended:
        frames = traceback.extract_tb(ended.__traceback__)
        if (
            frames[-1].filename == click.core.__file__
        ):  # of a pipe that nobody reads: fairlead inspect model.onnx | head
            deaf()
            return 0
        raise InvalidInput(
            f"[fairlead] Expected code that gives a model and returns, got one that ends Python with "
            f"sys.exit({ended.code!r})."
        ) from ended
    except click.Abort as stopped:
        if isinstance(stopped.__cause__, EOFError):
            raise stopped.__cause__ from None
        raise


def deaf() -> None:
    """Nobody reads what is printed: what is left of it goes nowhere, also when Python ends."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for good


def was_printing(error: BaseException) -> bool:
    import click.utils

    return any(frame.filename == click.utils.__file__ for frame in traceback.extract_tb(error.__traceback__))


def own_place(error: BaseException) -> str:
    """Where code of the user's own raised an error that nobody expects of a model; "" where it was other code."""
    frames = traceback.extract_tb(error.__traceback__)
    at = os.path.abspath(frames[-1].filename) if frames else ""
    others = [os.path.dirname(os.path.dirname(__file__)), *sysconfig.get_paths().values(), sys.base_prefix, "<"]
    if not os.path.isfile(at) or any(at.startswith(other) for other in others) or "site-packages" in at:
        return ""
    return f"{frames[-1].filename}:{frames[-1].lineno}"
