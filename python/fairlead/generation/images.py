"""The parts that turn images into features: vision tower and projector.

A model's get_image_features ends by cutting the features into one list entry per image, which a file of fixed outputs
cannot do and nobody needs: the module whose result holds all of them is looked for, and the run ends there.
"""

from __future__ import annotations

from typing import Any

import torch

from fairlead.generation.cuts import arguments_of, result_of, without_checks
from fairlead.generation.grids import grid_part, takes_grid
from fairlead.generation.plan import PartPlan
from fairlead.generation.watch import copied, untouched

# Fields of an encoder's result that no model looks at when it merges.
INNER = ("last_hidden_state", "hidden_states", "attentions")


def flat_features(encoded: Any) -> dict[str, torch.Tensor]:
    """{"image_features": [tokens, width], "deepstack_features.0": ...} of an encoder's or a projector's result."""
    if isinstance(encoded, torch.Tensor):
        return {"image_features": rows(encoded)}
    found = {}
    for field, value in encoded.items():
        if field in INNER or value is None:
            continue
        if field == "pooler_output":
            found["image_features"] = rows(value)
        else:
            found |= {f"{field}.{k}": rows(one) for k, one in enumerate(value)}
    return found


def rows(value: Any) -> torch.Tensor:
    parts = [value] if isinstance(value, torch.Tensor) else list(value)
    parts = [part.reshape(-1, part.shape[-1]) for part in parts]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


class ImageEncoder(torch.nn.Module):
    """The model's get_image_features, up to a module's call, up to its result, or whole."""

    def __init__(self, base: Any, before: torch.nn.Module | None, after: torch.nn.Module | None):
        super().__init__()
        self.base, self._ends = base, (before, after)

    def forward(self, **inputs: torch.Tensor) -> Any:
        before, after = self._ends

        def run() -> Any:
            base: Any = self.base
            return base.get_image_features(**inputs, return_dict=True)

        with without_checks():
            if before is not None:
                return {"vision_features": next(iter(arguments_of(before, run).values()))}
            return flat_features(run() if after is None else result_of(after, run))


class Projector(torch.nn.Module):
    def __init__(self, projector: torch.nn.Module):
        super().__init__()
        self.projector = projector

    def forward(self, vision_features: torch.Tensor) -> dict[str, torch.Tensor]:
        return flat_features(self.projector(vision_features))


def image_parts(model: Any, call: dict[str, Any]) -> tuple[list[PartPlan], dict[str, Any] | None]:
    """image_encoder, and projector where the model has one that is given one tensor and ends the work; and how inputs
    are made from a grid of patches, where the encoder takes one.
    """
    base = model.base_model
    first = next(iter(call))
    with untouched(model):
        found = results(base, call)
        expected = flat_features(base.get_image_features(**copied(call), return_dict=True))
        ends = [module for module, (_, result) in found.items() if same(result, expected)]
        end = ends[-1] if ends else None
        given, _ = found[end] if end is not None else ([], None)
        if end is not None and takes_grid(call):
            part, how = grid_part(model, end, call, list(expected))
            return [part], how
        if end is None or len(found) < 2 or len(given) != 1 or not isinstance(given[0], torch.Tensor):
            module = ImageEncoder(base, None, end).eval()
            return [PartPlan("image_encoder", module, [call], list(expected), optional=first)], None
    return [
        PartPlan("image_encoder", ImageEncoder(base, end, None).eval(), [call], optional=first),
        PartPlan("projector", Projector(end).eval(), [{"vision_features": given[0].clone()}], list(expected)),
    ], None


def results(base: Any, call: dict[str, Any]) -> dict[torch.nn.Module, tuple[list[Any], Any]]:
    """What the model's direct parts were given and gave while it encoded images, in the order of the calls."""
    found: dict[torch.nn.Module, tuple[list[Any], Any]] = {}

    def note(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        given = [value for value in (*args, *kwargs.values()) if value is not None]
        found[module] = (given, copied(result) if hasattr(result, "keys") else result)

    hooks = [module.register_forward_hook(note, with_kwargs=True) for module in base.children()]
    try:
        base.get_image_features(**copied(call), return_dict=True)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def same(result: Any, expected: dict[str, torch.Tensor]) -> bool:
    try:
        flat = flat_features(result)
    except (AttributeError, RuntimeError, TypeError):  # no result of this kind
        return False
    return flat.keys() == expected.keys() and all(torch.equal(flat[name], expected[name]) for name in flat)
