"""What is done to inputs before an export: what cannot be exported is refused, flags are taken out, dtypes follow the
model's. The caller's inputs are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from fairlead.exporters.refusals import InvalidKind, InvalidValue
from fairlead.tree.leaves import get_leaf_tensors, replace_leaf_tensors

# How a model answers, rather than what it is asked: settings of the config, or constants of the export.
OUTPUT_FLAGS = ("use_cache", "output_attentions", "output_hidden_states", "return_dict", "return_loss")
# Inputs that ask for a loss.
LABELS = ("labels", "future_values")


Preparer = Callable[[torch.nn.Module, dict[str, Any]], None]
# Names of arguments -> what adds to the inputs that have them all.
_PREPARERS: dict[tuple[str, ...], Preparer] = {}


def prepare_for_export(
    model: torch.nn.Module, inputs: Mapping[str, Any], *, tracing: bool = True
) -> tuple[torch.nn.Module, dict[str, Any], dict[str, Any]]:
    """(model, inputs, output flags): new inputs without flags, in the model's dtype and on its device.

    Labels and return_loss are refused: an exported model answers, it is not trained.
    tracing: the inputs are for torch.export, and what it cannot trace is computed beforehand.
    """
    inputs = named_inputs(inputs)
    for label in LABELS:
        if inputs.pop(label, None) is not None:
            raise InvalidValue(
                f"[prepare_for_export] Expected inputs without a loss, got {label!r}. Remove it before the export."
            )
    if inputs.get("return_loss") or getattr(getattr(model, "config", None), "return_loss", False):
        where = "the inputs" if inputs.get("return_loss") else "model.config"
        raise InvalidValue(
            f"[prepare_for_export] Expected inputs without a loss, got return_loss=True in {where}. Set it to False."
        )
    flags = {flag: inputs.pop(flag) for flag in OUTPUT_FLAGS if flag in inputs}
    precompute_export_inputs(model, inputs, tracing=tracing)
    return model, cast_leaf_tensors(inputs, module_dtype(model), module_device(model)), flags


def register_export_input_preparer(*markers: str) -> Callable[[Preparer], Preparer]:
    """Decorator: fn(model, inputs) adds to the inputs of an export, where all the markers are among them.

    The inputs that it gets are a dict of the export's own.
    """
    if not markers or not all(isinstance(marker, str) for marker in markers):
        found = ", ".join(map(repr, markers)) or "none"
        raise InvalidKind(f"[register_export_input_preparer] Expected the names of arguments, got {found}.")

    def register(preparer: Preparer) -> Preparer:
        _PREPARERS[markers] = preparer
        return preparer

    return register


def unregister_export_input_preparer(*markers: str) -> None:
    """Takes back what was registered for these markers."""
    _PREPARERS.pop(markers, None)


def precompute_export_inputs(model: torch.nn.Module, inputs: dict[str, Any], *, tracing: bool = True) -> None:
    """Adds to a dict of inputs what the registered preparers compute.

    tracing: also what Transformers itself computes ahead for torch.export (window indices, lengths of packed images and
    sounds). A model that is run for real needs none of it, and a file that asked for it would be harder to use.
    """
    with torch.no_grad():
        for markers, preparer in list(_PREPARERS.items()):
            if all(inputs.get(marker) is not None for marker in markers):
                preparer(model, inputs)
        if tracing:
            try:
                from transformers.exporters.utils import precompute_export_inputs as precompute
            except ImportError:  # versions that have no exporters
                return
            precompute(model, inputs)


def named_inputs(inputs: Any) -> dict[str, Any]:
    """A new dict of what a dict, BatchEncoding or BatchFeature holds."""
    if isinstance(inputs, torch.Tensor) or not (hasattr(inputs, "keys") and hasattr(inputs, "__getitem__")):
        raise InvalidKind(
            f"[prepare_for_export] Expected inputs as a dict of forward's arguments, got {type(inputs).__name__}. "
            'Write {"input_ids": ids}.'
        )
    return {str(name): inputs[name] for name in inputs.keys()}  # noqa: SIM118


def cast_leaf_tensors(obj: Any, dtype: torch.dtype | None, device: torch.device | None) -> Any:
    """The same structure with floating tensors in `dtype` and every tensor on `device`; itself if nothing changes."""

    def cast(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(dtype=dtype if tensor.is_floating_point() else None, device=device)

    leaves = list(get_leaf_tensors(obj).values())
    new = [cast(t) for t in leaves]
    if all(a is b for a, b in zip(leaves, new, strict=True)):
        return obj
    return replace_leaf_tensors(obj, new)


def duplicate_leaf_tensors(obj: Any) -> Any:
    """The same structure in which a tensor that stood in several places is a copy in all but the first."""
    seen: set[int] = set()
    new = []
    for tensor in get_leaf_tensors(obj).values():
        new.append(tensor.clone() if id(tensor) in seen else tensor)
        seen.add(id(tensor))
    return replace_leaf_tensors(obj, new) if len(seen) < len(new) else obj


def module_dtype(model: torch.nn.Module) -> torch.dtype | None:
    """The dtype of the model's first floating parameter; None for a model without any."""
    return next((p.dtype for p in model.parameters() if p.is_floating_point()), None)


def module_device(model: torch.nn.Module) -> torch.device | None:
    """The device of the model's first parameter; None for a model without any."""
    return next((p.device for p in model.parameters()), None)
