"""Files and folders that get their name in one step, on top of the core's Staging."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from fairlead._core import Staging, WriteError


def check_name(path: str, function: str) -> None:
    """Paths are text in the core."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise WriteError(f"[{function}] Could not write {path!a}: its name is no UTF-8. Choose another.") from None


@contextlib.contextmanager
def staged_file(path: str, function: str) -> Iterator[Staging]:
    """A file, or a file with its weights, to be written and committed; otherwise nothing was there."""
    check_name(path, function)
    staging = Staging(path, function)
    try:
        yield staging
    finally:
        staging.discard()


@contextlib.contextmanager
def staged_folder(folder: str, function: str) -> Iterator[str]:
    """A folder to fill; it becomes `folder` when the block ends well, and otherwise nothing was there."""
    # The folder that a link leads to is replaced, and not the link.
    final = os.path.realpath(folder)
    made = missing_above(final)
    try:
        try:
            os.makedirs(os.path.dirname(final), exist_ok=True)
        except OSError as error:
            raise WriteError(
                f"[{function}] Could not write '{folder}': {error.strerror}. Choose another folder."
            ) from None
        with staged_file(final, function) as staging:
            yield staging.folder
            staging.commit_folder()
    except BaseException:
        for path in made:
            with contextlib.suppress(OSError):  # others may have put something there
                os.rmdir(path)
        raise


def missing_above(path: str) -> list[str]:
    """The folders that have to be made before `path`, the innermost first."""
    missing, parent = [], os.path.dirname(path)
    while parent and not os.path.lexists(parent):
        missing.append(parent)
        parent = os.path.dirname(parent)
    return missing
