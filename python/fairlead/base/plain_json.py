"""JSON that every reader takes: NaN and infinities, which JSON has not, are texts."""

from __future__ import annotations

import json
import math
from typing import Any


def plain_json(value: Any, indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else None
    return json.dumps(finite(value), indent=indent, separators=separators, allow_nan=False)


def finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value
