"""How much longer a tokenizer may make a text: one that multiplies it step by step takes all memory there is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MOST_GROWTH = 1000  # times; tokenizers in use write a sign for a space


def refuse_growth(tokenizer: Any) -> None:
    """Of the package tokenizers. Raises ValueError, which names the number."""
    for part in (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder):
        times = 1.0
        for step in replacements(json.loads(part.__getstate__())) if part is not None else ():
            pattern = step.get("pattern")
            # Of an expression the shortest match is not known; one character is the usual one.
            found = pattern.get("String", "") if isinstance(pattern, dict) else ""
            times *= max(1.0, len(step.get("content", "")) / max(1, len(found)))
        if times > MOST_GROWTH:
            raise ValueError(f"its replacements make a text up to {times:,.0f} times as long, {MOST_GROWTH:,} at most")


def replacements(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("type") == "Replace":
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from replacements(each)
