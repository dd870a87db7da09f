"""position_ids of a prompt. After it, every step adds one to the last of them."""

from __future__ import annotations

from typing import Any

import numpy as np


def positions_for(how: dict[str, Any] | None, ids: np.ndarray, mask: np.ndarray, pool: dict) -> np.ndarray | None:
    """None where the model takes no positions."""
    if how is None:
        return None
    return KINDS[how["kind"]](how, ids, mask, pool)


def from_mask(how: dict[str, Any], ids: np.ndarray, mask: np.ndarray, pool: dict) -> np.ndarray:
    """Places that are not masked, counted from 0 or `offset`."""
    return np.where(mask == 0, 0, mask.cumsum(1) - 1) + how.get("offset", 0)


KINDS = {"mask": from_mask}
