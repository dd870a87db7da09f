"""The part of a generation config that the Generator follows; what it cannot follow is refused by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from fairlead.runtime.sampling import Settings


def settings_of(model: Any, generation_config: Any = None) -> dict[str, Any]:
    config = generation_config if generation_config is not None else model.generation_config
    found = {}
    for field in fields(Settings):
        value = getattr(config, field.name, None)
        if value is None:
            continue
        if hasattr(value, "tolist"):
            value = value.tolist()
        found[field.name] = value
    return found
