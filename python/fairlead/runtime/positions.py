"""position_ids of a prompt. After it, every step adds one to the last of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlead._core import InvalidInput


def positions_for(
    how: dict[str, Any] | None, ids: np.ndarray[Any, Any], mask: np.ndarray[Any, Any], pool: dict[str, Any]
) -> np.ndarray[Any, Any] | None:
    """None where the model takes no positions."""
    if how is None:
        return None
    return KINDS[how["kind"]](how, ids, mask, pool)


def from_mask(
    how: dict[str, Any], ids: np.ndarray[Any, Any], mask: np.ndarray[Any, Any], pool: dict[str, Any]
) -> np.ndarray[Any, Any]:
    """Places that are not masked, counted from 0 or `offset`; `rows` times where there are several kinds of them."""
    places = np.where(mask == 0, 0, mask.cumsum(1) - 1) + how.get("offset", 0)
    return np.tile(places[None], (how["rows"], 1, 1)) if "rows" in how else places


def from_grid(
    how: dict[str, Any], ids: np.ndarray[Any, Any], mask: np.ndarray[Any, Any], pool: dict[str, Any]
) -> np.ndarray[Any, Any]:
    """Frame, row and column of image tokens; a text goes on after the largest of them. Above them, with four rows, the
    places that are not masked.
    """
    text = from_mask({}, ids, mask, pool)
    found = np.zeros((3, *ids.shape), np.int64)
    grids = iter(np.asarray(pool[how["inputs"][0]]).tolist()) if how["inputs"][0] in pool else iter(())
    for row, tokens in enumerate(ids):
        kept = np.flatnonzero(mask[row])
        image = tokens[kept] == how["image"]
        starts = np.flatnonzero(np.concatenate([[True], image[1:] != image[:-1]]))
        at, parts = 0, []
        for first, end in zip(starts, [*starts[1:], len(kept)], strict=True):
            if not image[first]:
                parts.append(np.tile(np.arange(end - first) + at, (3, 1)))
                at += end - first
                continue
            sizes = next(grids, None)
            if sizes is None or np.prod(sizes) // how["merge"] ** 2 != end - first:
                raise InvalidInput(
                    f"[generate] Expected {how['inputs'][0]} for every image, got {sizes} for {end - first} image "
                    f"tokens in row {row}. Images that follow each other need text between them."
                )
            t, h, w = sizes[0], sizes[1] // how["merge"], sizes[2] // how["merge"]
            parts.append(np.stack(np.meshgrid(*map(np.arange, (t, h, w)), indexing="ij")).reshape(3, -1) + at)
            at += max(h, w)
        found[:, row, kept] = np.concatenate(parts, 1)
    return np.concatenate([text[None], found]) if how["rows"] == 4 else found


KINDS = {"mask": from_mask, "grid": from_grid}
