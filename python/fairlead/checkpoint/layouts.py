"""Where the files of an exported checkpoint lie, and what a client wants of them beyond the names of inputs.

"flat": the model's files beside its configuration, for Optimum, onnxruntime-genai and Fairlead.

"transformers.js", as its release 4.2 loads them (src/models/session.js, session_config.js, modeling_utils.js):
- onnx/model.onnx, or onnx/encoder_model.onnx and onnx/decoder_model_merged.onnx; model_fp16.onnx for float16.
- `transformers.js_config` in config.json names the dtype; without it, a browser asks for an 8-bit file.
- A browser is given only the file itself, so all weights are inside: protobuf ends at 2 GB.
- An empty cache is made from the declared shapes: the axis called `batch_size` gets the size of the batch, a number
  stays as it is, every other axis is empty.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import Dim

from fairlead._core import InvalidInput
from fairlead.generation.plan import Plan
from fairlead.tree.leaves import get_leaf_tensors

LAYOUTS = ("flat", "transformers.js")
SUFFIXES = {"float32": ("fp32", ""), "float16": ("fp16", "_fp16")}  # dtype -> its name and ending there
LARGEST_FILE = 2**31 - 1
# Parts of models with caches under names that transformers.js loads; vision-language models are cut otherwise there.
PARTS = (["model"], ["encoder_model", "decoder_model_merged"])


def file_of(part: str, kind: str, layout: str, dtype: str) -> str:
    """The part's file, relative to the folder."""
    if layout == "transformers.js" and kind == "onnx":
        return f"onnx/{part}{SUFFIXES[dtype][1]}.onnx"
    return f"{part}.{kind}"


def check(layout: str, dtype: str) -> None:
    if layout not in LAYOUTS:
        raise InvalidInput(f"[export] Expected layout as one of {', '.join(LAYOUTS)}, got '{layout}'.")
    if layout == "transformers.js" and dtype not in SUFFIXES:
        raise InvalidInput(
            f"[export] Expected dtype float32 or float16 for the layout transformers.js, got {dtype}: it has no other."
        )


def for_transformers_js(plan: Plan, model: torch.nn.Module) -> None:
    """Refuses what transformers.js cannot load, and names the batch as it does."""
    name, parts = type(model).__name__, [part.name for part in plan.parts]
    if parts not in PARTS:
        raise InvalidInput(
            f"[export] Expected a model that transformers.js loads as {' or '.join(' and '.join(p) for p in PARTS)}, "
            f"got {name}, which is exported as {', '.join(parts)}. Use the layout flat, and Fairlead's Generator."
        )
    size = sum(t.numel() * t.element_size() for t in model.state_dict().values())
    if size > LARGEST_FILE:
        raise InvalidInput(
            f"[export] Expected weights of at most 2 GB for the layout transformers.js, got {size / 2**30:.1f} GB in "
            f"{name}: a browser is given one file. Use --dtype float16, or the layout flat."
        )
    if plan.kind == "model":  # no cache; images and texts may be of different number
        return
    for part in plan.parts:
        part.dynamic_shapes = {
            name: named_batch(name, value, (part.dynamic_shapes or {}).get(name))
            for name, value in part.calls[0].items()
        }


def named_batch(name: str, value: Any, given: Any) -> Any:
    """The first axis is `batch_size`; the others as given, else found out."""
    leaves = list(get_leaf_tensors({name: value}).values())
    before = [given or {}] * len(leaves) if isinstance(given, dict) or not given else given
    named = [
        dict.fromkeys(range(t.dim()), Dim.AUTO) | more | {0: "batch_size"}
        for t, more in zip(leaves, before, strict=True)
    ]
    return named[0] if isinstance(value, torch.Tensor) else named


def settings(layout: str, dtype: str) -> dict[str, Any]:
    """What config.json has for the client."""
    return {"transformers.js_config": {"dtype": SUFFIXES[dtype][0]}} if layout == "transformers.js" else {}
