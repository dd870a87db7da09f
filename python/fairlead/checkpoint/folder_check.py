"""An exported folder against the model it came from: every call of a real run, and a greedy generation."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fairlead._core import InvalidInput
from fairlead.base.memory import raise_if_memory_lacks
from fairlead.checkpoint.client_files import SUMMARY
from fairlead.checkpoint.layouts import LAYOUTS, file_of
from fairlead.checkpoint.loaded import WEIGHT_DTYPES, Loaded, load
from fairlead.checkpoint.source import Checkpoint, one_line
from fairlead.report.record import read_record
from fairlead.tree.calls import Call, normalise
from fairlead.verify.patience import seconds_for
from fairlead.verify.runtime_check import OnnxSession, compare, eager
from fairlead.verify.static_cache import session_of

GENERATED = 16  # tokens of the greedy generation that are compared


def check_folder(
    folder: str, checkpoint: Checkpoint, *, task: str | None = None, dtype: str | None = None,
    tolerance: float | None = None, progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """One row per call, worst first: part, call, output, scaled, abs, ok, problem."""
    from fairlead.checkpoint.export import TOLERANCE

    show = progress or (lambda what: None)
    about = read_summary(folder)
    dtype = dtype or about.get("dtype", "float32")
    if tolerance is None:
        tolerance = TOLERANCE.get(dtype)
    loaded = load(checkpoint, task or about.get("task"), dtype, show)
    rows, sessions = [], {}
    for which in range(2 if loaded.generates else 1):
        for part in loaded.plan(which).parts:
            file = file_of(part.name, "onnx", about.get("layout", "flat"), dtype)
            show(f"running {file}")
            if file not in sessions:
                sessions[file] = opened(os.path.join(folder, file))
            for number, call in enumerate(normalise(part.module, part.calls)):
                row = check_call(part.module, call, sessions[file], tolerance)
                rows.append({"part": file, "call": f"{'AB'[which]}{number}: {sizes(call)}", **row})
    if loaded.generates:
        sessions.clear()  # the Generator loads the same files
        show(f"generating {GENERATED} tokens with both")
        rows.append(check_generation(folder, loaded))
    return worst_first(rows)


def check_file(path: str, model: torch.nn.Module, inputs: Any, tolerance: float | None = None) -> list[dict[str, Any]]:
    """The same for one file and calls of one's own."""
    session = opened(path)
    rows = []
    for number, call in enumerate(normalise(model, inputs)):
        row = check_call(model, call, session, tolerance)
        rows.append({"part": os.path.basename(path), "call": f"A{number}: {sizes(call)}", **row})
    return worst_first(rows)


def worst_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["ok"], -row["scaled"]))


def read_summary(folder: str) -> dict[str, Any]:
    path = os.path.join(folder, SUMMARY)
    if not os.path.isfile(path):
        raise InvalidInput(
            f"[verify] Expected {SUMMARY} in '{folder}', got none. Give a folder that fairlead export wrote."
        )
    try:
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"[verify] Expected JSON in '{path}', got {one_line(error)}.") from error
    for key, values in (("dtype", WEIGHT_DTYPES), ("layout", LAYOUTS), ("task", None)):
        value = found.get(key, "") if isinstance(found, dict) else None
        if not isinstance(value, str) or (value and values is not None and value not in values):
            raise InvalidInput(f"[verify] Expected the {key} of an export in '{path}', got another. Export it again.")
    return found


def opened(path: str) -> OnnxSession:
    if not os.path.isfile(path):
        raise InvalidInput(f"[verify] Expected an ONNX file, got '{path}', which does not exist.")
    try:
        return session_of(path, seconds_for(path))
    except Exception as error:
        raise_if_memory_lacks(error)
        raise InvalidInput(
            f"[verify] Expected a file that ONNX Runtime loads in '{path}', got {one_line(error)}. Export it again."
        ) from error


def check_call(model: torch.nn.Module, call: Call, session: OnnxSession, tolerance: float | None) -> dict[str, Any]:
    args, kwargs = call.with_tensors([t.clone() for t in call.tensors])
    expected = eager(model, args, kwargs)
    feeds = dict(zip(call.names, call.tensors, strict=True))
    drawn = read_record(session.path).get("contract", {}).get("drawn", {})
    missing = [name for name in session.inputs if name not in feeds]
    try:
        if missing:
            raise ValueError(f"the file takes {missing[0]}, the model does not")
        given = [each.name for each in session.session.get_inputs() if each.type == "tensor(int8)"]
        narrow = next((name for name in given if feeds[name].is_floating_point()), None)
        if narrow is not None:
            raise ValueError(f"the file takes {narrow} in int8; what that costs is in its contract")
        return compare(session.outputs, expected, session.run(feeds), tolerance, drawn)
    except Exception as error:  # one call that cannot be computed is a row
        raise_if_memory_lacks(error)
        return {"ok": False, "scaled": math.inf, "abs": math.inf, "output": "", "problem": one_line(error)}


def check_generation(folder: str, loaded: Loaded) -> dict[str, Any]:
    """Greedy tokens of both, which must be the same ones."""
    from fairlead.runtime import Generator

    sample = loaded.cast(loaded.samples.generation())
    settings: dict[str, Any] = {
        "max_new_tokens": GENERATED,
        "min_new_tokens": GENERATED,
        "do_sample": False,
        "num_beams": 1,
    }
    # New tokens only: Whisper leaves its start out.
    expected = loaded.called(loaded.model.generate, sample | settings).numpy()[:, -GENERATED:]
    row = {"part": "all", "call": f"{GENERATED} tokens of {len(expected)} rows", "output": "tokens", "ok": True,
           "scaled": 0.0, "abs": 0.0, "problem": ""}  # fmt: skip
    try:
        got = Generator.from_folder(folder).generate(**sample, **settings)[:, -GENERATED:]
    except Exception as error:
        raise_if_memory_lacks(error)
        return row | {"ok": False, "scaled": math.inf, "abs": math.inf, "problem": one_line(error)}
    if expected.shape != got.shape or not (expected == got).all():
        first = int(np.argmax((expected != got).any(0))) if expected.shape == got.shape else 0
        return row | {
            "ok": False,
            "scaled": math.inf,
            "abs": math.inf,
            "problem": f"other tokens from new token {first} on",
        }
    return row


def sizes(call: Call) -> str:
    """input_ids[2,3], past_key_values.0.key[2,3,7,64]: enough to know the call by."""
    return ", ".join(
        f"{n}{list(t.shape)}".replace(" ", "") for n, t in list(zip(call.names, call.tensors, strict=True))[:2]
    )
