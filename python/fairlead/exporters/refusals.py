"""What the exporters refuse, in the classes that callers of transformers.exporters catch as well as in ours."""

from __future__ import annotations

from fairlead._core import InvalidInput


class InvalidValue(InvalidInput, ValueError):  # noqa: N818 - named as its base is
    """A field, a value or a combination of them that cannot be used."""


class InvalidKind(InvalidInput, TypeError):  # noqa: N818 - named as its base is
    """Something of another type than the one that is needed."""
