"""With FAIRLEAD_TRANSCRIPT=folder every experiment leaves its transcript there, which `_core.replay` goes through again
without a model."""

from __future__ import annotations

import os
import time
from typing import Any

VARIABLE = "FAIRLEAD_TRANSCRIPT"


def are_written() -> bool:
    return VARIABLE in os.environ


def write_transcript(experiment: Any, model: Any) -> None:
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    os.makedirs(folder, exist_ok=True)
    name = f"{type(model).__name__}-{os.getpid()}-{time.monotonic_ns()}.json"
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(experiment.transcript())
