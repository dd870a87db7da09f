"""JSON that every reader takes: NaN and infinities, which JSON has not, are texts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def plain_json(value: Any, indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else None
    try:  # most have none of them, and may be long
        return json.dumps(value, indent=indent, separators=separators, allow_nan=False, default=as_dict)
    except ValueError:
        return json.dumps(finite(value), indent=indent, separators=separators, allow_nan=False)


def as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"[plain_json] Expected mappings, lists, texts and numbers, got {type(value).__name__}.")


def finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value
