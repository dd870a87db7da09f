"""What the exporters refuse and what they warn of. Errors are of the classes that callers of transformers.exporters
catch, as well as of ours.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

from fairlead._core import InvalidInput


class InvalidValue(InvalidInput, ValueError):  # noqa: N818 - named as its base is
    """A field, a value or a combination of them that cannot be used."""


class InvalidKind(InvalidInput, TypeError):  # noqa: N818 - named as its base is
    """Something of another type than the one that is needed."""


HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def warn(text: str) -> None:
    """A warning that points at the user's line, however deep inside Fairlead it is given."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(HERE) or frame.f_code.co_filename == contextlib.__file__
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
