"""A LoRA adapter in a folder of its own, put into the model of a checkpoint before that is exported: merged into its
weights, or beside them, to become inputs of the file.

PEFT reads it, so every kind of LoRA that it can merge is taken. The model that the adapter's configuration names is not
looked for: the checkpoint is the one that was given.
"""

from __future__ import annotations

import json
import os
from typing import Any

import torch

from fairlead._core import FairleadError, InvalidInput
from fairlead.base.memory import raise_if_memory_lacks
from fairlead.checkpoint.source import one_line, quiet

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
MOST_LAYERS = 1_000  # each is a copy


def check_adapter(folder: str) -> None:
    """Refuses what cannot be merged, before anything is loaded."""
    for name in (CONFIG, WEIGHTS):
        if not os.path.isfile(os.path.join(folder, name)):
            raise InvalidInput(
                f"[export] Expected a folder with {CONFIG} and {WEIGHTS} as adapter, got '{folder}' without {name}. "
                "Give one that save_pretrained of peft wrote."
            )
    try:
        with open(os.path.join(folder, CONFIG), encoding="utf-8") as file:
            settings = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"[export] Expected JSON in '{folder}/{CONFIG}', got {one_line(error)}.") from error
    kind = settings.get("peft_type") if isinstance(settings, dict) else None
    if kind != "LORA":
        raise InvalidInput(f"[export] Expected an adapter of peft_type LORA in '{folder}', got {kind!r}.")
    if settings.get("megatron_config") is not None:  # beside megatron_core, a module that is imported
        raise InvalidInput(
            f"[export] Expected an adapter without megatron_config, which names code to import, got one in '{folder}'. "
            "Merge it with merge_and_unload() of peft, and save that with save_pretrained."
        )
    if layers_of(settings.get("layer_replication")) > MOST_LAYERS:
        raise InvalidInput(
            f"[export] Expected at most {MOST_LAYERS} layers that an adapter repeats (layer_replication), got more in "
            f"'{folder}'."
        )
    try:
        import peft  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            f"[export] Expected peft to read the adapter in '{folder}', but it cannot be imported ({error}). Install "
            "it with pip install peft."
        ) from None


def layers_of(replication: Any) -> int:
    """Of ranges [start, end]; what is none PEFT refuses itself."""
    try:
        return sum(abs(end - start) for start, end in replication or ())
    except (TypeError, ValueError):
        return 0


def with_adapter(model: torch.nn.Module, folder: str, merge: bool) -> torch.nn.Module:
    """The model with it: merged, or with layers that hold it beside their own weights."""
    from peft import PeftModel, get_peft_model_state_dict
    from safetensors import safe_open

    before, files = type(model), states(folder)
    try:
        with quiet():
            adapted: Any = PeftModel.from_pretrained(model, folder, local_files_only=True)
            with safe_open(os.path.join(folder, WEIGHTS), framework="pt") as file:
                held = set(file.keys())
            wanted = set(get_peft_model_state_dict(adapted, save_embedding_layers=False))
            found: torch.nn.Module = adapted.merge_and_unload(safe_merge=True) if merge else adapted.get_base_model()
            found = found.eval()
    except FairleadError:
        raise
    except Exception as error:
        raise_if_memory_lacks(error)
        check_unchanged(folder, files)
        raise InvalidInput(
            f"[export] Expected an adapter of {before.__name__} in '{folder}', but peft raised {type(error).__name__}: "
            f"{one_line(error).rstrip('.')}. Give the checkpoint that it was trained on."
        ) from error
    check_unchanged(folder, files)
    # PEFT warns where weights are missing or left over, and goes on with an adapter that does nothing there.
    differing = sorted(wanted - held) or sorted(name for name in held - wanted if ".lora_" in name)
    if differing or type(found) is not before:
        which = f"{'without' if wanted - held else 'with'} {differing[0]}" if differing else "of another model"
        raise InvalidInput(
            f"[export] Expected an adapter of {before.__name__} in '{folder}', got one {which}. Give the checkpoint "
            "that it was trained on, and all of its weights."
        )
    return found


def states(folder: str) -> list[Any]:
    """Which files they are, and when they were written."""
    found = [os.stat(os.path.join(folder, name)) for name in (CONFIG, WEIGHTS)]
    return [(each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns) for each in found]


def check_unchanged(folder: str, before: list[Any]) -> None:
    """Configuration and weights are read one after the other, and belong together."""
    try:
        same = states(folder) == before
    except OSError:
        same = False
    if not same:
        raise InvalidInput(
            f"[export] Expected the adapter in '{folder}' to stay as it is, got files that changed while they were "
            "read. Export again when nothing writes to them."
        )
