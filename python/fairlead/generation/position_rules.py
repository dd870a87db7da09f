"""How generate made the position_ids that were seen: the rule that gives the same ones, for generation.json."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlead._core import Unsupported
from fairlead.generation.watch import Watched
from fairlead.runtime.positions import positions_for


def rule_for(model: Any, inputs: dict[str, Any], seen: Watched) -> dict[str, Any] | None:
    """The first rule of the runtime that agrees with what was seen; None where the model is given no positions."""
    wanted = seen.prompt.get("position_ids")
    if wanted is None:
        return None
    wanted = wanted.numpy()
    arrays = {name: value.numpy() for name, value in inputs.items() if hasattr(value, "numpy")}
    for rule in candidates(model, wanted):
        found = positions_for(rule, arrays["input_ids"], arrays["attention_mask"], arrays)
        if found is not None and found.shape == wanted.shape and np.array_equal(found, wanted):
            return rule
    raise Unsupported(
        f"[export_for_generation] Expected position_ids of a kind that the Generator makes, got others from "
        f"{type(model).__name__} (shape {list(wanted.shape)}). Export its parts with fairlead.export."
    )


def candidates(model: Any, wanted: np.ndarray) -> list[dict[str, Any]]:
    offset = int(wanted.min())
    rules: list[dict[str, Any]] = [{"kind": "mask"}, {"kind": "mask", "offset": offset}]
    if wanted.ndim == 3:
        rules = [{"kind": "mask", "rows": wanted.shape[0]}]
    vision = getattr(model.config, "vision_config", None)
    merge = getattr(vision, "spatial_merge_size", None)
    if wanted.ndim == 3 and merge is not None:
        rules.append({"kind": "grid", "rows": wanted.shape[0], "merge": merge, "image": model.config.image_token_id,
                      "inputs": ["image_grid_thw", "mm_token_type_ids"]})  # fmt: skip
    return rules
