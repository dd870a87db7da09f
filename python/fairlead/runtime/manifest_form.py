"""The form of generation.json, which a stranger may have written: kinds, names and sizes, before they are used."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from fairlead.base.json_form import Map, among, problem, whole
from fairlead.runtime.positions import KINDS as POSITIONS
from fairlead.runtime.sampling import Settings
from fairlead.runtime.values import TYPES

MOST_ELEMENTS = 1 << 28  # elements of what a manifest makes at once
TOKENS = 1 << 40  # beyond every vocabulary


def shape(value: Any) -> str:
    right = isinstance(value, list) and len(value) <= 16
    sizes = [size for size in value if not isinstance(size, str)] if right else []
    right = right and all(isinstance(s, int) and not isinstance(s, bool) and 0 <= s <= MOST_ELEMENTS for s in sizes)
    return "" if right and math.prod(sizes) <= MOST_ELEMENTS else f"sizes or names, of {MOST_ELEMENTS} elements at most"


def start(value: Any) -> str:
    tokens = value if isinstance(value, list) else [value]
    right = value is None or (len(tokens) <= 4096 and not any(TOKEN(token) for token in tokens))
    return "" if right else "a token, or a list of tokens"


def file(value: Any) -> str:
    # Parts lie in the folder: a manifest does not choose among the files of the machine.
    right = isinstance(value, str) and value and "\0" not in value and not value.startswith("/")
    return "" if right and ".." not in value.replace("\\", "/").split("/") else "a file within the folder"


def positions(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, dict) or value.get("kind") not in tuple(POSITIONS):
        return f"a kind among {', '.join(POSITIONS)}"
    return problem(value, POSITION_FORMS[value["kind"]])


def settings(value: Any) -> str:
    """Numbers where Settings has numbers; what it does not know is left alone."""
    if not isinstance(value, dict):
        return "an object"
    kinds = {f.name: str(f.type) for f in fields(Settings)}
    for name, given in value.items():
        kind = kinds.get(name)
        if kind is None or given is None:
            continue
        items = given if isinstance(given, list) and "list" in kind else [given]
        for item in items:
            number = isinstance(item, (int, float)) and (isinstance(item, bool) == (kind == "bool"))
            real = number and math.isfinite(item) and abs(item) < TOKENS
            if not real or ("int" in kind and not isinstance(item, int)):
                return f"{kind} for {name}"
    return ""


COUNT, TOKEN = whole(0, 1 << 20), whole(0, TOKENS)
POSITION_FORMS = {
    "mask": {"kind": str, "offset?": COUNT, "rows?": whole(1, 16)},
    "grid": {"kind": str, "inputs": [str], "image": TOKEN, "merge": whole(1, 1024), "rows": whole(1, 16)},
}
PART = {
    "file": file, "inputs?": [str], "outputs?": [str], "last?": str, "optional?": str, "gives?": Map(str),
    "takes?": Map(str), "shortest?": whole(0, 1 << 16),
}  # fmt: skip
DTYPE = among(*TYPES)
FORM = {
    "format": int, "model": str, "kind": among("decoder", "encoder_decoder", "multimodal"), "parts": Map(PART),
    "once": [str], "prefill": [str], "step": [str],
    "cache": [{"past": str, "present": str, "dtype": DTYPE, "shape": shape, "shared?": bool}],
    "prompt_only": Map({"dtype": DTYPE, "shape": shape}), "positions": positions,
    "tokens": {"input": str, "start?": start}, "settings": settings,
}  # fmt: skip
